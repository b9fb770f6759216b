// SPDX-License-Identifier: Apache-2.0
// argmax and argmin, which return the smallest index of the maximum or minimum; and digamma, which
// is missing from the mathematical libraries of devices.
#include <numbers>

#include "lowering/lower.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status arg_reduce(int64_t opcode, const tenon_value* args, tenon_value* outs,
                        tenon_err* err) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const bool whole = is_none(args[1]);
  const int64_t axis = whole ? 0 : from_front(int_of(args[1]), x);
  const Around around(x, axis, whole ? x->ndim : 1);
  Shape shape;
  for (int64_t i = 0; i < x->ndim; ++i) {
    const bool gone = whole || i == axis;
    if (!gone || bool_of(args[2])) shape.push_back(gone ? 1 : x->shape[i]);
  }
  if (x->numel == 0)
    return finish(scope, outs, primitive::full(scope, shape, 0, TENON_DTYPE_I64, x->device));
  Tensor values = primitive::to_dtype(scope, x, primitive::work_dtype(x->dtype));
  values = primitive::reshape(scope, values, {around.outer, around.length, around.inner});
  Tensor result = primitive::reshape(scope, primitive::reduce(scope, opcode, values),
                                     {around.outer, 1, around.inner});
  Tensor is_result = primitive::compare(scope, TENON_COMPARE_EQUAL, values, result);
  if (is_floating(x->dtype)) is_result = either(scope, is_result, is_nan(scope, values));
  Tensor indices = primitive::iota(scope, around.length, 0, 1, TENON_DTYPE_I64, x->device);
  indices = primitive::select(
      scope, is_result, primitive::reshape(scope, indices, {1, around.length, 1}), around.length);
  return finish(
      scope, outs,
      primitive::reshape(scope, primitive::reduce(scope, TENON_REDUCTION_MIN, indices), shape));
}

}  // namespace

TENON_DECOMPOSE(argmax) { return arg_reduce(TENON_REDUCTION_MAX, args, outs, err); }
TENON_DECOMPOSE(argmin) { return arg_reduce(TENON_REDUCTION_MIN, args, outs, err); }

// Reflected to positive numbers, moved to where the asymptotic series is exact.
TENON_DECOMPOSE(digamma) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = x->dtype;
  x = ops::cast(scope, x, primitive::work_dtype(shapes::float_dtype(dtype)));
  Tensor negative = ops::less(scope, x, 0.0);
  Tensor fraction = ops::subtract(scope, x, ops::floor(scope, x));
  Tensor reflected = ops::divide(scope, -std::numbers::pi,
                                 ops::tan(scope, ops::multiply(scope, fraction, std::numbers::pi)));
  reflected = ops::where(scope, ops::equal(scope, fraction, 0.0), std::nan(""), reflected);
  Tensor result = ops::where(scope, negative, reflected, 0.0);
  Tensor y = ops::where(scope, negative, ops::subtract(scope, 1.0, x), x);
  for (int step = 0; step < 10; ++step) {
    Tensor small = ops::less(scope, y, 10.0);
    result =
        ops::subtract(scope, result, ops::where(scope, small, ops::divide(scope, 1.0, y), 0.0));
    y = ops::where(scope, small, ops::add(scope, y, 1.0), y);
  }
  Tensor t = ops::divide(scope, 1.0, ops::multiply(scope, y, y)), series;
  for (double term :
       {1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12})
    series = series ? ops::add(scope, ops::multiply(scope, series, t), term)
                    : ops::full_like(scope, t, term);
  result = ops::add(scope, result, ops::log(scope, y));
  result = ops::subtract(scope, result, ops::divide(scope, 0.5, y));
  result = ops::subtract(scope, result, ops::multiply(scope, t, series));
  Tensor pole =
      ops::copysign(scope, std::numeric_limits<double>::infinity(), ops::negative(scope, x));
  result = ops::where(scope, ops::equal(scope, x, 0.0), pole, result);
  if (scope.ok() && result->dtype != shapes::float_dtype(dtype))
    result = ops::cast(scope, result, shapes::float_dtype(dtype));
  return finish(scope, outs, result);
}

}  // namespace tenon::standard_ops
