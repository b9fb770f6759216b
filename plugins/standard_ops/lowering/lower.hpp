// SPDX-License-Identifier: Apache-2.0
// What operators taken apart into primitives have in common.
#pragma once

#include <tenon/ops/lowering.hpp>

#include "composites/compose.hpp"

namespace tenon::standard_ops {

// A tensor seen as [outer, length, inner] around one axis.
struct Around {
  int64_t outer = 1, length = 1, inner = 1;
  Around(const Tensor& x, int64_t axis, int64_t axes = 1) {
    if (!x) return;
    for (int64_t i = 0; i < x->ndim; ++i)
      (i < axis ? outer : i < axis + axes ? length : inner) *= x->shape[i];
  }
};

// A 0-d tensor counts as one with a single axis.
inline int64_t from_front(int64_t axis, const Tensor& x) {
  return axis < 0 ? axis + (x->ndim > 1 ? x->ndim : 1) : axis;
}

// The device parameter of an operator that makes tensors.
inline int32_t device_of(const tenon_value& value) {
  return is_none(value) ? int32_t{host->device_host()} : static_cast<int32_t>(int_of(value));
}

// x[..., begin : begin + length : step, ...], a view.
inline Tensor part(Scope& scope, const Tensor& x, int64_t axis, int64_t begin, int64_t length,
                   int64_t step = 1) {
  if (!scope.ok()) return {};
  Shape shape = sizes_of(x), strides(x->strides, x->strides + x->ndim);
  const size_t k = static_cast<size_t>(axis);
  const int64_t offset = begin * strides[k];
  shape[k] = length;
  strides[k] *= step;
  return primitive::view(scope, x, shape, strides, length > 0 ? offset : 0);
}

// Write `x` into the memory of `to`, whatever its strides.
inline void write(Scope& scope, const Tensor& x, const Tensor& to) {
  static constinit call::Operator clone("clone");
  if (!scope.ok()) return;
  tenon_value args[] = {boxed(x.get())};
  call::into<1>(scope, clone, args, 1, {to.get()});
}

inline Tensor empty(Scope& scope, const Shape& shape, int32_t dtype, tenon_device_id device) {
  tenon_tensor* created = nullptr;
  if (!scope.ok() ||
      !scope.check(host->tensor_create(device, dtype, static_cast<int32_t>(shape.size()),
                                       shape.data(), &created, scope.err())))
    return {};
  return Tensor::adopt(created);
}

inline Tensor add(Scope& scope, const TensorArg& x, const TensorArg& y) {
  return primitive::binary(scope, TENON_BINARY_ADD, x, y);
}
inline Tensor multiply(Scope& scope, const TensorArg& x, const TensorArg& y) {
  return primitive::binary(scope, TENON_BINARY_MULTIPLY, x, y);
}
inline Tensor less(Scope& scope, const TensorArg& x, const TensorArg& y) {
  return primitive::compare(scope, TENON_COMPARE_LESS, x, y);
}
inline Tensor both(Scope& scope, const TensorArg& x, const TensorArg& y) {
  return primitive::binary(scope, TENON_BINARY_AND, x, y);
}
inline Tensor either(Scope& scope, const TensorArg& x, const TensorArg& y) {
  return primitive::binary(scope, TENON_BINARY_OR, x, y);
}
inline Tensor is_nan(Scope& scope, const Tensor& x) {
  return primitive::compare(scope, TENON_COMPARE_NOT_EQUAL, x, x);
}
constexpr bool is_floating(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_C128;
}

// Running sums or products of [outer, n, inner] along n.
Tensor scan(Scope& scope, int64_t opcode, Tensor x, bool reverse);

}  // namespace tenon::standard_ops
