// SPDX-License-Identifier: Apache-2.0
// conv2d_integer. Margins are filled with the zero point of the images, so that the differences there are 0, and
//
//   sum (x - x_zero) (w - w_zero) = sum x w - x_zero sum w - w_zero sum x + taps x_zero w_zero
//
// leaves a product of 8-bit integers, a GEMM with implicit im2col, to which the other terms are added first. All sums wrap,
// in any order, to the same int32.
#include "conv/im2col.hpp"
#include "conv/integer_quads.hpp"
#include "gemm/amx_formats.hpp"
#include "gemm/partition.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"
#include "simd/vnni.hpp"
#include "trace.hpp"

#include <tenon/signatures/quantization.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Element i of integers of any dtype, or the only one; 0 without a tensor.
int64_t zero_point(const tenon_tensor* points, int64_t i) {
  if (!points) return 0;
  if (points->numel == 1) i = 0;
  switch (points->dtype) {
    case TENON_DTYPE_I8:
      return data_of<int8_t>(points)[i];
    case TENON_DTYPE_U8:
      return data_of<uint8_t>(points)[i];
    case TENON_DTYPE_I16:
      return data_of<int16_t>(points)[i];
    case TENON_DTYPE_U16:
      return data_of<uint16_t>(points)[i];
    case TENON_DTYPE_I32:
      return data_of<int32_t>(points)[i];
    case TENON_DTYPE_U32:
      return data_of<uint32_t>(points)[i];
    default:  // int64, and uint64, of which the lower half counts in sums that wrap
      return data_of<int64_t>(points)[i];
  }
}

// Copies the pixels of a run under one tap, and `outside` beyond the image.
template <class T>
[[gnu::always_inline]] inline void copy_run_of_bytes(const ConvShapes& s, const ImageRun<T>& run,
                                                     const Tap& tap, T outside, T* to) {
  const int64_t y = run.y + tap.u * s.dilation[0], x = run.x + tap.v * s.dilation[1];
  const int64_t step = s.stride[1];
  if (y < 0 || y >= s.height) {
    std::fill_n(to, run.length, outside);
    return;
  }
  const T* from = run.image + (tap.c * s.height + y) * s.width + x;
#ifdef __AVX512F__
  // A panel has at most 32 columns.
  const __m256i margin = _mm256_set1_epi8(static_cast<char>(outside));
  const auto below = [](int64_t n) {
    return static_cast<uint32_t>((uint64_t{1} << std::clamp<int64_t>(n, 0, 32)) - 1);
  };
  if (step == 1) {
    const uint32_t inside = below(std::min(run.length, s.width - x)) & ~below(-x);
    _mm256_mask_storeu_epi8(to, below(run.length), _mm256_mask_loadu_epi8(margin, inside, from));
    return;
  }
  if (step == 2) {
    const VecMask<uint8_t> inside(-x, std::min(2 * run.length - 1, s.width - x));
    const __m256i even = _mm512_maskz_cvtepi16_epi8(
        ~__mmask32{0}, __m512i(inside.load(reinterpret_cast<const uint8_t*>(from))));
    // Every second bit of the mask.
    const auto seen = static_cast<uint32_t>(
        _mm512_movepi16_mask(_mm512_slli_epi16(_mm512_movm_epi8(inside.mask()), 8)));
    _mm256_mask_storeu_epi8(to, below(run.length), _mm256_mask_mov_epi8(margin, seen, even));
    return;
  }
#endif
  const Inside inside(x, s.width, step, run.length);
  std::fill(to, to + inside.begin, outside);
  for (int64_t j = inside.begin; j < inside.end; ++j) to[j] = from[j * step];
  std::fill(to + inside.end, to + run.length, outside);
}

// The im2col matrix as operand B, packed from bytes: k runs over (channel, tap), columns are results.
template <class Format>
struct BytePanels {
  using T = typename Format::Right;
  const ConvShapes& s;
  const T* images;
  int64_t first;  // column
  T outside;

  void pack(int64_t p, int64_t k, int64_t j, int64_t n, typename Format::Packed* to) const {
    constexpr int64_t panel = kNR<typename Format::Packed>, rows = 64;
    static_assert(panel <= 32 || kVectorBytes < 64);
    j += first;
    const int64_t pixel = j % s.results();
    if (s.is_pointwise() && pixel + n <= s.results()) {  // the image is the matrix
      const T* image = images + j / s.results() * s.channels * s.pixels();
      return pack_panel(Format(), {image + p * s.pixels() + pixel, s.pixels(), 1}, k, n, to);
    }
    alignas(64) T taps[rows * panel];
    for (int64_t q = 0; q < k; q += rows) {
      const int64_t count = std::min(rows, k - q);
      for_runs(s, images, j, n, [&](const ImageRun<T>& run, int64_t at) {
        Tap tap(s, p + q);
        for (int64_t r = 0; r < count; ++r, tap.next(s))
          copy_run_of_bytes(s, run, tap, outside, taps + r * panel + at);
      });
      pack_panel(Format(), Matrix<T>{taps, panel, 1}, count, n, to + q / Format::kDepth * panel);
    }
  }
};

