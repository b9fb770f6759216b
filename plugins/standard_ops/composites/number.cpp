// SPDX-License-Identifier: Apache-2.0
// Divisors, powers of float64, and complex numbers made of their parts.
#include <tenon/integer_range.hpp>

#include "composites/compose.hpp"
#include "composites/data_reads.hpp"

namespace tenon::standard_ops {
namespace {

struct WholeNumbers {
  Tensor x, y;  // of one shape and dtype, not negative
};

tenon_status read_whole_numbers(Scope& scope, const char* op, const tenon_value* args,
                                WholeNumbers* numbers, tenon_err* err) {
  const bool both_numbers = args[0].tag != TENON_VALUE_TENSOR && args[1].tag != TENON_VALUE_TENSOR;
  const int32_t dtype =
      both_numbers ? int32_t{TENON_DTYPE_I64} : shapes::promoted_dtype(args, {0, 1});
  for (uint32_t i = 0; i < 2; ++i)
    if (!is_integer_dtype(dtype) ||
        (args[i].tag != TENON_VALUE_TENSOR && args[i].tag != TENON_VALUE_INT))
      return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                          "expected integers, got %s; convert with .to(dtype)",
                          args[i].tag == TENON_VALUE_FLOAT ? "a float" : host->dtype_name(dtype));
  tenon_device_id device = host->device_host();
  for (uint32_t i = 0; i < 2; ++i)
    if (const tenon_tensor* tensor = optional_tensor(args[i])) device = tensor->device;
  const auto read = [&](const tenon_value& value) -> Tensor {
    Tensor tensor = value.tag == TENON_VALUE_TENSOR
                        ? Tensor::borrow(&tensor_of(value))
                        : ops::full(scope, IntList(), ScalarArg(value), dtype, device);
    if (scope.ok() && tensor->dtype != dtype) tensor = ops::cast(scope, tensor, dtype);
    return ops::abs(scope, tensor);
  };
  std::vector<Tensor> both = ops::broadcast_tensors(scope, {read(args[0]), read(args[1])});
  if (!scope.ok()) return scope.status();
  *numbers = {both[0], both[1]};
  return TENON_OK;
}

bool all_zero(Scope& scope, const Tensor& x) {
  Tensor any = ops::any(scope, x);
  return has_elements(scope, any) && !*static_cast<const uint8_t*>(any->data);
}

// Euclid's algorithm on all elements at once. Consecutive Fibonacci numbers take most steps. Where
// the host can read the numbers it stops when all are done.
Tensor common_divisor(Scope& scope, Tensor x, Tensor y) {
  if (!scope.ok()) return {};
  const bool readable = x->device == host->device_host();
  const int bits = 8 * static_cast<int>(host->dtype_size(x->dtype));
  const int steps = bits * 145 / 100 + 2;
  for (int step = 0; step < steps && scope.ok(); ++step) {
    if (readable && all_zero(scope, y)) break;
    Tensor is_done = ops::equal(scope, y, 0);
    Tensor rest = ops::remainder(scope, x, ops::where(scope, is_done, 1, y));
    x = ops::where(scope, is_done, x, y);
    y = rest;
  }
  return ops::abs(
      scope, x);  // the smallest number has no absolute value, so that remainders may be negative
}

bool is_complex_dtype(int32_t dtype) {
  return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128;
}

}  // namespace

TENON_DECOMPOSE(gcd) {
  Scope scope(err);
  WholeNumbers numbers;
  TENON_TRY(read_whole_numbers(scope, "gcd", args, &numbers, err));
  return finish(scope, outs, ops::clone(scope, common_divisor(scope, numbers.x, numbers.y)));
}

TENON_DECOMPOSE(lcm) {
  Scope scope(err);
  WholeNumbers numbers;
  TENON_TRY(read_whole_numbers(scope, "lcm", args, &numbers, err));
  Tensor divisor = common_divisor(scope, numbers.x, numbers.y);
  divisor = ops::where(scope, ops::equal(scope, divisor, 0), 1, divisor);
  Tensor part = ops::abs(scope, ops::floor_divide(scope, numbers.x, divisor));
  return finish(scope, outs, ops::multiply(scope, part, numbers.y));
}

TENON_DECOMPOSE(float_power) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const bool complex = is_complex_dtype(x->dtype) || is_complex_dtype(y->dtype);
  const int32_t dtype = complex ? int32_t{TENON_DTYPE_C128} : int32_t{TENON_DTYPE_F64};
  x = ops::cast(scope, x, dtype);
  y = ops::cast(scope, y, dtype);
  // A number beside a tensor may be on another device; as a number it is on none.
  if (args[0].tag != TENON_VALUE_TENSOR && args[1].tag == TENON_VALUE_TENSOR)
    return finish(scope, outs, ops::pow(scope, args[0], y));
  if (args[0].tag == TENON_VALUE_TENSOR && args[1].tag != TENON_VALUE_TENSOR)
    return finish(scope, outs, ops::pow(scope, x, args[1]));
  return finish(scope, outs, ops::pow(scope, x, y));
}

TENON_DECOMPOSE(complex) {
  Scope scope(err);
  Tensor real = operand(scope, args[0]), imag = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int32_t promoted = shapes::promoted_dtype(args, {0, 1});
  if (is_complex_dtype(promoted))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "complex",
                        "expected real numbers, got %s; take .real and .imag",
                        host->dtype_name(promoted));
  const int32_t dtype =
      promoted == TENON_DTYPE_F64 ? int32_t{TENON_DTYPE_F64} : int32_t{TENON_DTYPE_F32};
  const tenon_device_id device = args[0].tag == TENON_VALUE_TENSOR ? real->device : imag->device;
  const auto part = [&](Tensor x) {
    if (x->device != device) x = ops::to_device(scope, x, device);
    return scope.ok() && x->dtype != dtype ? ops::cast(scope, x, dtype) : x;
  };
  std::vector<Tensor> parts = ops::broadcast_tensors(scope, {part(real), part(imag)});
  if (!scope.ok()) return scope.status();
  return finish(scope, outs, ops::join_complex(scope, parts[0], parts[1]));
}

TENON_DECOMPOSE(as_complex) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 1 || x->shape[x->ndim - 1] != 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "as_complex",
                        "expected a last axis of length 2, real and imaginary part, got shape %s",
                        shape_text(*x.get()).c_str());
  return finish(scope, outs,
                ops::complex(scope, ops::select(scope, x, -1, 0), ops::select(scope, x, -1, 1)));
}

}  // namespace tenon::standard_ops
