// SPDX-License-Identifier: Apache-2.0
// conv2d and its gradients as matrix products over images that are unrolled panel by panel.
#include "conv_bfloat16.hpp"
#include "conv_depthwise.hpp"
#include "conv_depthwise_grad.hpp"
#include "conv_depthwise_rows.hpp"
#include "conv_direct.hpp"
#include "conv_unroll.hpp"
#include "conv_winograd.hpp"
#include "conv_winograd_grad.hpp"
#include "gemm_tiles.hpp"
#include "kernel.hpp"
#include "parallel_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

ConvShapes shapes_of(const int64_t* image, const int64_t* weight, const int64_t* result,
                     const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                     uint64_t padding_count, const int64_t* dilation, uint64_t dilation_count,
                     int64_t groups) {
  ConvShapes s;
  s.batch = image[0], s.channels = image[1], s.height = image[2], s.width = image[3];
  s.filters = weight[0], s.kernel[0] = weight[2], s.kernel[1] = weight[3];
  s.rows = result[2], s.columns = result[3];
  s.groups = groups;
  read_pair(stride, stride_count, 1, s.stride);
  read_pair(padding, padding_count, 0, s.padding);
  read_pair(dilation, dilation_count, 1, s.dilation);
  return flattened(s);
}

// The float dtype that T is.
template <class T>
inline constexpr int kDtypeOf = std::is_same_v<T, float> ? TENON_DTYPE_F32 : TENON_DTYPE_F64;

// Dense images [image, channel, pixel].
Images dense_images(const void* data, int dtype, int64_t channels, int64_t pixels) {
  return {data, dtype, channels * pixels, pixels, 1};
}

// Every result of `filters` filters, among n results from the first one on, starts as the bias.
template <class T>
void fill_results(const Results<T>& results, int64_t filters, int64_t n, const T* bias) {
  for (int64_t j = 0; j < n;) {
    const int64_t run = std::min(n - j, results.dense_from(j));
    T* to = results.at(j);
    for (int64_t f = 0; f < filters; ++f) {
      std::fill_n(to + f * results.row, run, bias ? bias[f] : T(0));
    }
    j += run;
  }
}

// `out` has the dtype of x.
template <class T>
tenon_status run_forward_depthwise(tenon_ctx* ctx, const ConvShapes& s, const Images& x,
                                   const T* weight, const T* bias, void* out, tenon_err* err) {
  if (suits_depthwise_rows<T>(s, x)) {
    return run_depthwise_rows<T>(ctx, s, x, weight, bias, out, err);
  }
  return run_depthwise<T>(ctx, s, ChannelReader<T>(x), weight, bias,
                          ChannelWriter<T>(out, x.dtype, s.results()), err);
}

// out[image, group] = weight[group] * unrolled x[image, group], the images side by side.
template <class T>
tenon_status run_forward(tenon_ctx* ctx, const ConvShapes& s, const T* x, const T* weight,
                         const T* bias, T* out, tenon_err* err) {
  if (s.is_depthwise()) {
    const Images images = dense_images(x, kDtypeOf<T>, s.channels, s.pixels());
    return run_forward_depthwise<T>(ctx, s, images, weight, bias, out, err);
  }
  if (is_direct<T>(s)) return run_forward_direct<T>(ctx, s, x, weight, bias, out, err);
  if (suits_winograd(s)) {
    bool finite = false;
    const tenon_status status = run_winograd<T>(ctx, s, x, weight, bias, out, &finite, err);
    if (status != TENON_OK || finite) return status;
  }
  const int64_t filters = s.group_filters(), depth = s.depth();
  const BatchOffsets groups{
      1, {s.groups}, {filters * depth}, {s.group_channels() * s.pixels()}, {filters * s.results()}};
  const Tiles tiles(filters, s.batch * s.results(), depth, kPanel<T>, filters, kBlockN, groups);
  return parallel_with_memory(
      ctx, tiles.count(), tiles.work(), blocked_bytes<Plain<T>>(tiles.rows(), tiles.columns()), err,
      [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        const Results<T> results(s, out + tile.c + tile.i * s.results(), tile.j);
        if (bias || depth == 0) {
          const int64_t first = tile.c / std::max<int64_t>(1, s.results()) + tile.i;
          fill_results<T>(results, tile.rows, tile.columns, bias ? bias + first : nullptr);
        }
        multiply_blocked<Plain<T>>(
            tile.rows, tile.columns, depth,
            MatrixRows<Plain<T>>{{weight + tile.a + tile.i * depth, depth, 1}},
            ImagePanels<T>(s, x + tile.b, tile.j), results, bias != nullptr, memory);
      });
}

