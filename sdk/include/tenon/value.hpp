// SPDX-License-Identifier: Apache-2.0
// Boxing: C++ values as the tenon_value that operators take. Lists, texts and tensors are borrowed:
// they must live until the call returns.
#pragma once

#include <tenon/abi.h>

#include <string_view>
#include <type_traits>

namespace tenon {

inline constexpr tenon_value kNoValue{TENON_VALUE_NONE, 0, {.i = 0}};

// A number keeps its kind: bool, integer or floating point.
template <class Number>
requires std::is_arithmetic_v<Number>
constexpr tenon_value boxed(Number number) {
  if constexpr (std::is_same_v<Number, bool>)
    return {TENON_VALUE_BOOL, 0, {.i = number}};
  else if constexpr (std::is_integral_v<Number>)
    return {TENON_VALUE_INT, 0, {.i = static_cast<int64_t>(number)}};
  else
    return {TENON_VALUE_FLOAT, 0, {.f = static_cast<double>(number)}};
}

// `tensor` is not NULL; an absent tensor is kNoValue.
constexpr tenon_value boxed(tenon_tensor* tensor) { return {TENON_VALUE_TENSOR, 0, {.p = tensor}}; }

constexpr tenon_value boxed(std::string_view text) {
  return {TENON_VALUE_STRING,
          static_cast<uint32_t>(text.size()),
          {.p = const_cast<char*>(text.data())}};
}

// Lists, by their first element and their length.
constexpr tenon_value boxed(const int64_t* list, uint64_t count) {
  return {TENON_VALUE_INTS, static_cast<uint32_t>(count), {.p = const_cast<int64_t*>(list)}};
}
constexpr tenon_value boxed(const double* list, uint64_t count) {
  return {TENON_VALUE_FLOATS, static_cast<uint32_t>(count), {.p = const_cast<double*>(list)}};
}
constexpr tenon_value boxed(tenon_tensor* const* list, uint64_t count) {
  return {
      TENON_VALUE_TENSORS, static_cast<uint32_t>(count), {.p = const_cast<tenon_tensor**>(list)}};
}

// A complex number, by its real and imaginary part.
constexpr tenon_value boxed_complex(const double* parts) {
  return {TENON_VALUE_COMPLEX, 0, {.p = const_cast<double*>(parts)}};
}

// The ids of a dtype and of a device. A negative id, or TENON_DEVICE_NONE, is an absent value.
constexpr tenon_value boxed_dtype(int32_t id) {
  return id < 0 ? kNoValue : tenon_value{TENON_VALUE_DTYPE, 0, {.i = id}};
}
constexpr tenon_value boxed_device(int32_t id) {
  return id < 0 || id == TENON_DEVICE_NONE ? kNoValue
                                           : tenon_value{TENON_VALUE_DEVICE, 0, {.i = id}};
}

}  // namespace tenon
