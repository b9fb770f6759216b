// SPDX-License-Identifier: Apache-2.0
// conv2d and its two gradients as one description, by which their plans are remembered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <tenon/abi.h>

namespace gpu::dnn {

enum ConvolutionKind : int { kForward, kInputGrad, kWeightGrad };

// Extents fit the int of cuDNN and MIOpen. x is [N, C, H, W], w [O, C / groups, KH, KW], y [N, O, OH, OW]; all are
// contiguous.
struct Convolution {
  int kind = kForward;
  int dtype = 0;
  int has_bias = 0;
  int groups = 1;
  std::array<int, 4> x = {}, w = {}, y = {};
  std::array<int, 2> stride = {}, padding = {}, dilation = {};

  bool operator==(const Convolution&) const = default;
};

struct ConvolutionHash {
  size_t operator()(const Convolution&) const;
};

// What the arguments of the operator `kind` ask for. None: what the libraries do not compute, or a shape that
// the operator itself refuses.
std::optional<Convolution> describe(ConvolutionKind kind, const tenon_value* args);

}  // namespace gpu::dnn