// The weights of a phase as filters of channels: [group, channel, filter of the group, tap, tap].
template <class T>
void turn_weight(const ConvShapes& s, const Phase& down, const Phase& across, const T* weight,
                 T* to) {
  const int64_t taps = down.taps * across.taps;
  parallel(s.channels, s.group_filters() * taps, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t g = c / s.group_channels();
      T* row = to + c * s.group_filters() * taps;
      for (int64_t f = 0; f < s.group_filters(); ++f) {
        const T* from =
            weight +
            ((g * s.group_filters() + f) * s.group_channels() + c % s.group_channels()) * s.taps();
        for (int64_t t = down.taps - 1; t >= 0; --t) {
          for (int64_t r = across.taps - 1; r >= 0; --r) {
            *row++ =
                from[(down.start + t * down.step) * s.kernel[1] + across.start + r * across.step];
          }
        }
      }
    }
  });
}

// The pixels of one phase to their places; zeros if no tap sees them.
template <class T>
void place_phase(const ConvShapes& s, int64_t first_row, int64_t first_column, const Phase& down,
                 const Phase& across, const T* from, T* x) {
  const int64_t count = down.pixels * across.pixels;
  parallel(s.batch * s.channels, count, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      for (int64_t a = 0; a < down.pixels; ++a) {
        T* to = x + plane * s.pixels() + (first_row + a * s.stride[0]) * s.width + first_column;
        const T* row = from ? from + plane * count + a * across.pixels : nullptr;
        for (int64_t b = 0; b < across.pixels; ++b) to[b * s.stride[1]] = row ? row[b] : T(0);
      }
    }
  });
}

// Strides cut the pixels into phases that see different taps, each a convolution of stride 1.
template <class T>
tenon_status run_input_grad(tenon_ctx* ctx, const ConvShapes& s, const T* grad, const T* weight,
                            T* x, tenon_err* err) {
  const bool whole = s.stride[0] == 1 && s.stride[1] == 1;
  void *turned = nullptr, *part = nullptr;
  const auto weights = static_cast<uint64_t>(s.filters * s.depth());
  tenon_status status = host->scratch(ctx, weights * sizeof(T), &turned, err);
  if (status == TENON_OK && !whole) {
    const int64_t rows = (s.height + s.stride[0] - 1) / s.stride[0];
    const int64_t columns = (s.width + s.stride[1] - 1) / s.stride[1];
    const auto pixels = static_cast<uint64_t>(s.batch * s.channels * rows * columns);
    status = host->scratch(ctx, pixels * sizeof(T), &part, err);
  }
  for (int64_t i = 0; i < s.stride[0]; ++i) {
    const Phase down(i, s.height, s.kernel[0], s.stride[0], s.padding[0], s.dilation[0]);
    for (int64_t j = 0; j < s.stride[1] && status == TENON_OK; ++j) {
      const Phase across(j, s.width, s.kernel[1], s.stride[1], s.padding[1], s.dilation[1]);
      if (down.pixels == 0 || across.pixels == 0) continue;
      const bool seen = down.taps > 0 && across.taps > 0;
      if (seen) {
        ConvShapes turn = s;
        turn.channels = s.filters, turn.filters = s.channels;
        turn.height = s.rows, turn.width = s.columns;
        turn.rows = down.pixels, turn.columns = across.pixels;
        turn.kernel[0] = down.taps, turn.kernel[1] = across.taps;
        turn.stride[0] = turn.stride[1] = 1;
        turn.padding[0] = down.padding, turn.padding[1] = across.padding;
        turn.dilation[0] = down.dilation, turn.dilation[1] = across.dilation;
        turn_weight(s, down, across, weight, static_cast<T*>(turned));
        T* to = whole ? x : static_cast<T*>(part);
        if constexpr (std::is_same_v<T, BFloat16>) {
          status = run_forward_bfloat16(ctx, turn, grad, static_cast<T*>(turned), nullptr, to, err);
        } else {
          status = run_forward<T>(ctx, turn, grad, static_cast<T*>(turned), nullptr, to, err);
        }
      }
      if (!whole || !seen) {
        place_phase(s, i, j, down, across, seen ? static_cast<T*>(part) : nullptr, x);
      }
    }
  }
  return status;
}

