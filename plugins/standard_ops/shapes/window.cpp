// SPDX-License-Identifier: Apache-2.0
#include "shapes/window.hpp"

namespace tenon::standard_ops {

tenon_status read_convolution(const char* op, Ints weight_shape, const tenon_value* args,
                              uint32_t first, Window* window, int64_t* groups, tenon_err* err) {
  window->size[0] = weight_shape[2];
  window->size[1] = weight_shape[3];
  TENON_TRY(read_pair(op, "stride", ints_of(args[first]), 1, window->stride, err));
  TENON_TRY(read_pair(op, "padding", ints_of(args[first + 1]), 0, window->padding, err));
  TENON_TRY(read_pair(op, "dilation", ints_of(args[first + 2]), 1, window->dilation, err));
  *groups = int_of(args[first + 3]);
  if (*groups < 1 || weight_shape[0] % *groups != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected groups that divide the %lld filters, got %lld",
                        ll(weight_shape[0]), ll(*groups));
  if (window->size[0] < 1 || window->size[1] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected filters of at least 1 by 1, got weight of shape %s",
                        list_text(weight_shape).c_str());
  return TENON_OK;
}

tenon_status read_pooling(const char* op, const tenon_value* args, uint32_t first, Window* window,
                          tenon_err* err) {
  TENON_TRY(read_pair(op, "kernel_size", ints_of(args[first]), 1, window->size, err));
  const tenon_value& stride = is_none(args[first + 1]) ? args[first] : args[first + 1];
  TENON_TRY(read_pair(op, "stride", ints_of(stride), 1, window->stride, err));
  TENON_TRY(read_pair(op, "padding", ints_of(args[first + 2]), 0, window->padding, err));
  for (int side = 0; side < 2; ++side)
    if (window->padding[side] > window->size[side] / 2)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected padding of at most half of kernel_size, got %lld for %lld",
                          ll(window->padding[side]), ll(window->size[side]));
  return TENON_OK;
}

tenon_status read_im2col(const char* op, const tenon_value* args, uint32_t first, Window* window,
                         tenon_err* err) {
  TENON_TRY(read_pair(op, "kernel_size", ints_of(args[first]), 1, window->size, err));
  TENON_TRY(read_pair(op, "stride", ints_of(args[first + 1]), 1, window->stride, err));
  TENON_TRY(read_pair(op, "padding", ints_of(args[first + 2]), 0, window->padding, err));
  return read_pair(op, "dilation", ints_of(args[first + 3]), 1, window->dilation, err);
}

tenon_status count_windows(const char* op, const Window& window, Ints image, int64_t counts[2],
                           tenon_err* err) {
  for (int side = 0; side < 2; ++side) {
    counts[side] = window.count(side, image[static_cast<size_t>(2 + side)]);
    if (counts[side] < 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected room for a window of %lld by %lld (dilation %lld by %lld, "
                          "padding %lld by %lld), got an input of shape %s",
                          ll(window.size[0]), ll(window.size[1]), ll(window.dilation[0]),
                          ll(window.dilation[1]), ll(window.padding[0]), ll(window.padding[1]),
                          list_text(image).c_str());
  }
  return TENON_OK;
}

}  // namespace tenon::standard_ops
