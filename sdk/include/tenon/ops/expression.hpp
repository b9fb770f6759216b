// SPDX-License-Identifier: Apache-2.0
// What operator expressions (`decompose`, `grad`) are translated to, beside operator calls: reading
// boxed arguments, facts about tensors, arithmetic on host values, handing over results.
#pragma once

#include <tenon/unbox.h>
#include <tenon/ops/call.hpp>
#include <tenon/ops/host_values.hpp>

namespace tenon::expression {

// -- boxed arguments --------------------------------------------------------------------------

template <class T, class Read>
std::optional<T> optional_of(const tenon_value& value, Read read) {
  if (value.tag == TENON_VALUE_NONE) return std::nullopt;
  return read(&value);
}
inline int64_t arg_int(const tenon_value& value) { return tenon_arg_int(&value); }
inline double arg_float(const tenon_value& value) { return tenon_arg_float(&value); }
inline bool arg_bool(const tenon_value& value) { return tenon_arg_bool(&value) != 0; }
inline ScalarArg arg_scalar(const tenon_value& value) { return value; }
inline IntList arg_ints(const tenon_value& value) {
  return {tenon_arg_ints(&value), tenon_arg_count(&value)};
}
inline FloatList arg_floats(const tenon_value& value) {
  return {tenon_arg_floats(&value), tenon_arg_count(&value)};
}
inline std::string_view arg_string(const tenon_value& value) {
  return {tenon_arg_string(&value), tenon_arg_count(&value)};
}
inline TensorList arg_tensors(const tenon_value& value) {
  if (value.tag != TENON_VALUE_TENSORS) return {};
  return {static_cast<tenon_tensor* const*>(value.v.p), value.aux};
}
inline std::optional<int64_t> optional_int(const tenon_value& value) {
  return optional_of<int64_t>(value, tenon_arg_int);
}
inline std::optional<double> optional_float(const tenon_value& value) {
  return optional_of<double>(value, tenon_arg_float);
}
inline std::optional<bool> optional_bool(const tenon_value& value) {
  return optional_of<bool>(value, tenon_arg_bool);
}
inline std::optional<ScalarArg> optional_scalar(const tenon_value& value) {
  if (value.tag == TENON_VALUE_NONE) return std::nullopt;
  return ScalarArg(value);
}
inline std::optional<std::string_view> optional_string(const tenon_value& value) {
  if (value.tag == TENON_VALUE_NONE) return std::nullopt;
  return arg_string(value);
}
inline OptionalInts optional_ints(const tenon_value& value) {
  return value.tag == TENON_VALUE_NONE ? OptionalInts() : OptionalInts(arg_ints(value));
}
inline OptionalFloats optional_floats(const tenon_value& value) {
  return value.tag == TENON_VALUE_NONE ? OptionalFloats() : OptionalFloats(arg_floats(value));
}

// -- tensors ----------------------------------------------------------------------------------

inline const tenon_tensor* handle(const TensorArg& x) { return tenon_arg_tensor(&x.value()); }
inline bool present(const TensorArg& x) { return x.value().tag != TENON_VALUE_NONE; }

// A tensor, for operators that take no number.
inline Tensor tensor(Scope& scope, const TensorArg& x) {
  const tenon_value& value = x.value();
  if (value.tag == TENON_VALUE_TENSOR) return Tensor::borrow(static_cast<tenon_tensor*>(value.v.p));
  if (value.tag != TENON_VALUE_NONE && scope.ok())
    scope.fail(TENON_TYPE_MISMATCH, "expected a tensor, got a number; make one with full()");
  return {};
}
inline std::vector<Tensor> tensors(const TensorList& list) {
  std::vector<Tensor> result;
  for (uint64_t i = 0; i < list.size(); ++i) result.push_back(Tensor::borrow(list[i]));
  return result;
}

// Facts. Numbers count as 0-d tensors of their weak dtype.
inline IntList shape_of(const TensorArg& x) {
  const tenon_tensor* t = handle(x);
  return t ? IntList(t->shape, static_cast<uint64_t>(t->ndim)) : IntList();
}
inline int64_t ndim_of(const TensorArg& x) { return handle(x) ? handle(x)->ndim : 0; }
inline int64_t numel_of(const TensorArg& x) { return handle(x) ? handle(x)->numel : 1; }
inline int32_t dtype_of(const TensorArg& x) {
  if (handle(x)) return handle(x)->dtype;
  switch (x.value().tag) {
    case TENON_VALUE_BOOL:
      return TENON_DTYPE_BOOL;
    case TENON_VALUE_INT:
      return TENON_DTYPE_I64;
    default:
      return TENON_DTYPE_F32;
  }
}
inline int32_t device_of(const TensorArg& x) {
  return handle(x) ? handle(x)->device : int32_t{host->device_host()};
}
// The device of the first gradient that is not absent.
inline int32_t device_of_any(tenon_tensor* const* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (tensors[i]) return tensors[i]->device;
  return host->device_host();
}

// -- arithmetic on what may be a number -------------------------------------------------------

// A parameter of type Tensor may be called with a number. As long as an expression consists of
// numbers it is computed here, so that it stays weak in promotion.
class Operand {
 public:
  Operand(Tensor tensor) : tensor_(std::move(tensor)), value_(TensorArg(tensor_).value()) {}
  Operand(const ScalarArg& number) : value_(number.value()) {}
  operator TensorArg() const { return value_; }

