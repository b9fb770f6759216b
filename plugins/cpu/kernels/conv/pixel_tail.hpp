// SPDX-License-Identifier: Apache-2.0
// What follows a convolution by channel, in one pass over some pixels: see PixelTail.
#pragma once

#include "conv/nhwc_conv.hpp"
#include "simd/isa.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// y = (x - center) * scale + shift, of which the result is multiplied by the factor.
template <bool Norm>
[[gnu::noinline]] void multiply_pixels_by_channel(const PixelTail& tail, const PixelRows& rows,
                                                  int64_t channel, int64_t channels) {
  using Vector = VectorOf<float>::type;
  using Unaligned = VectorOf<float>::unaligned;
  for (int64_t c = channel; c < channel + channels; c += kWidth<float>) {
    const auto at = [&](const std::vector<float>& of) {
      return Norm || &of == &tail.factor ? Vector(*reinterpret_cast<const Unaligned*>(&of[c]))
                                         : Vector{};
    };
    const Vector center = at(tail.center), scale = at(tail.scale), shift = at(tail.shift),
                 factor = at(tail.factor);
    for (int64_t p = 0; p < rows.pixels; ++p) {
      Vector y = *reinterpret_cast<const Unaligned*>(rows.from + p * rows.from_row + c);
      if (Norm) y = (y - center) * scale + shift;
      *reinterpret_cast<Unaligned*>(rows.to + p * rows.to_row + c) = y * factor;
    }
  }
}

// y = relu((x - center) * scale + shift + addend + residual), of which each part may be missing.
template <bool Norm, bool Add, bool Residual, bool Relu>
[[gnu::noinline]] void add_to_pixels(const PixelTail& tail, const PixelRows& rows, int64_t channel,
                                     int64_t channels) {
  using Vector = VectorOf<float>::type;
  using Unaligned = VectorOf<float>::unaligned;
  for (int64_t c = channel; c < channel + channels; c += kWidth<float>) {
    const auto at = [&](bool is_needed, const std::vector<float>& of) {
      return is_needed ? Vector(*reinterpret_cast<const Unaligned*>(&of[c])) : Vector{};
    };
    const Vector center = at(Norm, tail.center), scale = at(Norm, tail.scale),
                 shift = at(Norm, tail.shift), addend = at(Add, tail.addend);
    for (int64_t p = 0; p < rows.pixels; ++p) {
      Vector y = *reinterpret_cast<const Unaligned*>(rows.from + p * rows.from_row + c);
      if (Norm) y = (y - center) * scale + shift;
      if (Add) y += addend;
      if (Residual) {
        y += *reinterpret_cast<const Unaligned*>(rows.residual + p * rows.residual_row + c);
      }
      if (Relu) y = y <= 0 ? Vector{} : y;  // NaN stays NaN.
      *reinterpret_cast<Unaligned*>(rows.to + p * rows.to_row + c) = y;
    }
  }
}

// All of the tail for some pixels and the whole vectors [channel, channel + channels).
inline void finish_pixels(const PixelTail& tail, PixelRows rows, int64_t channel,
                          int64_t channels) {
  bool has_norm = !tail.center.empty();
  if (!tail.factor.empty()) {  // A compiler would join a product with a sum behind it.
    has_norm ? multiply_pixels_by_channel<true>(tail, rows, channel, channels)
             : multiply_pixels_by_channel<false>(tail, rows, channel, channels);
    rows.from = rows.to;
    rows.from_row = rows.to_row;
    has_norm = false;
    if (tail.addend.empty() && !rows.residual && !tail.has_relu) return;
  }
  using Run = void (*)(const PixelTail&, const PixelRows&, int64_t, int64_t);
  static constexpr auto runs = []<int... I>(std::integer_sequence<int, I...>) {
    struct {
      Run of[sizeof...(I)];
    } all = {{add_to_pixels<(I & 1) != 0, (I & 2) != 0, (I & 4) != 0, (I & 8) != 0>...}};
    return all;
  }
  (std::make_integer_sequence<int, 16>());
  runs.of[has_norm + 2 * !tail.addend.empty() + 4 * (rows.residual != nullptr) + 8 * tail.has_relu](
      tail, rows, channel, channels);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
