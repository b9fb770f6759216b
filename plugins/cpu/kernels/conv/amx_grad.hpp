// SPDX-License-Identifier: Apache-2.0
// Gradients of the weights of convolutions of bfloat16 by matrix tiles: for every tap the product
// of the results' gradient, in planes, and the pixels under the tap, which are rows of pairs of
// flat images. A tap that is an odd number of pixels away sees pairs that begin with the second
// pixel: there are rows for both.
#pragma once

#include "conv/amx.hpp"
#include "gemm/blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// The results' gradient as planes of flat images, zeros between: A.
struct FlatPlanes {
  const ConvShapes& s;
  const FlatImages& flat;
  int64_t length;  // of one, in elements; not a multiple of a power of two lines

  FlatPlanes(const ConvShapes& shapes, const FlatImages& images)
      : s(shapes), flat(images), length(((images.count() + kSide - 1) / kSide | 1) * kSide) {}

  // Whole tiles of rows are read; what the last ones find there is not used.
  int64_t bytes() const { return (s.filters + 15) * length * 2; }
  // What fill() needs for itself: rows of images whose channels lie last.
  int64_t rows() const { return std::clamp<int64_t>(512 / s.columns, 1, s.rows); }
  int64_t buffer_bytes() const { return kSide * rows() * s.columns * 2; }

  // Up to 32 filters of one image.
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
  // One row, and the zeros behind it.
  void copy_row(const uint16_t* from, uint16_t* to) const {
    for (int64_t x = 0; x < flat.row(); x += kSide) {
      const auto some = Lanes<uint16_t>(s.columns - x).load(from + x);
      Lanes<uint16_t>(flat.row() - x).store(to + x, some);
    }
  }
};

// Places of the images whose sums are taken together: so many pairs stay in the first-level cache
// while the rows of all filters pass by.
inline constexpr int64_t kPlacesTogether = 2 * 256;

// Pairs of 32 channels under all taps, for so many places: B.
struct PixelPairs {
  const FlatImages& flat;
  int64_t length;  // rows of one part, of pairs that begin with an even pixel or with an odd one

  explicit PixelPairs(const FlatImages& images)
      : flat(images), length((kPlacesTogether + images.reach()) / 2 + 1) {}
  int64_t bytes() const {
    return 2 * flat.parts() * length * kSide * static_cast<int64_t>(sizeof(uint32_t));
  }
  // `lines` lines are there from `from` on.
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

// Sums [tap][filter][32 channels], rounded, to weights [filter][channel][tap]. Are all of them
// finite?
inline bool put_taps(const float* sums, int64_t filters, int64_t channels, int64_t taps,
                     BFloat16* to, int64_t row) {
  using Turn = Tile<uint16_t, 32>;
  constexpr int64_t most = Turn::kRows;  // taps that change places with their channels at a time
  alignas(64) uint16_t rounded[most * kSide] = {}, turned[kSide * most];
  uint32_t odd = 0;
  auto* weight = reinterpret_cast<uint16_t*>(to);
  for (int64_t f = 0; f < filters; ++f, sums += kSide, weight += row) {
    for (int64_t t = 0; t < taps; t += most) {
      const int64_t some = std::min(most, taps - t);
      for (int64_t i = 0; i < some; ++i) {
        const float* from = sums + (t + i) * filters * kSide;
        const __m512 low = _mm512_load_ps(from), high = _mm512_load_ps(from + 16);
        constexpr int kNotFinite = 0x99;
        odd |= _mm512_fpclass_ps_mask(low, kNotFinite) | _mm512_fpclass_ps_mask(high, kNotFinite);
        __m512i both;
        asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(low), "v"(high));
        _mm512_store_si512(rounded + i * kSide, both);
      }
      for (int64_t c = 0; c < kSide; c += Turn::kColumns) {
        Turn::transpose<false>(rounded + c, kSide, turned + c * most, most);
      }
      const Lanes<uint16_t> lanes(some);
      for (int64_t c = 0; c < channels; ++c) {
        _mm256_mask_storeu_epi16(weight + c * taps + t, static_cast<__mmask16>(lanes.mask()),
                                 _mm256_load_si256(reinterpret_cast<__m256i*>(turned + c * most)));
      }
    }
  }
  return odd == 0;
}

// `*finite` tells whether the results may stand: what lies between the results has a gradient of
// zero, but an infinity or a NaN among the pixels there makes it NaN.
inline tenon_status run_tiles_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
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

  // A block of channels, and of filters so many that there is enough to share out.
  const int64_t threads = host->thread_count();
  const int64_t wanted = threads == 1 ? 1 : (4 * threads + blocks - 1) / blocks;
  const int64_t slice = rounded_up<kSide>((filters + wanted - 1) / wanted);
  const int64_t slices = (filters + slice - 1) / slice;
  const int64_t sums_bytes = taps * slice * kSide * static_cast<int64_t>(sizeof(float));
  const int64_t work = flat.count() * slice * taps * 2;
  std::atomic<bool> all_finite = true;
  status = parallel_for_with_scratch(
      ctx, blocks * slices, work, sums_bytes + pairs.bytes(), err, [&](int64_t item, void* own) {
        const TileScope tiles;
        float* const sums = static_cast<float*>(own);
        auto* const panel = reinterpret_cast<uint32_t*>(static_cast<char*>(own) + sums_bytes);
        const int64_t block = item / slices, first = item % slices * slice;
        const int64_t group = block / lines.blocks, channel = block % lines.blocks * kSide;
        const int64_t rows = std::min(slice, filters - first);
        const int64_t columns = std::min(kSide, channels - channel);
        const uint16_t* a = grads + (group * filters + first) * planes.length;
        for (int64_t place = 0; place < flat.count(); place += kPlacesTogether) {
          const int64_t some = std::min(kPlacesTogether, flat.count() - place);
          pairs.fill(pixels + (block * lines.block() + place) * kSide, lines.length,
                     std::min(lines.length - place, 2 * pairs.length), panel);
          const PackedRows<uint32_t, kBlockK> left{reinterpret_cast<const uint32_t*>(a + place),
                                                   false, planes.length / 2};
          for (int64_t u = 0, t = 0; u < s.kernel[0]; ++u) {
            for (int64_t v = 0; v < s.kernel[1]; ++v, ++t) {
              multiply_panel<Format>(rows, kSide, (some + 1) / 2, left, pairs.under(u, v, panel),
                                     MatrixTarget<float>{sums + t * rows * kSide, kSide}, 0, 0,
                                     place > 0, [](Share) { return Ahead{}; });
            }
          }
        }
        BFloat16* to = weight + ((group * filters + first) * channels + channel) * taps;
        if (!put_taps(sums, rows, columns, taps, to, s.depth())) all_finite = false;
      });
  *finite = all_finite;
  return status;
}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