template <class X, class W>
struct Convolution {
  ConvShapes s;
  const X* x;
  const W* weight;
  int32_t* out;
  X x_zero;
  const int32_t *starts, *weight_zeros;  // for each filter; the second may be NULL
};

// Sums of all pixels under the taps of `columns` results, from result `first` on.
template <class X, class W>
void sum_windows(const Convolution<X, W>& c, const X* images, int64_t first, int64_t columns,
                 int32_t* sums) {
  std::fill_n(sums, columns, 0);
  constexpr int64_t part = 32;
  for (int64_t j = 0; j < columns; j += part) {
    for_runs(c.s, images, first + j, std::min(part, columns - j),
             [&](const ImageRun<X>& run, int64_t at) {
               Tap tap(c.s, 0);
               X pixels[part];
               for (int64_t p = 0; p < c.s.depth(); ++p, tap.next(c.s)) {
                 copy_run_of_bytes(c.s, run, tap, c.x_zero, pixels);
                 for (int64_t i = 0; i < run.length; ++i) sums[j + at + i] += pixels[i];
               }
             });
  }
}

// Operands as they are: the weight as a matrix, and panels of bytes.
template <class Format>
struct Bytes {
  using X = typename Format::Right;
  const Convolution<X, typename Format::Left>& c;
  int64_t depth() const { return c.s.depth(); }
  const typename Format::Left* weight() const { return c.weight; }
  BytePanels<Format> panels(int64_t group, int64_t first) const {
    return {c.s, c.x + group * c.s.group_channels() * c.s.pixels(), first, c.x_zero};
  }
};

template <class Format, class Operands>
tenon_status multiply(tenon_ctx* ctx,
                      const Convolution<typename Format::Right, typename Format::Left>& c,
                      const Operands& operands, tenon_err* err) {
  const ConvShapes& s = c.s;
  const int64_t filters = s.group_filters(), depth = operands.depth();
  const BatchOffsets groups{1, {s.groups}, {1}, {0}, {filters * s.results()}};
  const Tiles tiles(Type<Format>{}, filters, s.batch * s.results(), depth, filters, kBlockColumns,
                    groups);
  const int64_t packed =
      rounded_up<64>(blocked_bytes<typename Format::Product>(tiles.rows(), tiles.columns()));
  const int64_t sums = c.weight_zeros ? tiles.columns() * int64_t{sizeof(int32_t)} : 0;
  return parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), packed + sums, err, [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        const int64_t group = tile.a;
        const Results<int32_t> results(s, c.out + tile.c + tile.i * s.results(), tile.j);
        const int64_t first = group * filters + tile.i;  // filter
        auto* windows = reinterpret_cast<int32_t*>(static_cast<char*>(memory) + packed);
        if (c.weight_zeros)
          sum_windows(c, c.x + group * s.group_channels() * s.pixels(), tile.j, tile.columns,
                      windows);
        for (int64_t j = 0, run; j < tile.columns; j += run) {
          run = std::min(tile.columns - j, results.dense_from(j));
          for (int64_t f = 0; f < tile.rows; ++f) {
            int32_t* to = results.at(j) + f * results.row;
            const int32_t start = c.starts[first + f];
            const int32_t zero = c.weight_zeros ? c.weight_zeros[first + f] : 0;
            if (zero == 0) {
              std::fill_n(to, run, start);
            } else {
              for (int64_t i = 0; i < run; ++i) to[i] = start - zero * windows[j + i];
            }
          }
        }
        multiply_blocked<typename Format::Product>(
            tile.rows, tile.columns, depth,
            MatrixRows<Format>{{operands.weight() + first * depth, depth, 1}},
            operands.panels(group, tile.j), results, true, memory);
      });
}

template <class Format>
tenon_status multiply_bytes(tenon_ctx* ctx,
                            const Convolution<typename Format::Right, typename Format::Left>& c,
                            tenon_err* err) {
  trace("conv2d_integer", Format::kName);
  return multiply<Format>(ctx, c, Bytes<Format>{c}, err);
}

#ifdef __AVX512F__
template <class Format>
tenon_status multiply_quads(tenon_ctx* ctx,
                            const Convolution<typename Format::Right, typename Format::Left>& c,
                            tenon_err* err) {
  if (!IntegerQuads<Format>::pay(c.s)) return multiply_bytes<Format>(ctx, c, err);
  trace("conv2d_integer", "AVX512-VNNI quads");
  IntegerQuads<Format> quads(c.s);
  void* memory = nullptr;
  TENON_TRY(host->scratch(ctx, static_cast<uint64_t>(quads.bytes()), &memory, err));
  quads.fill(c.x, c.weight, c.x_zero, memory);
  return multiply<Format>(ctx, c, quads, err);
}
#endif

