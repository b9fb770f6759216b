// SPDX-License-Identifier: Apache-2.0
// Element-by-element operators that depend on limits of the dtype.
#include <cmath>
#include <limits>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

double largest_finite(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
      return 448.0;
    case TENON_DTYPE_F8E5M2:
      return 57344.0;
    case TENON_DTYPE_F16:
      return 65504.0;
    case TENON_DTYPE_BF16:
      return 0x1.fep127;
    case TENON_DTYPE_F64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

Tensor real_nan_to_num(Scope& scope, const Tensor& x, double nan, const tenon_value& posinf,
                       const tenon_value& neginf) {
  if (!scope.ok()) return {};
  const double largest = largest_finite(x->dtype);
  const double above = is_none(posinf) ? largest : float_of(posinf);
  const double below = is_none(neginf) ? -largest : float_of(neginf);
  return ops::replace_non_finite(scope, x, nan, above, below);
}

// What rounding to nearest must know of a binary floating format.
struct FloatFormat {
  int mantissa_bits, least_exponent;  // of normal numbers
};

FloatFormat format_of(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
      return {3, -6};
    case TENON_DTYPE_F8E5M2:
      return {2, -14};
    case TENON_DTYPE_F16:
      return {10, -14};
    default:
      return {7, -126};  // bfloat16
  }
}

// The neighbour of `x` towards `y`, both of the same narrow float `dtype`, computed in float32: a
// step that is just above half the distance to the next number, and rounds to it (Rump, Zimmermann,
// Boldo and Melquiond, 2009, "Computing predecessor and successor in rounding to nearest").
Tensor narrow_nextafter(Scope& scope, Tensor x, Tensor y, int32_t dtype) {
  const FloatFormat format = format_of(dtype);
  const double unit = std::ldexp(1.0, -format.mantissa_bits - 1);
  const double least = std::ldexp(1.0, format.least_exponent - format.mantissa_bits);
  x = ops::cast(scope, x, TENON_DTYPE_F32);
  y = ops::cast(scope, y, TENON_DTYPE_F32);
  Tensor size = ops::multiply(scope, ops::abs(scope, x), unit * (1 + 2 * unit));
  Tensor step = ops::copysign(scope, ops::maximum(scope, size, least), ops::subtract(scope, y, x));
  Tensor moved = ops::add(scope, x, step);
  // To zero from below is -0; from infinity the largest number is next.
  moved = ops::where(scope, ops::equal(scope, moved, 0), ops::multiply(scope, x, 0.0), moved);
  moved = ops::where(scope, ops::isinf(scope, x), ops::copysign(scope, largest_finite(dtype), x),
                     moved);
  moved = ops::where(scope, ops::equal(scope, x, y), y, moved);
  moved =
      ops::where(scope, ops::isnan(scope, x), x, ops::where(scope, ops::isnan(scope, y), y, moved));
  return ops::cast(scope, moved, dtype);
}

}  // namespace

TENON_DECOMPOSE(nan_to_num) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const double nan = float_of(args[1]);
  if (shapes::bit(x->dtype) & shapes::kFloats)
    return finish(scope, outs, real_nan_to_num(scope, x, nan, args[2], args[3]));
  if (!(shapes::bit(x->dtype) & shapes::kComplex)) return finish(scope, outs, ops::clone(scope, x));
  Tensor real = real_nan_to_num(scope, ops::real(scope, x), nan, args[2], args[3]);
  Tensor imag = real_nan_to_num(scope, ops::imag(scope, x), nan, args[2], args[3]);
  double unit[2] = {0, 1};
  const tenon_value i = boxed_complex(unit);
  return finish(scope, outs, ops::add(scope, real, ops::multiply(scope, imag, i)));
}

namespace {

tenon_status broadcast_incomplete_gamma(const char* op, const tenon_value* args, bool upper,
                                        tenon_value* outs, tenon_err* err) {
  Scope scope(err);
  const int32_t dtype = shapes::promoted_dtype(args, {0, 1});
  if (shapes::bit(dtype) & shapes::kComplex)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected real numbers, got %s",
                        host->dtype_name(dtype));
  tenon_device_id device = host->device_host();
  for (uint32_t i = 0; i < 2; ++i)
    if (const tenon_tensor* tensor = optional_tensor(args[i])) device = tensor->device;
  // Numbers take the dtype of the tensor beside them.
  const auto part = [&](const tenon_value& value) -> Tensor {
    if (value.tag == TENON_VALUE_TENSOR) return Tensor::borrow(&tensor_of(value));
    return ops::full(scope, IntList(), ScalarArg(value), shapes::float_dtype(dtype), device);
  };
  std::vector<Tensor> both = ops::broadcast_tensors(scope, {part(args[0]), part(args[1])});
  if (!scope.ok()) return scope.status();
  return finish(scope, outs, ops::incomplete_gamma(scope, both[0], both[1], upper));
}

}  // namespace

TENON_DECOMPOSE(gammainc) { return broadcast_incomplete_gamma("gammainc", args, false, outs, err); }
TENON_DECOMPOSE(gammaincc) {
  return broadcast_incomplete_gamma("gammaincc", args, true, outs, err);
}

TENON_DECOMPOSE(no_gradient) {
  const std::string_view op = text_of(args[1]), argument = text_of(args[2]);
  if (tenon_tensor* grad_out = optional_tensor(args[0]); grad_out && grad_out->numel == 0) {
    Scope scope(err);
    return finish(scope, outs, ops::zeros_like(scope, grad_out));
  }
  return fail(err, TENON_UNSUPPORTED,
              "[" + std::string(op) + "] has no gradient for `" + std::string(argument) +
                  "`; call it on a tensor that was detach()ed");
}

TENON_DECOMPOSE(times_i) {
  Scope scope(err);
  Tensor x = ops::cast(scope, operand(scope, args[0]), static_cast<int32_t>(args[1].v.i));
  double unit[2] = {0, 1};
  const tenon_value i = boxed_complex(unit);
  return finish(scope, outs, ops::multiply(scope, x, i));
}

TENON_DECOMPOSE(nextafter) {
  Scope scope(err);
  const int32_t dtype = shapes::promoted_dtype(args, {0, 1});
  if (!(shapes::bit(dtype) & shapes::kFloats))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "nextafter",
                        "expected floating numbers, got %s; convert with .to(dtype)",
                        host->dtype_name(dtype));
  const bool narrow = dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_BF16;
  if (!narrow) return finish(scope, outs, ops::wide_nextafter(scope, args[0], args[1]));
  auto plain = [&](const tenon_value& value) {
    return ops::cast(scope, ops::stop_gradient(scope, operand(scope, value)), dtype);
  };
  Tensor x = plain(args[0]), y = plain(args[1]);
  return finish(scope, outs, narrow_nextafter(scope, x, y, dtype));
}

}  // namespace tenon::standard_ops