// In the ways that read blocks of channels, whatever the images hold; `*done` tells whether one of
// them gave the results.
template <class T>
tenon_status run_weight_grad_by_channels(tenon_ctx* ctx, const ConvShapes& s, Images grad,
                                         const Images& x, T* weight, bool* done, tenon_err* err) {
  if (s.is_depthwise()) {
    *done = true;
    grad.channel *= s.group_filters();
    return run_depthwise_grad<T>(ctx, s, ChannelReader<T>(grad), ChannelReader<T>(x), weight, err);
  }
  if (!suits_winograd(s)) return TENON_OK;
  return run_winograd_grad<T>(ctx, s, ChannelReader<T>(grad), ChannelReader<T>(x), weight, done,
                              err);
}

// weight[group]^T = unrolled x[group] * grad[group]^T, over all images at once; then turned.
template <class T>
tenon_status run_weight_grad(tenon_ctx* ctx, const ConvShapes& s, const T* grad, const T* x,
                             T* weight, tenon_err* err) {
  const int64_t filters = s.group_filters(), depth = s.depth(), sums = s.batch * s.results();
  if (sums == 0) return std::fill_n(weight, s.filters * depth, T(0)), TENON_OK;
  bool done = false;
  if (const tenon_status status = run_weight_grad_by_channels<T>(
          ctx, s, dense_images(grad, kDtypeOf<T>, s.filters, s.results()),
          dense_images(x, kDtypeOf<T>, s.channels, s.pixels()), weight, &done, err);
      done || status != TENON_OK) {
    return status;
  }
  void* memory = nullptr;
  tenon_status status =
      host->scratch(ctx, static_cast<uint64_t>(s.filters * depth) * sizeof(T), &memory, err);
  if (status != TENON_OK) return status;
  T* turned = static_cast<T*>(memory);
  const BatchOffsets groups{
      1, {s.groups}, {s.group_channels() * s.pixels()}, {filters * s.results()}, {filters * depth}};
  const Tiles tiles(depth, filters, sums, kPanel<T>, depth, filters, groups);
  status = parallel_with_memory(
      ctx, tiles.count(), tiles.work(), blocked_bytes<Plain<T>>(tiles.rows(), tiles.columns()), err,
      [&](int64_t t, void* own) {
        const OutputTile tile = tiles.at(t);
        multiply_blocked<Plain<T>>(
            tile.rows, tile.columns, sums, ImageRows<T>(s, x + tile.a, tile.i),
            Results<const T>(s, grad + tile.b + tile.j * s.results(), 0),
            MatrixTarget<T>{turned + tile.c + tile.i * filters + tile.j, filters}, false, own);
      });
  if (status != TENON_OK) return status;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int side = 32 / sizeof(T);
  const int64_t bands = (filters + side - 1) / side;
  parallel(s.groups * bands, side * depth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t f = i % bands * side, group = i / bands * filters * depth;
      transpose_block<Bits, side>(reinterpret_cast<const Bits*>(turned + group + f), filters,
                                  reinterpret_cast<Bits*>(weight + group + f * depth), depth, depth,
                                  std::min<int64_t>(side, filters - f));
    }
  });
  return TENON_OK;
}

