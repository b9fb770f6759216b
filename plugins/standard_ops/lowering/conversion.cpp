// SPDX-License-Identifier: Apache-2.0
// The two operators that the host itself calls, on devices that have primitive_copy instead, and numbers of four bits:
// arithmetic on the numbers of bytes, which float32 holds.
#include "lowering/elements.hpp"
#include "shapes/packed.hpp"

namespace tenon::standard_ops {

TENON_DECOMPOSE(cast) {
  Scope scope(err);
  return finish(scope, outs,
                primitive::copy(scope, args[0], static_cast<int32_t>(int_of(args[1]))));
}

// An output that was given is passed on: strided memory is written by no other kernel.
TENON_DECOMPOSE(clone) {
  static constinit call::Operator copy("primitive_copy");
  Scope scope(err);
  const Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  tenon_value values[] = {boxed(x.get()), boxed_dtype(x->dtype)};
  copy.run(scope, values, 2, outs, 1);
  return scope.status();
}

namespace {

// Numbers 0 to 7 of the magnitudes 0, 0.5, 1, 1.5, 2, 3, 4 and 6: how many of the borders between two are below.
// Halfway, the even number is right.
Elements float4_numbers(const Elements& x) {
  const int32_t dtype = x.dtype();
  const Elements magnitude = abs(x);
  Elements number = (0.25 < magnitude).to(dtype);
  for (double above_even : {1.25, 2.5, 5.0}) number = number + (above_even < magnitude).to(dtype);
  for (double above_odd : {0.75, 1.75, 3.5}) number = number + (above_odd <= magnitude).to(dtype);
  // -0 is less than nothing, but its sign shows on a number that is not 0.
  const Elements is_negative = both(copysign(magnitude + 1.0, x) < 0.0, equal(x, x));
  return number + is_negative.to(dtype) * 8.0;
}

Elements int4_numbers(const Elements& x, bool is_signed) {
  const Elements whole = select(equal(x, x), x, 0.0).unary(TENON_UNARY_ROUND);
  if (!is_signed) return maximum(minimum(whole, 15.0), 0.0);
  const Elements number = maximum(minimum(whole, 7.0), -8.0);
  return number + (number < 0.0).to(x.dtype()) * 16.0;
}

// The values of numbers 0 to 15. Magnitudes of float4 are the greatest of three lines: n / 2, n - 2 and 2 n - 8.
Elements float4_values(const Elements& number) {
  const Elements is_negative = (8.0 <= number).to(TENON_DTYPE_F32);
  const Elements n = number - is_negative * 8.0;
  return copysign(maximum(maximum(n * 0.5, n - 2.0), n * 2.0 - 8.0), is_negative * -2.0 + 1.0);
}
Elements int4_values(const Elements& number) {
  return number - (8.0 <= number).to(TENON_DTYPE_F32) * 16.0;
}

}  // namespace

TENON_DECOMPOSE(pack) {
  Scope scope(err);
  const Tensor x = operand(scope, args[0]);
  const int32_t dtype = static_cast<int32_t>(int_of(args[1]));
  if (!scope.ok()) return scope.status();
  // float64 stays what it is: rounded to float32, it might lie halfway. Whole numbers near 16 are exact.
  const int32_t work = x->dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  const Elements number(scope, primitive::to_dtype(scope, x, work));
  const Elements half = dtype == TENON_DTYPE_F4E2M1X2
                            ? float4_numbers(number)
                            : int4_numbers(number, dtype == TENON_DTYPE_I4X2);
  const int64_t last = x->ndim - 1, count = x->shape[last] / 2;
  const Elements low = half.made(part(scope, half.tensor(), last, 0, count, 2));
  const Elements high = half.made(part(scope, half.tensor(), last, 1, count, 2));
  return finish(scope, outs, (low + high * 16.0).to(TENON_DTYPE_U8).bits_as(dtype).tensor());
}

TENON_DECOMPOSE(unpack) {
  Scope scope(err);
  const Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = shapes::dtype_or(args[1], unpacked_dtype(x->dtype));
  Shape pairs = sizes_of(x), unpacked = pairs;
  pairs.push_back(1);
  unpacked.back() *= 2;
  // As bytes first: copies of a dtype that is stored only are not for every device.
  tenon_tensor* bytes = nullptr;
  TENON_TRY(
      host->tensor_view(x.get(), TENON_DTYPE_U8, x->ndim, x->shape, x->strides, 0, &bytes, err));
  const Elements byte = Elements(scope, Tensor::adopt(bytes)).to(TENON_DTYPE_F32);
  // Beside each other: the byte, and the byte over 16, whole numbers modulo 16.
  const Elements parts(scope, primitive::iota(scope, 2, 1.0, 1.0 / 16 - 1, TENON_DTYPE_F32,
                                              static_cast<int32_t>(x->device)));
  const Elements shifted = floor(byte.in_shape(pairs) * parts);
  const Elements number = shifted - floor(shifted * (1.0 / 16)) * 16.0;
  const Elements value = x->dtype == TENON_DTYPE_F4E2M1X2 ? float4_values(number)
                         : x->dtype == TENON_DTYPE_I4X2   ? int4_values(number)
                                                          : number;
  return finish(scope, outs, value.in_shape(unpacked).to(dtype).tensor());
}

}  // namespace tenon::standard_ops
