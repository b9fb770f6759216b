// SPDX-License-Identifier: Apache-2.0
// Geometry of convolution and pooling windows in two dimensions.
#pragma once

#include "shapes/infer.hpp"

namespace tenon::standard_ops {

struct Window {
  int64_t size[2] = {1, 1};
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};
  int64_t dilation[2] = {1, 1};
  bool ceil_mode = false;

  // How many windows fit along `side` (0 height, 1 width) of an input of this extent; 0 or less:
  // none.
  int64_t count(int side, int64_t extent) const {
    // Beyond this, sums of them overflow; no memory has so many elements.
    constexpr int64_t kLargest = int64_t{1} << 30;
    for (int64_t each : {size[side], stride[side], padding[side], dilation[side]})
      if (each > kLargest) return 0;
    int64_t span = dilation[side] * (size[side] - 1) + 1;
    int64_t room = extent + 2 * padding[side] - span;
    if (room < 0) return 0;
    int64_t windows = (room + (ceil_mode ? stride[side] - 1 : 0)) / stride[side] + 1;
    // A window must begin inside the input or the padding before it.
    if (ceil_mode && (windows - 1) * stride[side] >= extent + padding[side]) --windows;
    return windows;
  }
  // Elements that the last window reaches beyond input and padding, or 0.
  int64_t overhang(int side, int64_t extent) const {
    int64_t reach =
        (count(side, extent) - 1) * stride[side] + dilation[side] * (size[side] - 1) + 1;
    return std::max<int64_t>(reach - extent - 2 * padding[side], 0);
  }
};

// conv2d and its gradients: stride, padding, dilation, then groups, from args[first].
tenon_status read_convolution(const char* op, Ints weight_shape, const tenon_value* args,
                              uint32_t first, Window* window, int64_t* groups, tenon_err* err);

// Pooling: kernel_size, stride, padding from args[first].
tenon_status read_pooling(const char* op, const tenon_value* args, uint32_t first, Window* window,
                          tenon_err* err);

// im2col and col2im: kernel_size, stride, padding, dilation from args[first].
tenon_status read_im2col(const char* op, const tenon_value* args, uint32_t first, Window* window,
                         tenon_err* err);

// [N, C, H, W] to the number of windows in each direction, at least one.
tenon_status count_windows(const char* op, const Window& window, Ints image, int64_t counts[2],
                           tenon_err* err);

}  // namespace tenon::standard_ops
