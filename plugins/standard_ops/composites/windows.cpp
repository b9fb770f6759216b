// SPDX-License-Identifier: Apache-2.0
#include "composites/windows.hpp"

#include <tenon/ops/host_values.hpp>

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

TENON_DECOMPOSE(im2col) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim != 4)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "im2col",
                        "expected images of shape [N, C, H, W], got shape %s",
                        shape_text(*x.get()).c_str());
  Window window;
  int64_t counts[2];
  TENON_TRY(read_im2col("im2col", args, 1, &window, err));
  TENON_TRY(count_windows("im2col", window, shape_of(*x.get()), counts, err));
  Tensor windows = all_windows(scope, pad_image(scope, x, window, 0), window);
  const int64_t rows = x->shape[1] * window.size[0] * window.size[1];
  Tensor columns = ops::permute(scope, windows, {0, 1, 4, 5, 2, 3});
  return finish(scope, outs,
                ops::reshape(scope, columns, {x->shape[0], rows, counts[0] * counts[1]}));
}

TENON_DECOMPOSE(col2im) {
  Scope scope(err);
  Tensor columns = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Ints size = ints_of(args[1]);
  Window window;
  TENON_TRY(read_im2col("col2im", args, 2, &window, err));
  if (columns->ndim != 3 || size.size() != 2)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "col2im",
        "expected columns of shape [N, C * KH * KW, L] and a size [H, W], got shape "
        "%s and size %s",
        shape_text(*columns.get()).c_str(), list_text(size).c_str());
  const int64_t area = expression::times(window.size[0], window.size[1]);
  Shape image = {columns->shape[0], columns->shape[1] / area, size[0], size[1]};
  int64_t counts[2];
  TENON_TRY(count_windows("col2im", window, image, counts, err));
  if (columns->shape[1] % area != 0 || columns->shape[2] != expression::times(counts[0], counts[1]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "col2im",
                        "expected a multiple of %lld rows and %lld x %lld columns, got shape %s",
                        ll(area), ll(counts[0]), ll(counts[1]), shape_text(*columns.get()).c_str());
  Tensor windows = ops::reshape(
      scope, columns, {image[0], image[1], window.size[0], window.size[1], counts[0], counts[1]});
  return finish(
      scope, outs,
      add_windows(scope, ops::permute(scope, windows, {0, 1, 4, 5, 2, 3}), image, window));
}

}  // namespace tenon::standard_ops
