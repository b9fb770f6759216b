// SPDX-License-Identifier: Apache-2.0
// Reading boxed arguments in shape rules and composites. The host has already checked every
// argument's kind against the schema, filled in defaults and turned lone numbers into lists where
// lists are expected.
#pragma once

#include <tenon/integer_range.hpp>
#include <tenon/ops/shapes.hpp>
#include <tenon/plugin.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace tenon::standard_ops {

using Ints = std::span<const int64_t>;

inline bool is_none(const tenon_value& value) { return value.tag == TENON_VALUE_NONE; }
inline tenon_tensor& tensor_of(const tenon_value& value) {
  return *static_cast<tenon_tensor*>(value.v.p);
}
inline tenon_tensor* optional_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}
inline std::span<tenon_tensor* const> tensors_of(const tenon_value& value) {
  return {static_cast<tenon_tensor* const*>(value.v.p), value.aux};
}
inline int64_t int_of(const tenon_value& value) { return value.v.i; }
inline bool bool_of(const tenon_value& value) { return value.v.i != 0; }
inline double float_of(const tenon_value& value) { return tenon_arg_float(&value); }
// An optional list that is none reads as an empty one.
inline Ints ints_of(const tenon_value& value) {
  return {tenon_arg_ints(&value), tenon_arg_count(&value)};
}
inline std::string_view text_of(const tenon_value& value) {
  return {static_cast<const char*>(value.v.p), value.aux};
}
inline Ints shape_of(const tenon_tensor& tensor) {
  return {tensor.shape, static_cast<size_t>(tensor.ndim)};
}

// printf has no int64_t.
inline long long ll(int64_t value) { return value; }

// A whole number that becomes an element: `dtype` must hold it.
inline tenon_status expect_integer(const char* op, int32_t dtype, int64_t value, tenon_err* err) {
  if (holds_integer(dtype, value)) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "%s",
                      out_of_integer_range(dtype, host->dtype_name(dtype), value).c_str());
}

// A number of any kind that becomes an element. Floats are cut to whole numbers, as NumPy does.
tenon_status expect_element(const char* op, int32_t dtype, const tenon_value& value,
                            tenon_err* err);

// An axis as the caller names it, possibly counted from the end, to [0, ndim).
inline tenon_status resolve_axis(const char* op, int64_t axis, int32_t ndim, int32_t* out,
                                 tenon_err* err) {
  int64_t index = 0;
  TENON_TRY(shapes::normalize_axis(op, "axis", axis, ndim, &index, err));
  *out = static_cast<int32_t>(index);
  return TENON_OK;
}

// The axis that an operator works along: 0 for a 0-d tensor, which counts as one of length 1.
inline tenon_status resolve_axis_along(const char* op, int64_t axis, int32_t ndim, int32_t* out,
                                       tenon_err* err) {
  int64_t index = 0;
  TENON_TRY(shapes::normalize_axis_along(op, "axis", axis, ndim, &index, err));
  *out = static_cast<int32_t>(index);
  return TENON_OK;
}

// Several different axes, as a bit mask. None at all means every axis.
inline tenon_status resolve_axes(const char* op, const tenon_value& axes, int32_t ndim,
                                 uint32_t* mask, tenon_err* err) {
  return shapes::axis_mask(op, "axis", axes, ndim, mask, err);
}
// The axes of a reduction: a 0-d tensor may have 0 or -1 named, which reduces nothing.
inline tenon_status resolve_reduced(const char* op, const tenon_value& axes, int32_t ndim,
                                    uint32_t* mask, tenon_err* err) {
  return shapes::reduction_mask(op, "axis", axes, ndim, mask, err);
}

inline tenon_status expect_ndim(const char* op, const char* name, const tenon_tensor& tensor,
                                int32_t ndim, const char* layout, tenon_err* err) {
  if (tensor.ndim == ndim) return TENON_OK;
  return shapes::fail(
      err, TENON_INVALID_ARGUMENT, op,
      "expected %s to have %d axes, %s, got shape %s; add or drop axes with reshape", name, ndim,
      layout, shape_text(tensor).c_str());
}

// Two numbers, or one for both: kernel sizes, strides, padding.
inline tenon_status read_pair(const char* op, const char* name, Ints values, int64_t least,
                              int64_t pair[2], tenon_err* err) {
  if (values.size() != 1 && values.size() != 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected %s to be one number or two, got %zu", name, values.size());
  pair[0] = values.front();
  pair[1] = values.back();
  if (pair[0] < least || pair[1] < least)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of at least %lld, got %s",
                        name, ll(least), list_text(values).c_str());
  return TENON_OK;
}

inline int64_t product(Ints values) {
  int64_t result = 1;
  for (int64_t value : values) result *= value;
  return result;
}

}  // namespace tenon::standard_ops
