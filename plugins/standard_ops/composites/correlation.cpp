// SPDX-License-Identifier: Apache-2.0
// Patches of two images compared at all displacements.
#include "composites/compose.hpp"

namespace tenon::standard_ops {

TENON_DECOMPOSE(correlation) {
  const char* op = "correlation";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t padding = int_of(args[2]), size = int_of(args[3]), most = int_of(args[4]),
                stride = int_of(args[5]), step = int_of(args[6]);
  constexpr int64_t kLimit = int64_t{1} << 30;  // sums of these stay within 64 bits
  for (int64_t number : {padding, most, size - 1, stride - 1, step - 1})
    if (number < 0 || number > kLimit)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected padding and max_displacement from 0, kernel_size and strides "
                          "from 1, got %lld, %lld, %lld, %lld and "
                          "%lld",
                          ll(padding), ll(most), ll(size), ll(stride), ll(step));
  if (size % 2 == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected an odd kernel_size, got %lld",
                        ll(size));
  // The patches of each displacement are a tensor of their own until they are stacked.
  constexpr int64_t kMaxReach = 1024;
  const int64_t reach = most / step;
  if (reach > kMaxReach)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected at most %lld steps of stride2 in max_displacement, got %lld; use "
                        "a larger stride2",
                        ll(kMaxReach), ll(reach));
  if (x->ndim != 4 || sizes_of(x) != sizes_of(y) || x->shape[1] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x and y [N, C, H, W] of one shape, got shapes %s and %s",
                        shape_text(*x.get()).c_str(), shape_text(*y.get()).c_str());
  const int64_t height = x->shape[2] + 2 * (padding - most),
                width = x->shape[3] + 2 * (padding - most);
  if (height < size || width < size)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected patches of %lld that max_displacement %lld keeps inside, got "
                        "images of shape %s with padding %lld",
                        ll(size), ll(most), shape_text(*x.get()).c_str(), ll(padding));
  const Shape margins = {0, 0, 0, 0, padding, padding, padding, padding};
  x = ops::pad_constant(scope, x, margins);
  y = ops::pad_constant(scope, y, margins);
  const auto window = [&](const Tensor& image, int64_t row, int64_t column) {
    return ops::narrow(scope, ops::narrow(scope, image, 2, row, height), 3, column, width);
  };
  const Tensor fixed = window(x, most, most);
  std::vector<Tensor> alike;
  for (int64_t i = -reach; i <= reach && scope.ok(); ++i)
    for (int64_t j = -reach; j <= reach && scope.ok(); ++j)
      alike.push_back(ops::mean(
          scope, ops::multiply(scope, fixed, window(y, most + i * step, most + j * step)), {1}));
  if (!scope.ok()) return scope.status();
  Tensor all = ops::stack(scope, alike, 1);
  if (size > 1 || stride > 1)
    all = ops::avg_pool2d(scope, all, {size, size}, IntList({stride, stride}));
  return finish(scope, outs, all);
}

}  // namespace tenon::standard_ops
