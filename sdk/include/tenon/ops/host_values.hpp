// SPDX-License-Identifier: Apache-2.0
// Host values in operator expressions: lists of extents and axes, numbers, dtypes. Part of
// tenon/ops/expression.hpp.
#pragma once

#include <tenon/ops/call.hpp>
#include <tenon/ops/shapes.hpp>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

namespace tenon::expression {

// -- lists ------------------------------------------------------------------------------------

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
// Indices are clamped, as in Python's slices; negative ones count from the end.
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

// -- numbers ----------------------------------------------------------------------------------

// Integers saturate, as extents that wrapped around could fit by accident; operators refuse the limits.
inline int64_t saturated(bool to_least) { return to_least ? INT64_MIN : INT64_MAX; }
inline int64_t plus(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? saturated(a < 0) : result;
}
inline int64_t minus(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_sub_overflow(a, b, &result) ? saturated(a < 0) : result;
}
inline int64_t times(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? saturated((a < 0) != (b < 0)) : result;
}

inline double quotient(const ScalarArg& a, const ScalarArg& b) { return a.number() / b.number(); }
inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));  // INT64_MIN / -1 traps
  int64_t result = a / b;
  return result - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t floordiv(int64_t a, int64_t b) { return floor_divide(a, b); }
inline int64_t floor_modulo(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a - floor_divide(a, b) * b;
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

// Of integers whose result int64 does not hold, the result is a float.
template <class Function, class Checked>
ScalarArg on_scalars(const ScalarArg& a, const ScalarArg& b, Function function, Checked checked) {
  int64_t result = 0;
  if (!a.is_float() && !b.is_float() && !checked(a.value().v.i, b.value().v.i, &result)) {
    return result;
  }
  return function(a.number(), b.number());
}
inline ScalarArg sum(const ScalarArg& a, const ScalarArg& b) {
  return on_scalars(a, b, std::plus<double>(), [](int64_t x, int64_t y, int64_t* result) {
    return __builtin_add_overflow(x, y, result);
  });
}
inline ScalarArg difference(const ScalarArg& a, const ScalarArg& b) {
  return on_scalars(a, b, std::minus<double>(), [](int64_t x, int64_t y, int64_t* result) {
    return __builtin_sub_overflow(x, y, result);
  });
}
inline ScalarArg product(const ScalarArg& a, const ScalarArg& b) {
  return on_scalars(a, b, std::multiplies<double>(), [](int64_t x, int64_t y, int64_t* result) {
    return __builtin_mul_overflow(x, y, result);
  });
}
inline ScalarArg negative(const ScalarArg& a) { return difference(int64_t{0}, a); }

// -- dtypes -----------------------------------------------------------------------------------

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

}  // namespace tenon::expression