// A filter for each channel, or some: each reads one plane, tap by tap.
template <class X, class W>
void multiply_depthwise(const Convolution<X, W>& c) {
  const ConvShapes& s = c.s;
  trace("conv2d_integer", "depthwise");
  parallel(s.batch * s.filters, s.results() * s.taps() / 4, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t image = plane / s.filters, filter = plane % s.filters;
      const X* from = c.x + (image * s.channels + filter / s.group_filters()) * s.pixels();
      const int32_t zero = c.weight_zeros ? c.weight_zeros[filter] : 0, x_zero = c.x_zero;
      for (int64_t row = 0; row < s.rows; ++row) {
        int32_t* to = c.out + (plane * s.rows + row) * s.columns;
        std::fill_n(to, s.columns, 0);
        for (int64_t tap = 0; tap < s.taps(); ++tap) {
          const int64_t y = row * s.stride[0] - s.padding[0] + tap / s.kernel[1] * s.dilation[0];
          if (y < 0 || y >= s.height) continue;
          const int64_t first = tap % s.kernel[1] * s.dilation[1] - s.padding[1];
          const Inside inside(first, s.width, s.stride[1], s.columns);
          const int32_t factor = c.weight[filter * s.taps() + tap] - zero;
          const X* pixels = from + y * s.width + first;
          if (s.stride[1] == 1) {
            for (int64_t i = inside.begin; i < inside.end; ++i)
              to[i] += factor * (pixels[i] - x_zero);
          } else {
            for (int64_t i = inside.begin; i < inside.end; ++i)
              to[i] += factor * (pixels[i * s.stride[1]] - x_zero);
          }
        }
      }
    }
  });
}

template <class X, class W>
tenon_status convolve(tenon_ctx* ctx, Convolution<X, W> c, const tenon_tensor* weight_zero,
                      tenon_err* err) {
  const ConvShapes& s = c.s;
  void* memory = nullptr;
  const auto bytes = 2 * static_cast<uint64_t>(s.filters) * sizeof(int32_t);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK)
    return status;
  auto *starts = static_cast<int32_t*>(memory), *zeros = starts + s.filters;
  const int64_t depth = s.depth();
  parallel(s.filters, depth / 8 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      zeros[f] = static_cast<int32_t>(zero_point(weight_zero, f));
      int32_t sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += c.weight[f * depth + p];
      starts[f] = int32_t{c.x_zero} * (static_cast<int32_t>(depth) * zeros[f] - sum);
    }
  });
  c.starts = starts;
  const bool is_moved = std::any_of(zeros, zeros + s.filters, [](int32_t zero) { return zero; });
  c.weight_zeros = is_moved ? zeros : nullptr;
  if (s.is_depthwise()) return multiply_depthwise(c), TENON_OK;
#ifdef __AVX512F__
  if (has_vnni() && has_tiles()) return multiply_bytes<Int8Amx<W, X>>(ctx, c, err);
  if (has_vnni()) return multiply_quads<Int8Quads<W, X>>(ctx, c, err);
#endif
  return multiply_bytes<Int8Pairs<W, X>>(ctx, c, err);
}

tenon_status conv2d_integer(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                            const tenon_tensor* x_zero_point, const tenon_tensor* weight_zero_point,
                            const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                            uint64_t padding_count, const int64_t* dilation,
                            uint64_t dilation_count, int64_t groups, tenon_tensor* out,
                            tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  ConvShapes s;
  s.batch = x->shape[0];
  s.channels = x->shape[1];
  s.height = x->shape[2];
  s.width = x->shape[3];
  s.filters = weight->shape[0];
  s.kernel[0] = weight->shape[2];
  s.kernel[1] = weight->shape[3];
  s.rows = out->shape[2];
  s.columns = out->shape[3];
  s.groups = groups;
  read_pair(stride, stride_count, 1, s.stride);
  read_pair(padding, padding_count, 0, s.padding);
  read_pair(dilation, dilation_count, 1, s.dilation);
  s = flattened(s);
  const auto run = [&]<class X, class W>(Type<X>, Type<W>) {
    Convolution<X, W> c{};
    c.s = s;
    c.x = data_of<X>(x);
    c.weight = data_of<W>(weight);
    c.out = data_of<int32_t>(out);
    const int64_t point = zero_point(x_zero_point, 0);
    c.x_zero = static_cast<X>(point);
    if (c.x_zero != point)
      return fail_format(
          err, TENON_INVALID_ARGUMENT,
          "[conv2d_integer] expected an x_zero_point that the dtype of x, %s, holds, got %lld",
          host->dtype_name(x->dtype), static_cast<long long>(point));
    return convolve(ctx, c, weight_zero_point, err);
  };
  const auto with_weight = [&]<class X>(Type<X> left) {
    return weight->dtype == TENON_DTYPE_I8 ? run(left, Type<int8_t>{}) : run(left, Type<uint8_t>{});
  };
  return x->dtype == TENON_DTYPE_I8 ? with_weight(Type<int8_t>{}) : with_weight(Type<uint8_t>{});
}
TENON_BOX_conv2d_integer(conv2d_integer_boxed, conv2d_integer);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_conv2d_integer(
    conv2d_integer, nullptr, dtype_bit(TENON_DTYPE_I8) | dtype_bit(TENON_DTYPE_U8), 0, 0)};

}  // namespace

KernelList conv2d_integer_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
