// SPDX-License-Identifier: Apache-2.0
// Windows of convolutions and pools: sizes and margins of each axis behind batches and channels.
#pragma once

#include "conversion.hpp"

namespace tenon::onnx {

struct Window {
  Ints kernel, strides, dilations;
  Ints before, after;  // margins
  Ints counts;         // windows along each axis

  size_t axes() const { return kernel.size(); }
  // Elements that a window of axis `axis` spans.
  int64_t span(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  bool is_symmetric() const { return before == after; }
};

// Of the attributes kernel_shape, strides, dilations, pads and auto_pad. With ceil_mode, margins after are as wide as the last
// window needs; windows that would begin in them are none.
Window window_of(Conversion& c, const Tensor& x, const Ints& kernel);

// x [N, C, ...] with margins of `value`; x itself if there are none.
Tensor with_margins(Conversion& c, const Tensor& x, const Window& window, const Value& value);

// The elements of each window as new last axes, of what has its margins.
Tensor windows_of(Conversion& c, const Tensor& x, const Window& window, int64_t first_axis = 2);

// Cross-correlation of x [N, C, ...], which has no margins yet, with weight [M, C / groups, ...]; any number of axes.
Tensor correlate(Conversion& c, const Tensor& x, const Tensor& weight, const Value& bias,
                 const Window& window, int64_t groups);

}  // namespace tenon::onnx
