// SPDX-License-Identifier: Apache-2.0
// What operator expressions (`decompose`, `grad`) are translated to, beside operator calls: reading
// boxed arguments, facts about tensors, arithmetic on host values, handing over results.
#pragma once

#include <tenon/unbox.h>
#include <tenon/ops/call.hpp>
#include <tenon/ops/shapes.hpp>

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace tenon::expression {

// -- boxed arguments
// --------------------------------------------------------------------------------

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

// -- tensors
// ----------------------------------------------------------------------------------------

inline const tenon_tensor* handle(const TensorArg& x) { return tenon_arg_tensor(&x.value()); }
inline bool present(const TensorArg& x) { return x.value().tag != TENON_VALUE_NONE; }

// A tensor where a number will not do.
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
// The device of a gradient that is there.
inline int32_t device_of_any(tenon_tensor* const* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    if (tensors[i]) return tensors[i]->device;
  return host->device_host();
}

// -- lists
// ------------------------------------------------------------------------------------------

[[gnu::cold]] inline void fail_index(Scope& scope, int64_t index, uint64_t size) {
  if (scope.ok())
    scope.fail(TENON_OUT_OF_RANGE, "expected an index below " + std::to_string(size) + ", got " +
                                       std::to_string(index));
}
// Element `index`, counted from the end if negative. After a failure in the scope there may be
// none.
template <class T>
T at(Scope& scope, const List<T>& list, int64_t index) {
  int64_t size = static_cast<int64_t>(list.size());
  if (index < -size || index >= size) {
    fail_index(scope, index, list.size());
    return T{};
  }
  return list[static_cast<uint64_t>(index < 0 ? index + size : index)];
}
template <class T>
T at(Scope& scope, const std::vector<T>& list, int64_t index) {
  return at(scope, List<T>(list), index);
}
inline Tensor at(Scope& scope, const TensorList& list, int64_t index) {
  int64_t size = static_cast<int64_t>(list.size());
  if (index < -size || index >= size) {
    fail_index(scope, index, list.size());
    return {};
  }
  return Tensor::borrow(list[static_cast<uint64_t>(index < 0 ? index + size : index)]);
}
inline Tensor at(Scope& scope, const std::vector<Tensor>& list, int64_t index) {
  return at(scope, TensorList(list), index);
}

template <class T>
std::vector<T> own(const List<T>& list) {
  return list.vector();
}
template <class T>
std::vector<T> own(const std::vector<T>& list) {
  return list;
}
inline std::vector<double> floats(const IntList& list) { return {list.begin(), list.end()}; }

inline bool equal(const IntList& a, const IntList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
inline std::vector<int64_t> joined(const IntList& a, const IntList& b) {
  std::vector<int64_t> result = a.vector();
  result.insert(result.end(), b.begin(), b.end());
  return result;
}
template <class T>
int64_t len(const List<T>& list) {
  return static_cast<int64_t>(list.size());
}
template <class T>
int64_t len(const std::vector<T>& list) {
  return static_cast<int64_t>(list.size());
}
inline int64_t len(const TensorList& list) { return static_cast<int64_t>(list.size()); }
inline int64_t prod(const IntList& list) {
  int64_t result = 1;
  for (int64_t item : list) result *= item;
  return result;
}
inline std::vector<int64_t> range(int64_t begin, int64_t end) {
  std::vector<int64_t> result;
  for (int64_t i = begin; i < end; ++i) result.push_back(i);
  return result;
}
inline std::vector<int64_t> reversed(const IntList& list) {
  std::vector<int64_t> result = list.vector();
  std::reverse(result.begin(), result.end());
  return result;
}
// Positions are clamped, as in Python's slices; negative ones count from the end.
inline int64_t clamped(const IntList& list, int64_t index) {
  int64_t size = len(list);
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
}
inline std::vector<int64_t> slice(const IntList& list, int64_t begin, int64_t end) {
  const int64_t* first = list.begin() + clamped(list, begin);
  return {first, std::max(first, list.begin() + clamped(list, end))};
}
inline std::vector<int64_t> insert(const IntList& list, int64_t index, int64_t item) {
  std::vector<int64_t> result = list.vector();
  result.insert(result.begin() + clamped(list, index), item);
  return result;
}
inline std::vector<int64_t> remove(const IntList& list, int64_t index) {
  std::vector<int64_t> result = list.vector();
  int64_t position = clamped(list, index);
  if (position < len(list)) result.erase(result.begin() + position);
  return result;
}
inline std::vector<int64_t> replace(const IntList& list, int64_t index, int64_t item) {
  std::vector<int64_t> result = list.vector();
  int64_t position = clamped(list, index);
  if (position < len(list)) result[static_cast<size_t>(position)] = item;
  return result;
}
inline std::vector<int64_t> repeat(int64_t item, int64_t count) {
  return std::vector<int64_t>(static_cast<size_t>(std::max<int64_t>(count, 0)), item);
}
inline bool contains(const IntList& list, int64_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}
// Axes as non-negative numbers; none: all of them.
inline std::vector<int64_t> axes(const OptionalInts& axes, int64_t ndim) {
  if (!axes) return range(0, ndim);
  std::vector<int64_t> result = (*axes).vector();
  for (int64_t& axis : result) axis += axis < 0 ? ndim : 0;
  return result;
}
inline std::vector<int64_t> inverse(const IntList& permutation) {
  std::vector<int64_t> result(permutation.size());
  int64_t ndim = len(permutation);
  for (int64_t i = 0; i < ndim; ++i) {
    int64_t axis = permutation[static_cast<uint64_t>(i)];
    axis += axis < 0 ? ndim : 0;
    if (axis >= 0 && axis < ndim) result[static_cast<size_t>(axis)] = i;
  }
  return result;
}
inline std::vector<int64_t> broadcast_shapes(const IntList& a, const IntList& b) {
  const IntList &longer = a.size() < b.size() ? b : a, &shorter = a.size() < b.size() ? a : b;
  std::vector<int64_t> result = longer.vector();
  for (uint64_t i = 1; i <= shorter.size(); ++i) {
    int64_t& extent = result[result.size() - i];
    extent = extent == 1 ? shorter[shorter.size() - i] : extent;
  }
  return result;
}
// Extent `axis` of every tensor.
inline std::vector<int64_t> extents(const TensorList& list, int64_t axis) {
  std::vector<int64_t> result;
  for (uint64_t i = 0; i < list.size(); ++i) {
    int64_t ndim = list[i] ? list[i]->ndim : 0, index = axis < 0 ? axis + ndim : axis;
    result.push_back(index >= 0 && index < ndim ? list[i]->shape[index] : 0);
  }
  return result;
}

// -- numbers
// ----------------------------------------------------------------------------------------

inline double quotient(const ScalarArg& a, const ScalarArg& b) { return a.number() / b.number(); }
inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t result = a / b;
  return result - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t floordiv(int64_t a, int64_t b) { return floor_divide(a, b); }
inline int64_t floor_modulo(int64_t a, int64_t b) {
  return b == 0 ? 0 : a - floor_divide(a, b) * b;
}
inline int64_t integer(double number) { return static_cast<int64_t>(number); }
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T abs(T a) {
  return a < 0 ? -a : a;
}
using std::ceil;
using std::cos;
using std::erf;
using std::exp;
using std::floor;
using std::lgamma;
using std::log;
using std::pow;
using std::sin;
using std::sqrt;
using std::tanh;

template <class Function>
ScalarArg on_scalars(const ScalarArg& a, const ScalarArg& b, Function function) {
  if (a.is_float() || b.is_float()) return function(a.number(), b.number());
  return function(a.value().v.i, b.value().v.i);
}
inline ScalarArg sum(const ScalarArg& a, const ScalarArg& b) {
  return on_scalars(a, b, [](auto x, auto y) { return x + y; });
}
inline ScalarArg difference(const ScalarArg& a, const ScalarArg& b) {
  return on_scalars(a, b, [](auto x, auto y) { return x - y; });
}
inline ScalarArg product(const ScalarArg& a, const ScalarArg& b) {
  return on_scalars(a, b, [](auto x, auto y) { return x * y; });
}
inline ScalarArg negative(const ScalarArg& a) { return difference(int64_t{0}, a); }

// -- dtypes
// -----------------------------------------------------------------------------------------

inline bool is_floating(int32_t dtype) { return (shapes::bit(dtype) & shapes::kFloats) != 0; }
inline bool is_complex(int32_t dtype) { return (shapes::bit(dtype) & shapes::kComplex) != 0; }
inline bool is_integer(int32_t dtype) { return (shapes::bit(dtype) & shapes::kIntegers) != 0; }
inline bool is_bool(int32_t dtype) { return dtype == TENON_DTYPE_BOOL; }
inline int32_t promote(int32_t a, int32_t b) { return host->dtype_promote(a, b); }
inline int32_t real_dtype(int32_t dtype) { return shapes::real_dtype(dtype); }
// Distance from 1 to the next number.
inline double epsilon(int32_t dtype) {
  switch (shapes::real_dtype(dtype)) {
    case TENON_DTYPE_F64:
      return DBL_EPSILON;
    case TENON_DTYPE_F32:
      return FLT_EPSILON;
    case TENON_DTYPE_F16:
      return 0x1p-10;
    case TENON_DTYPE_BF16:
      return 0x1p-7;
    case TENON_DTYPE_F8E4M3:
      return 0x1p-3;
    case TENON_DTYPE_F8E5M2:
      return 0x1p-2;
    default:
      return 1;
  }
}
// Largest finite number.
inline double highest(int32_t dtype) {
  switch (shapes::real_dtype(dtype)) {
    case TENON_DTYPE_BOOL:
      return 1;
    case TENON_DTYPE_F64:
      return DBL_MAX;
    case TENON_DTYPE_F32:
      return FLT_MAX;
    case TENON_DTYPE_F16:
      return 65504;
    case TENON_DTYPE_BF16:
      return 0x1.fep127;
    case TENON_DTYPE_F8E4M3:
      return 448;
    case TENON_DTYPE_F8E5M2:
      return 57344;
    default: {
      int bits = static_cast<int>(host->dtype_size(dtype)) * 8;
      bool is_signed = dtype % 2 == 0;  // ids alternate: u8, i8, u16, ...
      return std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1;
    }
  }
}
inline double lowest(int32_t dtype) {
  bool is_unsigned = is_bool(dtype) || (is_integer(dtype) && dtype % 2 == 1);
  if (is_unsigned) return 0;
  return is_integer(dtype) ? -highest(dtype) - 1 : -highest(dtype);
}

// -- arithmetic on what may be a number
// -------------------------------------------------------------

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

// -- results
// ----------------------------------------------------------------------------------------

// Set boxed results to the tensors, if nothing failed.
inline tenon_status give(Scope& scope, tenon_value* outs, std::initializer_list<Tensor> results) {
  if (!scope.ok()) return scope.status();
  for (const Tensor& result : results)
    *outs++ = {TENON_VALUE_TENSOR, 0, {.p = Tensor(result).release()}};
  return TENON_OK;
}
// A gradient, unless it is zero.
inline void give_gradient(tenon_value& out, Tensor gradient) {
  if (gradient) out = {TENON_VALUE_TENSOR, 0, {.p = gradient.release()}};
}
inline void give_list(tenon_value& out, const std::vector<Tensor>& tensors) {
  tenon_tensor** array = host->list_create(static_cast<uint32_t>(tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) array[i] = Tensor(tensors[i]).release();
  out = {TENON_VALUE_TENSORS, static_cast<uint32_t>(tensors.size()), {.p = array}};
}

}  // namespace tenon::expression
