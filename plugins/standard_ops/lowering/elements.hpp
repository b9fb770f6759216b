// SPDX-License-Identifier: Apache-2.0
// Arithmetic of tensors on primitives, written as formulas.
#pragma once

#include "lowering/lower.hpp"

namespace tenon::standard_ops {

// A tensor in a formula. Every operation is one call of a primitive; after a failed one the scope holds the error, and
// further ones do nothing. The other operand may be a number, which takes the tensor's dtype.
class Elements {
 public:
  Elements(Scope& scope, Tensor tensor) : scope_(&scope), tensor_(std::move(tensor)) {}

  Scope& scope() const { return *scope_; }
  const Tensor& tensor() const { return tensor_; }
  operator TensorArg() const { return tensor_; }
  int32_t dtype() const { return scope_->ok() ? tensor_->dtype : int32_t{TENON_DTYPE_F32}; }

  Elements made(Tensor tensor) const { return {*scope_, std::move(tensor)}; }
  Elements unary(int64_t opcode) const { return made(primitive::unary(*scope_, opcode, tensor_)); }
  Elements binary(int64_t opcode, const TensorArg& x, const TensorArg& y) const {
    return made(primitive::binary(*scope_, opcode, x, y));
  }
  Elements compare(int64_t opcode, const TensorArg& x, const TensorArg& y) const {
    return made(primitive::compare(*scope_, opcode, x, y));
  }
  Elements to(int32_t dtype) const { return made(primitive::to_dtype(*scope_, tensor_, dtype)); }
  // The same bits, as elements of another dtype of the same size.
  Elements bits_as(int32_t dtype) const {
    const Tensor dense = primitive::contiguous(*scope_, tensor_);
    tenon_tensor* bits = nullptr;
    if (!scope_->ok() ||
        !scope_->check(host->tensor_view(dense.get(), dtype, dense->ndim, dense->shape,
                                         dense->strides, 0, &bits, scope_->err())))
      return made({});
    return made(Tensor::adopt(bits));
  }
  Elements in_shape(const Shape& shape) const {
    return made(primitive::reshape(*scope_, tensor_, shape));
  }

 private:
  Scope* scope_;
  Tensor tensor_;
};

#define TENON_BINARY_ELEMENTS(name, call, opcode)                                              \
  inline Elements name(const Elements& x, const TensorArg& y) { return x.call(opcode, x, y); } \
  inline Elements name(double x, const Elements& y) { return y.call(opcode, x, y); }           \
  inline Elements name(int64_t x, const Elements& y) { return y.call(opcode, x, y); }
TENON_BINARY_ELEMENTS(operator+, binary, TENON_BINARY_ADD)
TENON_BINARY_ELEMENTS(operator-, binary, TENON_BINARY_SUBTRACT)
TENON_BINARY_ELEMENTS(operator*, binary, TENON_BINARY_MULTIPLY)
TENON_BINARY_ELEMENTS(operator/, binary, TENON_BINARY_DIVIDE)
TENON_BINARY_ELEMENTS(equal, compare, TENON_COMPARE_EQUAL)  // `==` would have to be a bool
TENON_BINARY_ELEMENTS(not_equal, compare, TENON_COMPARE_NOT_EQUAL)
TENON_BINARY_ELEMENTS(operator<, compare, TENON_COMPARE_LESS)
TENON_BINARY_ELEMENTS(operator<=, compare, TENON_COMPARE_LESS_EQUAL)
TENON_BINARY_ELEMENTS(maximum, binary, TENON_BINARY_MAXIMUM)
TENON_BINARY_ELEMENTS(minimum, binary, TENON_BINARY_MINIMUM)
TENON_BINARY_ELEMENTS(copysign, binary, TENON_BINARY_COPYSIGN)
#undef TENON_BINARY_ELEMENTS

#define TENON_UNARY_ELEMENTS(name, opcode) \
  inline Elements name(const Elements& x) { return x.unary(opcode); }
TENON_UNARY_ELEMENTS(operator-, TENON_UNARY_NEGATIVE)
TENON_UNARY_ELEMENTS(abs, TENON_UNARY_ABS)
TENON_UNARY_ELEMENTS(floor, TENON_UNARY_FLOOR)
TENON_UNARY_ELEMENTS(ceil, TENON_UNARY_CEIL)
TENON_UNARY_ELEMENTS(sqrt, TENON_UNARY_SQRT)
TENON_UNARY_ELEMENTS(exp, TENON_UNARY_EXP)
TENON_UNARY_ELEMENTS(log, TENON_UNARY_LOG)
TENON_UNARY_ELEMENTS(log1p, TENON_UNARY_LOG1P)
TENON_UNARY_ELEMENTS(sin, TENON_UNARY_SIN)
TENON_UNARY_ELEMENTS(tanh, TENON_UNARY_TANH)
#undef TENON_UNARY_ELEMENTS

inline Elements select(const Elements& condition, const TensorArg& x, const TensorArg& y) {
  return condition.made(primitive::select(condition.scope(), condition, x, y));
}
// Of booleans.
inline Elements both(const Elements& x, const Elements& y) {
  return x.binary(TENON_BINARY_AND, x, y);
}
inline Elements either(const Elements& x, const Elements& y) {
  return x.binary(TENON_BINARY_OR, x, y);
}

// -- opcodes and primitives made of others (docs/primitives.md, "What a device may leave out") --------------------------
//
// Each returns nothing, and no error, where there is no such way; then the host stands in. Nothing may be made of what is
// made of it, or a call would not end.
using Derived = std::optional<Elements>;

Derived derived_unary(int64_t opcode, const Elements& x);
Derived derived_binary(int64_t opcode, const Elements& x, const Elements& y);
Derived derived_compare(int64_t opcode, const Elements& x, const Elements& y);
Derived derived_real_unary(int64_t opcode, const Elements& x);
Derived derived_real_binary(int64_t opcode, const Elements& x, const Elements& y);
Derived derived_whole_unary(int64_t opcode, const Elements& x);
Derived derived_whole_binary(int64_t opcode, const Elements& x, const Elements& y);

Derived derived_select(const Elements& condition, const Elements& x, const Elements& y);
Derived derived_reduce(int64_t opcode, const Elements& x);
Derived derived_contract(const Elements& x, const Elements& y);
Derived derived_gather(const Elements& x, const Elements& index);
Derived derived_scatter(int64_t opcode, const Elements& x, const Elements& index,
                        const Elements& source);

// 2^n of int32 numbers from -126 to 127, as float32: made by its bits, so that it is exact.
inline Elements power_of_two(const Elements& n) {
  return ((n + int64_t{127}) * int64_t{1 << 23}).bits_as(TENON_DTYPE_F32);
}

}  // namespace tenon::standard_ops
