// SPDX-License-Identifier: Apache-2.0
// bfloat16 weight gradients on AMX. For each tap it multiplies the output gradient, in planes, by
// the pixels under the tap, which are rows of pairs of flat images. Under a tap that is an odd
// number of pixels away the pairs begin with the second pixel, so both kinds of rows are stored.
#pragma once

#include "conv/amx.hpp"
#include "gemm/blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// The output gradient as planes of flat images with zeros between rows: operand A.
struct FlatPlanes {
  const ConvShapes& s;
  const FlatImages& flat;
  int64_t length;  // Elements of one plane; not a multiple of a power of two cache lines.

  FlatPlanes(const ConvShapes& shapes, const FlatImages& images)
      : s(shapes), flat(images), length(((images.count() + kSide - 1) / kSide | 1) * kSide) {}

  // AMX reads whole tiles of rows; the products of the rows past the end are not used.
  int64_t bytes() const { return (s.filters + 15) * length * 2; }
  // Rows of NHWC images for which fill() needs a buffer.
  int64_t rows() const { return std::clamp<int64_t>(512 / s.columns, 1, s.rows); }
  int64_t buffer_bytes() const { return kSide * rows() * s.columns * 2; }

  // Fills in up to 32 filters of one image.
  void fill(const Images& grad, int64_t image, int64_t filter, uint16_t* buffer,
            uint16_t* to) const {
    const auto* from =
        static_cast<const uint16_t*>(grad.data) + image * grad.image + filter * grad.channel;
    const int64_t filters = std::min(kSide, s.filters - filter);
    to += filter * length + image * flat.image();
    for (int64_t y = 0; y < s.rows; y += rows()) {
      const int64_t end = std::min(s.rows, y + rows()), pixels = (end - y) * s.columns;
      const uint16_t* planes = from + y * s.columns;
      int64_t plane = grad.channel;
      if (grad.pixel != 1) {
        plane = pixels;
        transpose_block(from + y * s.columns * grad.pixel, grad.pixel, buffer, plane, pixels,
                        filters);
        planes = buffer;
      }
      for (int64_t f = 0; f < filters; ++f) {
        const uint16_t* row = planes + f * plane;
        for (int64_t i = y; i < end; ++i, row += s.columns) {
          copy_row(row, to + f * length + i * flat.row());
        }
      }
    }
    const bool last = image + 1 == s.batch;
    const int64_t behind = last ? length - image * flat.image() : flat.image();
    for (int64_t f = 0; f < filters; ++f) {
      std::fill(to + f * length + s.rows * flat.row(), to + f * length + behind, 0);
    }
  }

 private:
  // Copies one row and the zeros behind it.
  void copy_row(const uint16_t* from, uint16_t* to) const {
    for (int64_t x = 0; x < flat.row(); x += kSide) {
      const auto some = VecMask<uint16_t>(s.columns - x).load(from + x);
      VecMask<uint16_t>(flat.row() - x).store(to + x, some);
    }
  }
};

// Indices of the images that are accumulated together. Their pairs stay in the L1 cache while the
// rows of all filters stream past them.
inline constexpr int64_t kIndexBatch = 2 * 256;

// Pairs of 32 channels under all taps, for a batch of indices: operand B.
struct PixelPairs {
  const FlatImages& flat;
  int64_t length;  // Rows of one half: pairs that begin with an even pixel, or with an odd one.

  explicit PixelPairs(const FlatImages& images)
      : flat(images), length((kIndexBatch + images.reach()) / 2 + 1) {}
  int64_t bytes() const {
    return 2 * flat.parts() * length * kSide * static_cast<int64_t>(sizeof(uint32_t));
  }
  // `from` holds `lines` lines.
  void fill(const BFloat16* from, int64_t step, int64_t lines, uint32_t* to) const {
    for (int64_t p = 0; p < flat.parts(); ++p, from += step * kSide) {
      const BFloat16* end = from + lines * kSide;
      uint32_t *even = to + 2 * p * length * kSide, *odd = even + length * kSide;
      const int64_t rows = std::min(length, (lines + 1) / 2);
      for (int64_t i = 0; i < rows; ++i, even += kSide, odd += kSide) {
        const BFloat16 *first = from + 2 * i * kSide, *second = first + kSide,
                       *third = second + kSide;
        pair_rows(first, second < end ? second : nullptr, kSide, even);
        pair_rows(second < end ? second : first, third < end ? third : nullptr, kSide, odd);
      }
    }
  }
  const uint32_t* under(int64_t u, int64_t v, const uint32_t* pairs) const {
    const int64_t shift = flat.shift(u, v);
    return pairs + ((2 * flat.part(u, v) + shift % 2) * length + shift / 2) * kSide;
  }
};

