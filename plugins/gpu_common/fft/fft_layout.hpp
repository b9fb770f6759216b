// SPDX-License-Identifier: Apache-2.0
// Transforms of up to three axes of a tensor as the libraries describe them ("advanced data layout" of cuFFT): nested axes
// with one stride, and one distance from transform to transform.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "fft/fft.hpp"

namespace gpu::fft {

inline constexpr int kMaxRank = 3;

// One side of a transform. `embed[i]`, i > 0: how often axis i fits the stride of axis i - 1.
struct Side {
  std::array<Number, kMaxRank> embed = {};
  Number stride = 1, distance = 1;

  bool operator==(const Side&) const = default;
};

// By which plans are remembered. Integers of one size, so that a hash can take them as words.
struct Layout {
  Number type = kComplexToComplex;
  Number rank = 0, batch = 1;
  std::array<Number, kMaxRank> n = {};
  Side in, out;

  bool operator==(const Layout&) const = default;
};

struct LayoutHash {
  size_t operator()(const Layout& layout) const;
};

// An axis of a transform: its length, the extents that both sides have along it (which differ for the one that a real
// transform halves), and their strides in elements.
struct Axis {
  int64_t length, in_extent, out_extent, in_stride, out_stride;
};

// `axes` are transformed, the last one is that which a real transform halves; `others` are not. None: the strides do not
// nest like this.
std::optional<Layout> describe(int type, std::span<const Axis> axes, std::span<const Axis> others);

}  // namespace gpu::fft