tenon_status conv2d(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                    const tenon_tensor* bias, const int64_t* stride, uint64_t stride_count,
                    const int64_t* padding, uint64_t padding_count, const int64_t* dilation,
                    uint64_t dilation_count, int64_t groups, tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  const ConvShapes s = shapes_of(x->shape, weight->shape, out->shape, stride, stride_count, padding,
                                 padding_count, dilation, dilation_count, groups);
  if (is_reduced_float(x->dtype)) {
    if (s.is_depthwise()) {
      Float32Call call(ctx, err);
      const tenon_tensor *w = call.argument(weight), *b = call.argument(bias);
      if (call.status() != TENON_OK) return call.status();
      const Images images = dense_images(x->data, x->dtype, s.channels, s.pixels());
      return run_forward_depthwise<float>(ctx, s, images, data_of<float>(w),
                                          b ? data_of<float>(b) : nullptr, out->data, err);
    }
#ifdef __AVX512F__
    if (x->dtype == TENON_DTYPE_BF16 && suits_bfloat16(s)) {
      return run_forward_bfloat16(ctx, s, data_of<BFloat16>(x), data_of<BFloat16>(weight),
                                  bias ? data_of<BFloat16>(bias) : nullptr, data_of<BFloat16>(out),
                                  err);
    }
#endif
    return run_as_float32(conv2d, ctx, err, x, weight, bias, stride, stride_count, padding,
                          padding_count, dilation, dilation_count, groups, out);
  }
  const auto run = [&]<class T>(Type<T>) {
    return run_forward<T>(ctx, s, data_of<T>(x), data_of<T>(weight),
                          bias ? data_of<T>(bias) : nullptr, data_of<T>(out), err);
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d(conv2d_boxed, conv2d)

    tenon_status
    conv2d_input_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* weight,
                      const int64_t* input_shape, uint64_t input_shape_count, const int64_t* stride,
                      uint64_t stride_count, const int64_t* padding, uint64_t padding_count,
                      const int64_t* dilation, uint64_t dilation_count, int64_t groups,
                      tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  const ConvShapes s = shapes_of(out->shape, weight->shape, grad_out->shape, stride, stride_count,
                                 padding, padding_count, dilation, dilation_count, groups);
  if (is_reduced_float(weight->dtype)) {
#ifdef __AVX512F__
    const bool enough = s.group_channels() >= 16 && s.group_filters() * s.taps() >= 16;
    if (weight->dtype == TENON_DTYPE_BF16 && enough && has_bfloat16_products()) {
      return run_input_grad<BFloat16>(ctx, s, data_of<BFloat16>(grad_out),
                                      data_of<BFloat16>(weight), data_of<BFloat16>(out), err);
    }
#endif
    return run_as_float32(conv2d_input_grad, ctx, err, grad_out, weight, input_shape,
                          input_shape_count, stride, stride_count, padding, padding_count, dilation,
                          dilation_count, groups, out);
  }
  const auto run = [&]<class T>(Type<T>) {
    return run_input_grad<T>(ctx, s, data_of<T>(grad_out), data_of<T>(weight), data_of<T>(out),
                             err);
  };
  return weight->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d_input_grad(conv2d_input_grad_boxed, conv2d_input_grad)

    tenon_status
    conv2d_weight_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* x,
                       const int64_t* weight_shape, uint64_t weight_shape_count,
                       const int64_t* stride, uint64_t stride_count, const int64_t* padding,
                       uint64_t padding_count, const int64_t* dilation, uint64_t dilation_count,
                       int64_t groups, tenon_tensor* out, tenon_err* err) {
  if (is_reduced_float(x->dtype)) {
    const ConvShapes s = shapes_of(x->shape, out->shape, grad_out->shape, stride, stride_count,
                                   padding, padding_count, dilation, dilation_count, groups);
    if (out->numel > 0 && x->numel > 0 && (s.is_depthwise() || suits_winograd(s))) {
      Float32Call call(ctx, err);
      tenon_tensor* sums = call.argument(out);
      bool done = false;
      if (call.status() != TENON_OK) return call.status();
      const tenon_status status = run_weight_grad_by_channels<float>(
          ctx, s, dense_images(grad_out->data, x->dtype, s.filters, s.results()),
          dense_images(x->data, x->dtype, s.channels, s.pixels()), data_of<float>(sums), &done,
          err);
      if (status != TENON_OK || done) return call.finish(status);
    }
    return run_as_float32(conv2d_weight_grad, ctx, err, grad_out, x, weight_shape,
                          weight_shape_count, stride, stride_count, padding, padding_count,
                          dilation, dilation_count, groups, out);
  }
  if (out->numel == 0) return TENON_OK;
  const ConvShapes s = shapes_of(x->shape, out->shape, grad_out->shape, stride, stride_count,
                                 padding, padding_count, dilation, dilation_count, groups);
  const auto run = [&]<class T>(Type<T>) {
    return run_weight_grad<T>(ctx, s, data_of<T>(grad_out), data_of<T>(x), data_of<T>(out), err);
  };
  return x->dtype == TENON_DTYPE_F32 ? run(Type<float>{}) : run(Type<double>{});
}
TENON_BOX_conv2d_weight_grad(conv2d_weight_grad_boxed, conv2d_weight_grad)

    const tenon_kernel_def kKernels[] = {
        TENON_KERNEL_conv2d(conv2d, nullptr, kFloats, 0, 0),
        TENON_KERNEL_conv2d_input_grad(conv2d_input_grad, nullptr, kFloats, 0, 0),
        TENON_KERNEL_conv2d_weight_grad(conv2d_weight_grad, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList conv2d_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
