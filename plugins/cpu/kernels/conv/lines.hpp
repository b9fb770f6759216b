// SPDX-License-Identifier: Apache-2.0
// Flat bfloat16 images in lines of 32 channels: one cache line for each pixel.
#pragma once

#include "conv/flat.hpp"
#include "conv/nchw16c_layout.hpp"
#include "gemm/pack.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// Channels of a line, and rows and columns of four AMX accumulators.
inline constexpr int64_t kSide = 32;
inline constexpr int64_t kLineBytes = kSide * sizeof(BFloat16);

// to[j * 32 + i] = from[i * stride + j] for up to 32 rows; missing rows are zeros.
inline void transpose_lines(const BFloat16* from, int64_t stride, int64_t rows, int64_t columns,
                            BFloat16* to) {
  using Turn = Tile<uint16_t, 64>;
  constexpr int64_t some = Turn::kColumns;
  const auto* source = reinterpret_cast<const uint16_t*>(from);
  auto* lines = reinterpret_cast<uint16_t*>(to);
  if (rows == kSide && columns >= some) {
    for (int64_t j = 0; j < columns; j += some) {
      const int64_t at = std::min(j, columns - some);  // The last tile overlaps the one before.
      Turn::transpose<false>(source + at, stride, lines + at * kSide, kSide);
    }
    return;
  }
  alignas(64) uint16_t block[kSide * some] = {}, transposed[kSide * some];
  for (int64_t j = 0; j < columns; j += some) {
    const int64_t count = std::min(some, columns - j);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t q = 0; q < count; ++q) block[i * some + q] = source[i * stride + j + q];
    }
    Turn::transpose<false>(block, some, transposed, kSide);
    std::copy_n(transposed, count * kSide, lines + j * kSide);
  }
}

// Images as rows of lines: [group][32 channels][part of the pixels].
struct ChannelLines {
  const ConvShapes& s;
  const FlatImages& flat;
  int64_t blocks, length;  // Blocks of channels of a group; length of a row in lines.

  ChannelLines(const ConvShapes& shapes, const FlatImages& images)
      : s(shapes),
        flat(images),
        blocks((s.group_channels() + kSide - 1) / kSide),
        length(flat.count() + flat.reach() + kSide) {}

  int64_t block() const { return flat.parts() * length; }
  int64_t bytes() const { return s.groups * blocks * block() * kLineBytes; }
  // Rows for which fill() needs a buffer to transpose pixels and channels.
  int64_t rows() const { return std::clamp<int64_t>(512 / s.width, 1, s.height); }
  int64_t buffer_bytes() const { return rows() * s.width * kLineBytes; }

  // Stores 32 channels of the pixels of one image to the parts to which they belong.
  void fill(const Images& x, int64_t image, int64_t i, BFloat16* lines, BFloat16* to) const {
    const int64_t group = i / blocks, c = i % blocks * kSide;
    const int64_t channels = std::min(kSide, s.group_channels() - c);
    const BFloat16* from = static_cast<const BFloat16*>(x.data) + image * x.image +
                           (group * s.group_channels() + c) * x.channel;
    to += (i * block() + image * flat.image()) * kSide;
    const int64_t behind = image + 1 == s.batch ? length - flat.count() : 0;
    for (int64_t p = 0; p < flat.parts(); ++p) {
      if (!flat.has_pixels(p)) clear(to + p * length * kSide, 0, flat.image());
      clear(to + p * length * kSide, flat.image(), flat.image() + behind);
    }
    if (x.pixel != 1) {
      const VecMask<uint16_t> some(channels);
      return index(from, x.pixel, 0, s.height, to,
                   [&](const BFloat16* pixels, int64_t n, auto* at) {
                     const auto* each = reinterpret_cast<const uint16_t*>(pixels);
                     for (int64_t j = 0; j < n; ++j)
                       at[j] = some.load(each + j * s.stride[1] * x.pixel);
                   });
    }
    if (s.stride[1] == 1 && s.width >= 8 && channels == kSide) {
      return index(from, 1, 0, s.height, to, [&](const BFloat16* pixels, int64_t n, auto* at) {
        transpose_lines(pixels, x.channel, kSide, n, reinterpret_cast<BFloat16*>(at));
      });
    }
    for (int64_t y = 0; y < s.height; y += rows()) {
      const int64_t end = std::min(s.height, y + rows());
      transpose_lines(from + y * s.width, x.channel, channels, (end - y) * s.width, lines);
      index(lines, kSide, y, end, to, [&](const BFloat16* pixels, int64_t n, auto* at) {
        const auto* each = reinterpret_cast<const uint16_t*>(pixels);
        for (int64_t j = 0; j < n; ++j) {
          at[j] = VecMask<uint16_t>::load_all(each + j * s.stride[1] * kSide);
        }
      });
    }
  }

 private:
  using Line = VectorOf<uint16_t>::type;
  static void clear(BFloat16* lines, int64_t begin, int64_t end) {
    std::fill(reinterpret_cast<Line*>(lines) + begin, reinterpret_cast<Line*>(lines) + end, Line{});
  }
  // Calls copy(from, n, to) for the runs of pixels in rows [y, end) and writes zeros between them;
  // `from` points to row y, whose pixels are `step` apart.
  template <class F>
  void index(const BFloat16* from, int64_t step, int64_t y, int64_t end, BFloat16* to,
             F&& copy) const {
    for (int64_t p = 0; p < flat.parts(); ++p, to += length * kSide) {
      const auto indices = flat.indices(p);
      flat.for_runs(p, y, end, [&](int64_t at, int64_t row, int64_t x, int64_t n) {
        clear(to, at == indices.first ? 0 : at - (flat.row() - n), at);
        copy(from + ((row - y) * s.width + x) * step, n, reinterpret_cast<Line*>(to) + at);
        if (at + n == indices.last) clear(to, indices.last, flat.image());
      });
    }
  }
};

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
