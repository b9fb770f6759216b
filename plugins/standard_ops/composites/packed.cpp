// SPDX-License-Identifier: Apache-2.0
// Two numbers of four bits in a byte, on devices without a kernel for them: arithmetic on the numbers of bytes, which
// float32 holds.
#include "shapes/packed.hpp"

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// The same bytes as another dtype of one byte. `x` is dense.
Tensor bytes_as(Scope& scope, const Tensor& x, int32_t dtype) {
  tenon_tensor* view = nullptr;
  if (!scope.ok() || !scope.check(host->tensor_view(x.get(), dtype, x->ndim, x->shape, x->strides,
                                                    0, &view, scope.err())))
    return {};
  return Tensor::adopt(view);
}

// `number` where the condition holds, and 0 elsewhere.
Tensor number_where(Scope& scope, const Tensor& condition, double number, int32_t dtype) {
  return ops::multiply(scope, ops::cast(scope, condition, dtype), number);
}

// Numbers 0 to 7 of the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4 and 6: how many of the borders between two are below.
// Halfway, the even number is right.
Tensor float4_numbers(Scope& scope, const Tensor& x) {
  const int32_t dtype = x->dtype;
  const Tensor magnitude = ops::abs(scope, x);
  Tensor number = ops::cast(scope, ops::less(scope, 0.25, magnitude), dtype);
  for (double above_even : {1.25, 2.5, 5.0})
    number =
        ops::add(scope, number, ops::cast(scope, ops::less(scope, above_even, magnitude), dtype));
  for (double above_odd : {0.75, 1.75, 3.5})
    number = ops::add(scope, number,
                      ops::cast(scope, ops::less_equal(scope, above_odd, magnitude), dtype));
  // -0 is less than nothing, but its sign shows on a number that is not 0.
  const Tensor sign = ops::copysign(scope, ops::add(scope, magnitude, 1.0), x);
  const Tensor is_negative =
      ops::logical_and(scope, ops::less(scope, sign, 0.0), ops::equal(scope, x, x));
  return ops::add(scope, number, number_where(scope, is_negative, 8.0, dtype));
}

Tensor int4_numbers(Scope& scope, const Tensor& x, bool is_signed) {
  const Tensor whole = ops::round(scope, ops::where(scope, ops::equal(scope, x, x), x, 0.0));
  if (!is_signed) return ops::clip(scope, whole, 0.0, 15.0);
  const Tensor number = ops::clip(scope, whole, -8.0, 7.0);
  return ops::add(scope, number,
                  number_where(scope, ops::less(scope, number, 0.0), 16.0, x->dtype));
}

// The values of numbers 0 to 15. Magnitudes of float4 are the greatest of three lines: n / 2, n - 2 and 2 n - 8.
Tensor float4_values(Scope& scope, const Tensor& number) {
  const Tensor is_negative = ops::less_equal(scope, 8.0, number);
  const Tensor n =
      ops::subtract(scope, number, number_where(scope, is_negative, 8.0, TENON_DTYPE_F32));
  const Tensor steep = ops::subtract(scope, ops::multiply(scope, n, 2.0), 8.0);
  const Tensor magnitude = ops::maximum(
      scope, ops::maximum(scope, ops::multiply(scope, n, 0.5), ops::subtract(scope, n, 2.0)),
      steep);
  return ops::where(scope, is_negative, ops::negative(scope, magnitude), magnitude);
}
Tensor int4_values(Scope& scope, const Tensor& number) {
  return ops::subtract(
      scope, number,
      number_where(scope, ops::less_equal(scope, 8.0, number), 16.0, TENON_DTYPE_F32));
}

}  // namespace

TENON_DECOMPOSE(pack) {
  Scope scope(err);
  const Tensor x = operand(scope, args[0]);
  const int32_t dtype = static_cast<int32_t>(int_of(args[1]));
  if (!scope.ok()) return scope.status();
  // float64 stays what it is: rounded to float32, it might lie halfway. Whole numbers near 16 are exact.
  const int32_t work = x->dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  const Tensor number = as_dtype(scope, x, work);
  const Tensor half = dtype == TENON_DTYPE_F4E2M1X2
                          ? float4_numbers(scope, number)
                          : int4_numbers(scope, number, dtype == TENON_DTYPE_I4X2);
  Shape pairs = sizes_of(x);
  pairs.back() /= 2;
  pairs.push_back(2);
  const Tensor halves = ops::reshape(scope, half, pairs);
  const Tensor low = ops::select(scope, halves, -1, 0), high = ops::select(scope, halves, -1, 1);
  const Tensor byte = ops::add(scope, low, ops::multiply(scope, high, 16.0));
  return finish(scope, outs, bytes_as(scope, ops::cast(scope, byte, TENON_DTYPE_U8), dtype));
}

TENON_DECOMPOSE(unpack) {
  Scope scope(err);
  const Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = shapes::dtype_or(args[1], unpacked_dtype(x->dtype));
  Shape unpacked = sizes_of(x);
  unpacked.back() *= 2;
  // As bytes first: copies of a dtype that is stored only are not for every device.
  const Tensor byte = ops::cast(scope, bytes_as(scope, x, TENON_DTYPE_U8), TENON_DTYPE_F32);
  const Tensor high = ops::floor(scope, ops::multiply(scope, byte, 1.0 / 16));
  const Tensor low = ops::subtract(scope, byte, ops::multiply(scope, high, 16.0));
  const Tensor number = ops::reshape(scope, ops::stack(scope, {low, high}, -1), unpacked);
  const Tensor value = x->dtype == TENON_DTYPE_F4E2M1X2 ? float4_values(scope, number)
                       : x->dtype == TENON_DTYPE_I4X2   ? int4_values(scope, number)
                                                        : number;
  return finish(scope, outs, as_dtype(scope, value, dtype));
}

}  // namespace tenon::standard_ops