 private:
  Tensor tensor_;  // keeps value_ alive
  tenon_value value_;
};
inline bool is_number(const TensorArg& x) {
  int32_t tag = x.value().tag;
  return tag == TENON_VALUE_INT || tag == TENON_VALUE_FLOAT || tag == TENON_VALUE_BOOL;
}
// `call` is the operator, for when a tensor is among the operands.
template <class Call>
Operand fold_negative(Scope& scope, const TensorArg& x, Call call) {
  if (is_number(x)) return negative(ScalarArg(x.value()));
  return call(scope, x);
}
template <class Call>
Operand fold_add(Scope& scope, const TensorArg& x, const TensorArg& y, Call call) {
  if (is_number(x) && is_number(y)) return sum(x.value(), y.value());
  return call(scope, x, y);
}
template <class Call>
Operand fold_subtract(Scope& scope, const TensorArg& x, const TensorArg& y, Call call) {
  if (is_number(x) && is_number(y)) return difference(x.value(), y.value());
  return call(scope, x, y);
}
template <class Call>
Operand fold_multiply(Scope& scope, const TensorArg& x, const TensorArg& y, Call call) {
  if (is_number(x) && is_number(y)) return product(x.value(), y.value());
  return call(scope, x, y);
}
template <class Call>
Operand fold_divide(Scope& scope, const TensorArg& x, const TensorArg& y, Call call) {
  if (is_number(x) && is_number(y)) return ScalarArg(quotient(x.value(), y.value()));
  return call(scope, x, y);
}

// -- results ----------------------------------------------------------------------------------

// Set boxed results to the tensors, if nothing failed.
inline tenon_status give(Scope& scope, tenon_value* outs, std::initializer_list<Tensor> results) {
  if (!scope.ok()) return scope.status();
  for (const Tensor& result : results) *outs++ = boxed(Tensor(result).release());
  return TENON_OK;
}
// A gradient, unless it is zero.
inline void give_gradient(tenon_value& out, Tensor gradient) {
  if (gradient) out = boxed(gradient.release());
}
inline void give_list(tenon_value& out, const std::vector<Tensor>& tensors) {
  tenon_tensor** array = host->list_create(static_cast<uint32_t>(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) array[i] = Tensor(tensors[i]).release();
  out = boxed(array, tensors.size());
}

}  // namespace tenon::expression
