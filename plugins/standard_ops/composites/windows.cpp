// SPDX-License-Identifier: Apache-2.0
#include "composites/windows.hpp"

namespace tenon::standard_ops {
namespace {

int64_t margin_after(const Window& window, int side, int64_t extent) {
  return window.padding[side] + window.overhang(side, extent);
}

}  // namespace

Tensor pad_image(Scope& scope, const Tensor& x, const Window& window, ScalarArg value) {
  if (!scope.ok()) return {};
  int64_t bottom = margin_after(window, 0, x->shape[2]),
          right = margin_after(window, 1, x->shape[3]);
  if (window.padding[0] == 0 && window.padding[1] == 0 && bottom == 0 && right == 0) return x;
  return ops::pad_constant(
      scope, x, {0, 0, 0, 0, window.padding[0], bottom, window.padding[1], right}, value);
}

Tensor all_windows(Scope& scope, const Tensor& padded, const Window& window) {
  Tensor rows =
      ops::sliding_window(scope, padded, 2, window.size[0], window.stride[0], window.dilation[0]);
  return ops::sliding_window(scope, rows, 3, window.size[1], window.stride[1], window.dilation[1]);
}

Tensor add_windows(Scope& scope, const Tensor& windows, Ints image, const Window& window) {
  int64_t height = image[2] + window.padding[0] + margin_after(window, 0, image[2]);
  int64_t width = image[3] + window.padding[1] + margin_after(window, 1, image[3]);
  if (!scope.ok()) return {};
  Shape rows = {image[0], image[1], windows->shape[2], width, window.size[0]};
  Tensor result = ops::sliding_window_grad(scope, windows, rows, 3, window.size[1],
                                           window.stride[1], window.dilation[1]);
  result = ops::sliding_window_grad(scope, result, {image[0], image[1], height, width}, 2,
                                    window.size[0], window.stride[0], window.dilation[0]);
  return ops::slice(scope, result, {2, 3}, {window.padding[0], window.padding[1]},
                    {window.padding[0] + image[2], window.padding[1] + image[3]});
}

}  // namespace tenon::standard_ops
