// SPDX-License-Identifier: Apache-2.0
// Pooling in terms of windows, reductions and matrix products.
#include <limits>

#include "composites/windows.hpp"

namespace tenon::standard_ops {
namespace {

// A number no larger than any of this dtype.
ScalarArg lowest_of(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_I8:
      return int64_t{INT8_MIN};
    case TENON_DTYPE_I16:
      return int64_t{INT16_MIN};
    case TENON_DTYPE_I32:
      return int64_t{INT32_MIN};
    case TENON_DTYPE_I64:
      return INT64_MIN;
    case TENON_DTYPE_F8E4M3:
      return -448.0;  // it has no infinity
    default:
      return dtype < TENON_DTYPE_I64 ? ScalarArg(int64_t{0})
                                     : ScalarArg(-std::numeric_limits<double>::infinity());
  }
}

// 0, 1, ..., count - 1 along axis `axis` of four.
Tensor ramp(Scope& scope, int64_t count, int axis, tenon_device_id device) {
  Shape shape(4, 1);
  shape[static_cast<size_t>(axis)] = count;
  return ops::reshape(scope, ops::arange(scope, count, std::nullopt, 1, TENON_DTYPE_I64, device),
                      shape);
}

}  // namespace

TENON_DECOMPOSE(max_pool2d_with_indices) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  Window window;
  int64_t counts[2];
  TENON_TRY(read_pooling("max_pool2d", args, 1, &window, err));
  TENON_TRY(read_pair("max_pool2d", "dilation", ints_of(args[4]), 1, window.dilation, err));
  window.ceil_mode = bool_of(args[5]);
  TENON_TRY(count_windows("max_pool2d", window, shape_of(*x.get()), counts, err));
  Tensor windows = all_windows(scope, pad_image(scope, x, window, lowest_of(x->dtype)), window);
  windows = ops::flatten(scope, windows, 4, 5);
  Tensor index = ops::argmax(scope, windows, -1);
  Tensor values = ops::gather(scope, windows, ops::unsqueeze(scope, index, {-1}), -1);
  // From the index in the window to the index in the image.
  auto along = [&](int side, const Tensor& inside) {
    Tensor origin =
        ops::multiply(scope, ramp(scope, counts[side], 2 + side, x->device), window.stride[side]);
    Tensor offset = ops::subtract(scope, ops::multiply(scope, inside, window.dilation[side]),
                                  window.padding[side]);
    Tensor at = ops::add(scope, origin, offset);
    // In the margin before the image only if nothing exceeds what fills it: then the first inside.
    if (window.padding[side] > 0)
      at = ops::maximum(scope, at, ops::remainder(scope, at, window.dilation[side]));
    return at;
  };
  Tensor row = along(0, ops::floor_divide(scope, index, window.size[1]));
  Tensor column = along(1, ops::remainder(scope, index, window.size[1]));
  Tensor indices = ops::add(scope, ops::multiply(scope, row, x->shape[3]), column);
  return finish(scope, outs, ops::squeeze(scope, values, {-1}), indices);
}

namespace {

tenon_status read_average(const tenon_value* args, uint32_t first, Window* window, tenon_err* err) {
  TENON_TRY(read_pooling("avg_pool2d", args, first, window, err));
  window->ceil_mode = bool_of(args[first + 3]);
  return TENON_OK;
}

// How many elements every window averages over, as [1, 1, OH, OW].
Tensor divisors(Scope& scope, const Tensor& like, Ints image, const Window& window,
                bool count_padding) {
  const int64_t plane[] = {1, 1, image[2], image[3]};
  Tensor counted = full_with(scope, like, plane, 1);
  Window beyond = window;
  if (count_padding) {
    int64_t top = window.padding[0], left = window.padding[1];
    counted = ops::pad_constant(scope, counted, {0, 0, 0, 0, top, top, left, left}, 1);
    int64_t bottom = window.overhang(0, image[2]), right = window.overhang(1, image[3]);
    counted = ops::pad_constant(scope, counted, {0, 0, 0, 0, 0, bottom, 0, right}, 0);
  } else {
    counted = pad_image(scope, counted, beyond, 0);
  }
  return ops::sum(scope, all_windows(scope, counted, window), {4, 5});
}

}  // namespace

