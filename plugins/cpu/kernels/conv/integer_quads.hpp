// SPDX-License-Identifier: Apache-2.0
// Operands of an integer convolution by VNNI, which multiplies four bytes of each 32 bits. Of the images the pixels of four
// channels lie side by side, with margins around, so that a row of a panel is a piece of an image; without that, each panel
// interleaves its rows of bytes again, for all taps. The weight has its taps in the same order.
#pragma once

#include "conv/im2col.hpp"
#include "gemm/int8.hpp"
#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

template <class Format>
class IntegerQuads {
  using X = typename Format::Right;
  using W = typename Format::Left;

 public:
  explicit IntegerQuads(const ConvShapes& s) : s_(s), padded_(s) {
    padded_.channels = s.groups * channel_quads();
    padded_.height = (s.rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
    padded_.width = (s.columns - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    padded_.padding[0] = padded_.padding[1] = 0;
  }

  // Whether interleaving once costs less than doing so for each panel: enough results share the weight, and hardly any of
  // the four channels are missing.
  static bool pay(const ConvShapes& s) {
    return s.taps() > 1 && s.taps() <= kColumns && s.group_channels() >= 3 &&
           s.batch * s.results() >= 2 * s.group_filters();
  }

  int64_t depth() const { return 4 * channel_quads() * s_.taps(); }
  // Quads of a group of one image.
  int64_t group_pixels() const { return channel_quads() * padded_.pixels(); }
  int64_t bytes() const { return 4 * (images() + s_.filters * channel_quads() * s_.taps()); }

  // Fills `memory`, which holds `bytes()` from then on. Margins are `outside`.
  void fill(const X* x, const W* weight, X outside, void* memory) {
    quads_ = static_cast<uint32_t*>(memory);
    weight_ = quads_ + images();
    const uint32_t margin = static_cast<uint8_t>(outside) * 0x01010101u ^ Format::kZero;
    parallel(s_.batch * padded_.channels, padded_.pixels() / 4, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) fill_plane(x, plane, margin);
    });
    parallel(s_.filters, channel_quads() * s_.taps(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * channel_quads(); i < end * channel_quads(); ++i)
        fill_taps(weight, i);
    });
  }

  const W* weight() const { return reinterpret_cast<const W*>(weight_); }

  // The im2col matrix as operand B from column `first` on, with the images of the group at `quads`.
  struct Panels {
    const ConvShapes& padded;
    const uint32_t* quads;
    int64_t first;
    void pack(int64_t p, int64_t k, int64_t j, int64_t n, uint32_t* to) const {
      ImagePanels<uint32_t>(padded, quads, first).pack(p / 4, (k + 3) / 4, j, n, to);
    }
  };
  Panels panels(int64_t group, int64_t first) const {
    return {padded_, quads_ + group * group_pixels(), first};
  }

 private:
  static constexpr int64_t kColumns = 32;  // that are interleaved at once

  int64_t channel_quads() const { return (s_.group_channels() + 3) / 4; }
  int64_t images() const {
    // A multiple of a cache line, behind which the weight begins.
    return (s_.batch * padded_.channels * padded_.pixels() + 15) / 16 * 16;
  }

  // Four rows from `from` on, `stride` apart, `rows` of which are there.
  static void interleave(const void* from, int64_t stride, int64_t rows, int64_t n, uint32_t* to,
                         uint32_t flip) {
    alignas(64) uint32_t made[kColumns];
    interleave_rows(from, stride, rows, n, made, flip);
    if (n == kColumns) {
      std::memcpy(to, made, sizeof made);
    } else {
      std::memcpy(to, made, static_cast<size_t>(n) * sizeof(uint32_t));
    }
  }

  void fill_plane(const X* x, int64_t plane, uint32_t margin) const {
    const int64_t quad = plane % channel_quads(), group = plane / channel_quads();  // of all images
    const int64_t channels = std::min<int64_t>(4, s_.group_channels() - 4 * quad);
    const X* from = x + (group * s_.group_channels() + 4 * quad) * s_.pixels();
    uint32_t* to = quads_ + plane * padded_.pixels();
    const int64_t width = padded_.width, before = std::min(s_.padding[1], width),
                  seen = std::clamp<int64_t>(width - before, 0, s_.width);
    for (int64_t row = 0; row < padded_.height; ++row, to += width) {
      const int64_t y = row - s_.padding[0];
      if (y < 0 || y >= s_.height) {
        std::fill_n(to, width, margin);
        continue;
      }
      std::fill_n(to, before, margin);
      for (int64_t at = 0; at < seen; at += kColumns)
        interleave(from + y * s_.width + at, s_.pixels(), channels, std::min(kColumns, seen - at),
                   to + before + at, Format::kZero);
      std::fill(to + before + seen, to + width, margin);
    }
  }

  void fill_taps(const W* weight, int64_t i) const {
    const int64_t quad = i % channel_quads(), filter = i / channel_quads(), taps = s_.taps();
    const int64_t channels = std::min<int64_t>(4, s_.group_channels() - 4 * quad);
    interleave(weight + (filter * s_.group_channels() + 4 * quad) * taps, taps, channels, taps,
               weight_ + i * taps, 0);
  }

  ConvShapes s_, padded_;
  uint32_t* quads_ = nullptr;
  uint32_t* weight_ = nullptr;
};

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