// Rounds accumulators [tap][filter][32 channels] to weights [filter][channel][tap]. Returns whether
// all are finite.
inline bool store_taps(const float* accumulators, int64_t filters, int64_t channels, int64_t taps,
                       BFloat16* to, int64_t row) {
  using Turn = Tile<uint16_t, 32>;
  constexpr int64_t limit = Turn::kRows;  // Taps that are transposed with their channels at a time.
  alignas(64) uint16_t rounded[limit * kSide] = {}, transposed[kSide * limit];
  uint32_t odd = 0;
  auto* weight = reinterpret_cast<uint16_t*>(to);
  for (int64_t f = 0; f < filters; ++f, accumulators += kSide, weight += row) {
    for (int64_t t = 0; t < taps; t += limit) {
      const int64_t some = std::min(limit, taps - t);
      for (int64_t i = 0; i < some; ++i) {
        const float* from = accumulators + (t + i) * filters * kSide;
        const __m512 low = _mm512_load_ps(from), high = _mm512_load_ps(from + 16);
        constexpr int kNotFinite = 0x99;
        odd |= _mm512_fpclass_ps_mask(low, kNotFinite) | _mm512_fpclass_ps_mask(high, kNotFinite);
        __m512i both;
        asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(low), "v"(high));
        _mm512_store_si512(rounded + i * kSide, both);
      }
      for (int64_t c = 0; c < kSide; c += Turn::kColumns) {
        Turn::transpose<false>(rounded + c, kSide, transposed + c * limit, limit);
      }
      const VecMask<uint16_t> mask(some);
      for (int64_t c = 0; c < channels; ++c) {
        _mm256_mask_storeu_epi16(
            weight + c * taps + t, static_cast<__mmask16>(mask.mask()),
            _mm256_load_si256(reinterpret_cast<__m256i*>(transposed + c * limit)));
      }
    }
  }
  return odd == 0;
}

// `*finite` tells whether the results are valid: the gaps between results have a gradient of zero,
// but an infinity or NaN among their pixels makes the product NaN.
inline tenon_status run_weight_grad_amx(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                                        const Images& x, BFloat16* weight, bool* finite,
                                        tenon_err* err) {
  using Format = Bfloat16Tiles;
  const FlatImages flat(s);
  const ChannelLines lines(s, flat);
  const FlatPlanes planes(s, flat);
  const PixelPairs pairs(flat);
  const int64_t taps = s.taps(), filters = s.group_filters(), channels = s.group_channels();
  void* memory = nullptr;
  tenon_status status =
      host->scratch(ctx, static_cast<uint64_t>(lines.bytes() + planes.bytes()), &memory, err);
  if (status != TENON_OK) return status;
  auto* const pixels = static_cast<BFloat16*>(memory);
  auto* const grads = reinterpret_cast<uint16_t*>(static_cast<char*>(memory) + lines.bytes());
  const int64_t blocks = s.groups * lines.blocks;
  status = parallel_for_with_scratch(ctx, s.batch * blocks, s.pixels() * kSide / 4,
                                     lines.buffer_bytes(), err, [&](int64_t i, void* own) {
                                       lines.fill(x, i / blocks, i % blocks,
                                                  static_cast<BFloat16*>(own), pixels);
                                     });
  if (status != TENON_OK) return status;
  const int64_t some_filters = (s.filters + kSide - 1) / kSide;
  status = parallel_for_with_scratch(ctx, s.batch * some_filters, s.results() * kSide / 4,
                                     planes.buffer_bytes(), err, [&](int64_t i, void* own) {
                                       planes.fill(grad, i / some_filters, i % some_filters * kSide,
                                                   static_cast<uint16_t*>(own), grads);
                                     });
  if (status != TENON_OK) return status;

  // One task is a block of channels and a number of filters that leaves enough tasks for all
  // threads.
  const int64_t threads = host->thread_count();
  const int64_t wanted = threads == 1 ? 1 : (4 * threads + blocks - 1) / blocks;
  const int64_t slice = rounded_up<kSide>((filters + wanted - 1) / wanted);
  const int64_t slices = (filters + slice - 1) / slice;
  const int64_t accumulators_bytes = taps * slice * kSide * static_cast<int64_t>(sizeof(float));
  const int64_t work = flat.count() * slice * taps * 2;
  std::atomic<bool> all_finite = true;
  status = parallel_for_with_scratch(
      ctx, blocks * slices, work, accumulators_bytes + pairs.bytes(), err,
      [&](int64_t item, void* own) {
        const TileScope tiles;
        float* const accumulators = static_cast<float*>(own);
        auto* const panel =
            reinterpret_cast<uint32_t*>(static_cast<char*>(own) + accumulators_bytes);
        const int64_t block = item / slices, first = item % slices * slice;
        const int64_t group = block / lines.blocks, channel = block % lines.blocks * kSide;
        const int64_t rows = std::min(slice, filters - first);
        const int64_t columns = std::min(kSide, channels - channel);
        const uint16_t* a = grads + (group * filters + first) * planes.length;
        for (int64_t index = 0; index < flat.count(); index += kIndexBatch) {
          const int64_t some = std::min(kIndexBatch, flat.count() - index);
          pairs.fill(pixels + (block * lines.block() + index) * kSide, lines.length,
                     std::min(lines.length - index, 2 * pairs.length), panel);
          const PackedRows<uint32_t, kKC> left{reinterpret_cast<const uint32_t*>(a + index), false,
                                               planes.length / 2};
          for (int64_t u = 0, t = 0; u < s.kernel[0]; ++u) {
            for (int64_t v = 0; v < s.kernel[1]; ++v, ++t) {
              multiply_panel<Format>(rows, kSide, (some + 1) / 2, left, pairs.under(u, v, panel),
                                     MatrixEpilogue<float>{accumulators + t * rows * kSide, kSide},
                                     0, 0, index > 0, [](Chunk) { return PrefetchPlan{}; });
            }
          }
        }
        BFloat16* to = weight + ((group * filters + first) * channels + channel) * taps;
        if (!store_taps(accumulators, rows, columns, taps, to, s.depth())) all_finite = false;
      });
  *finite = all_finite;
  return status;
}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