TENON_DECOMPOSE(avg_pool2d) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  Window window;
  TENON_TRY(read_average(args, 1, &window, err));
  Tensor total =
      ops::sum(scope, all_windows(scope, pad_image(scope, x, window, 0), window), {4, 5});
  return finish(
      scope, outs,
      ops::divide(scope, total, divisors(scope, x, shape_of(*x.get()), window, bool_of(args[5]))));
}

TENON_DECOMPOSE(avg_pool2d_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]);
  Ints image = ints_of(args[1]);
  Window window;
  TENON_TRY(read_average(args, 2, &window, err));
  Tensor shares =
      ops::divide(scope, grad_out, divisors(scope, grad_out, image, window, bool_of(args[6])));
  Shape shape = sizes_of(grad_out);
  shape.insert(shape.end(), {window.size[0], window.size[1]});
  Tensor windows = ops::expand(scope, ops::unsqueeze(scope, shares, {-1, -2}), shape);
  return finish(scope, outs, add_windows(scope, windows, image, window));
}

namespace {

tenon_status read_output_size(const char* op, const Tensor& x, Ints size, int64_t pair[2],
                              tenon_err* err) {
  TENON_TRY(expect_ndim(op, "x", *x.get(), 4, "[batch, channels, height, width]", err));
  TENON_TRY(read_pair(op, "output_size", size, 1, pair, err));
  if (x->shape[2] > 0 && x->shape[3] > 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected an image with elements, got shape %s",
                      shape_text(*x.get()).c_str());
}

// The host enumerates the indices of a result one by one. This allocates a result that is larger
// than its input first, so that a result too large for memory fails before that loop.
bool windows_fit(Scope& scope, const Tensor& x, const int64_t size[2]) {
  if (size[0] > x->shape[2] || size[1] > x->shape[3])
    ops::empty(scope, {x->shape[0], x->shape[1], size[0], size[1]}, x->dtype, x->device);
  return scope.ok();
}

// First and last element (excluded) of window `i` of `count`.
std::pair<int64_t, int64_t> adaptive_range(int64_t i, int64_t count, int64_t extent) {
  return {i * extent / count, ((i + 1) * extent + count - 1) / count};
}

// Equal windows side by side cover the image: ordinary pooling.
bool divides(const Tensor& x, const int64_t size[2]) {
  return x->shape[2] % size[0] == 0 && x->shape[3] % size[1] == 0;
}

}  // namespace

TENON_DECOMPOSE(adaptive_avg_pool2d) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int64_t size[2];
  TENON_TRY(read_output_size("adaptive_avg_pool2d", x, ints_of(args[1]), size, err));
  if (!windows_fit(scope, x, size)) return scope.status();
  if (size[0] == 1 && size[1] == 1) return finish(scope, outs, ops::mean(scope, x, {2, 3}, true));
  if (divides(x, size))
    return finish(scope, outs,
                  ops::avg_pool2d(scope, x, {x->shape[2] / size[0], x->shape[3] / size[1]}));
  for (int side = 0; side < 2; ++side) {
    int axis = 2 + side;
    std::vector<Tensor> means;
    for (int64_t i = 0; i < size[side] && scope.ok(); ++i) {
      auto [first, last] = adaptive_range(i, size[side], x->shape[axis]);
      means.push_back(
          ops::mean(scope, ops::narrow(scope, x, axis, first, last - first), {axis}, true));
    }
    x = ops::concat(scope, means, axis);
  }
  return finish(scope, outs, x);
}

TENON_DECOMPOSE(adaptive_max_pool2d) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int64_t size[2];
  TENON_TRY(read_output_size("adaptive_max_pool2d", x, ints_of(args[1]), size, err));
  if (!windows_fit(scope, x, size)) return scope.status();
  if (divides(x, size))
    return finish(scope, outs,
                  ops::max_pool2d(scope, x, {x->shape[2] / size[0], x->shape[3] / size[1]}));
  for (int side = 0; side < 2; ++side) {
    int axis = 2 + side;
    std::vector<Tensor> largest;
    for (int64_t i = 0; i < size[side] && scope.ok(); ++i) {
      auto [first, last] = adaptive_range(i, size[side], x->shape[axis]);
      largest.push_back(
          ops::max(scope, ops::narrow(scope, x, axis, first, last - first), {axis}, true));
    }
    x = ops::concat(scope, largest, axis);
  }
  return finish(scope, outs, x);
}

}  // namespace tenon::standard_ops
