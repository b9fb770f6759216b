// SPDX-License-Identifier: Apache-2.0
// Reading boxed arguments and writing shape rules. The host has already checked every argument's kind
// against the schema, filled in defaults and turned lone numbers into lists where lists are expected.
#pragma once

#include <tenon/plugin.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

// Return early with the status of a failed call.
#define TENON_TRY(expression)                                                        \
  do {                                                                               \
    if (tenon_status tenon_try_ = (expression); tenon_try_ != TENON_OK) [[unlikely]] \
      return tenon_try_;                                                             \
  } while (0)

namespace tenon::standard {

using Ints = std::span<const int64_t>;

inline bool is_none(const tenon_value& value) { return value.tag == TENON_VALUE_NONE; }
inline const tenon_tensor& tensor_of(const tenon_value& value) {
  return *static_cast<const tenon_tensor*>(value.v.p);
}
inline const tenon_tensor* optional_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<const tenon_tensor*>(value.v.p) : nullptr;
}
inline std::span<tenon_tensor* const> tensors_of(const tenon_value& value) {
  return {static_cast<tenon_tensor* const*>(value.v.p), value.aux};
}
inline int64_t int_of(const tenon_value& value) { return value.v.i; }
inline bool bool_of(const tenon_value& value) { return value.v.i != 0; }
inline double float_of(const tenon_value& value) {
  return value.tag == TENON_VALUE_FLOAT ? value.v.f : static_cast<double>(value.v.i);
}
inline Ints ints_of(const tenon_value& value) {
  if (is_none(value)) return {};
  return {static_cast<const int64_t*>(value.v.p), value.aux};
}
inline std::string_view text_of(const tenon_value& value) {
  return {static_cast<const char*>(value.v.p), value.aux};
}
inline Ints shape_of(const tenon_tensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.ndim)};
}

// Record a failure and return its code.
[[gnu::format(printf, 3, 4)]] [[gnu::cold]]
inline tenon_status failf(tenon_err* err, tenon_status code, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  int length = std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return fail(err, code, {text, std::min<size_t>(static_cast<size_t>(std::max(length, 0)), sizeof text - 1)});
}

// "[2, 3]"
inline std::string list_text(Ints values) {
  std::string text = "[";
  for (int64_t value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}
inline std::string shape_text(const tenon_tensor& tensor) { return list_text(shape_of(tensor)); }

// printf has no int64_t.
inline long long ll(int64_t value) { return value; }

// An axis as the caller names it, possibly counted from the end, to [0, ndim).
inline tenon_status resolve_axis(const char* op, int64_t axis, int32_t ndim, int32_t* out, tenon_err* err) {
  if (axis < -ndim || axis >= ndim)
    return failf(err, TENON_OUT_OF_RANGE, "[%s] expected an axis from %d to %d, got %lld; the tensor has %d axes", op,
                 -ndim, ndim - 1, ll(axis), ndim);
  *out = static_cast<int32_t>(axis < 0 ? axis + ndim : axis);
  return TENON_OK;
}

// Several different axes, as a bit mask. No list at all means every axis.
inline tenon_status resolve_axes(const char* op, const tenon_value& axes, int32_t ndim, uint32_t* mask, tenon_err* err) {
  if (is_none(axes)) {
    *mask = ndim == 32 ? ~0u : (1u << ndim) - 1;
    return TENON_OK;
  }
  *mask = 0;
  for (int64_t axis : ints_of(axes)) {
    int32_t index;
    TENON_TRY(resolve_axis(op, axis, ndim, &index, err));
    if (*mask >> index & 1)
      return failf(err, TENON_INVALID_ARGUMENT, "[%s] expected different axes, got %s", op,
                   list_text(ints_of(axes)).c_str());
    *mask |= 1u << index;
  }
  return TENON_OK;
}

inline tenon_status expect_ndim(const char* op, const char* name, const tenon_tensor& tensor, int32_t ndim,
                                const char* layout, tenon_err* err) {
  if (tensor.ndim == ndim) return TENON_OK;
  return failf(err, TENON_INVALID_ARGUMENT, "[%s] expected %s to have %d axes, %s, got shape %s; add or drop axes with "
               "unsqueeze or reshape", op, name, ndim, layout, shape_text(tensor).c_str());
}

// Two numbers, or one for both: kernel sizes, strides, padding.
inline tenon_status read_pair(const char* op, const char* name, Ints values, int64_t least, int64_t pair[2],
                              tenon_err* err) {
  if (values.size() != 1 && values.size() != 2)
    return failf(err, TENON_INVALID_ARGUMENT, "[%s] expected %s to be one number or two, got %zu", op, name,
                 values.size());
  pair[0] = values.front();
  pair[1] = values.back();
  if (pair[0] < least || pair[1] < least)
    return failf(err, TENON_INVALID_ARGUMENT, "[%s] expected %s of at least %lld, got %s", op, name, ll(least),
                 list_text(values).c_str());
  return TENON_OK;
}

inline int64_t product(Ints values) {
  int64_t result = 1;
  for (int64_t value : values) result *= value;
  return result;
}

}  // namespace tenon::standard
