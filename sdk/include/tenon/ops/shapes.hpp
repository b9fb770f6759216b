// SPDX-License-Identifier: Apache-2.0
// Building blocks of shape rules: used by generated rules and by hand-written infer_<op> functions.
// Every message names the operator, what was expected, what was got.
#pragma once

#include <tenon/unbox.h>
#include <tenon/tensor.hpp>

#include <cstdarg>
#include <initializer_list>
#include <string>

namespace tenon::shapes {

// "[sum] " and the formatted text.
[[gnu::format(printf, 4, 5)]] [[gnu::cold]] inline tenon_status fail(tenon_err* err,
                                                                     tenon_status code,
                                                                     const char* op,
                                                                     const char* format, ...) {
  TextBuffer text;
  text.append("[%s] ", op);
  va_list arguments;
  va_start(arguments, format);
  text.append_list(format, arguments);
  va_end(arguments);
  return tenon::fail(err, code, text.text());
}

// -- dtypes -----------------------------------------------------------------------------------

constexpr uint64_t bit(int32_t dtype) { return uint64_t{1} << dtype; }
constexpr uint64_t kIntegers = 0x1fe, kFloats = 0x7e00, kComplex = 0x18000;
static_assert(kIntegers == (bit(TENON_DTYPE_I64 + 1) - bit(TENON_DTYPE_U8)));
static_assert(kFloats == (bit(TENON_DTYPE_F64 + 1) - bit(TENON_DTYPE_F8E4M3)));
static_assert(kComplex == (bit(TENON_DTYPE_C64) | bit(TENON_DTYPE_C128)));

// bool and integers become float32.
constexpr int32_t float_dtype(int32_t dtype) {
  return dtype <= TENON_DTYPE_I64 ? TENON_DTYPE_F32 : dtype;
}
constexpr bool is_unsigned(int32_t dtype) {
  return dtype == TENON_DTYPE_U8 || dtype == TENON_DTYPE_U16 || dtype == TENON_DTYPE_U32 ||
         dtype == TENON_DTYPE_U64;
}
// Of sums and products: bool and signed integers become int64, unsigned ones uint64.
constexpr int32_t accumulate_dtype(int32_t dtype) {
  if (is_unsigned(dtype)) return TENON_DTYPE_U64;
  return dtype <= TENON_DTYPE_I64 ? TENON_DTYPE_I64 : dtype;
}
constexpr int32_t real_dtype(int32_t dtype) {
  if (dtype == TENON_DTYPE_C64) return TENON_DTYPE_F32;
  return dtype == TENON_DTYPE_C128 ? TENON_DTYPE_F64 : dtype;
}

// dtype of the first tensor among the arguments; float32 if there is none.
inline int32_t first_dtype(const tenon_value* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR) return tenon_arg_tensor(&args[i])->dtype;
    if (args[i].tag == TENON_VALUE_TENSORS)
      for (uint32_t j = 0; j < args[i].aux; ++j)
        if (const tenon_tensor* t = tenon_arg_tensors(&args[i])[j]) return t->dtype;
  }
  return TENON_DTYPE_F32;
}

// Promotion of the arguments with these indices.
inline int32_t promoted_dtype(const tenon_value* args, std::initializer_list<uint32_t> indices) {
  int32_t dtype = -1;
  auto take = [&](const tenon_tensor* t) {
    if (t) dtype = dtype < 0 || dtype == t->dtype ? t->dtype : host->dtype_promote(dtype, t->dtype);
  };
  for (uint32_t i : indices) {
    take(tenon_arg_tensor(&args[i]));
    for (uint32_t j = 0; args[i].tag == TENON_VALUE_TENSORS && j < args[i].aux; ++j)
      take(tenon_arg_tensors(&args[i])[j]);
  }
  return dtype < 0 ? TENON_DTYPE_F32 : dtype;
}

// A dtype parameter; `otherwise` if it is none.
inline int32_t dtype_or(const tenon_value& value, int32_t otherwise) {
  return value.tag == TENON_VALUE_NONE ? otherwise : static_cast<int32_t>(value.v.i);
}

// Tensors of a parameter must have a dtype in `mask`, which `expected` describes.
inline tenon_status check_dtype(const char* op, const char* name, const tenon_value& value,
                                uint64_t mask, const char* expected, tenon_err* err) {
  auto check = [&](const tenon_tensor* t) {
    if (!t || (bit(t->dtype) & mask)) return TENON_OK;
    return static_cast<decltype(TENON_OK)>(fail(
        err, TENON_TYPE_MISMATCH, op, "expected %s of dtype %s, got %s; convert it with cast()",
        name, expected, host->dtype_name(t->dtype)));
  };
  TENON_TRY(check(tenon_arg_tensor(&value)));
  for (uint32_t j = 0; value.tag == TENON_VALUE_TENSORS && j < value.aux; ++j)
    TENON_TRY(check(tenon_arg_tensors(&value)[j]));
  return TENON_OK;
}

// -- outputs ----------------------------------------------------------------------------------

inline void set_new(tenon_meta& out, int32_t dtype) {
  out.dtype = static_cast<uint8_t>(dtype);
  out.kind = TENON_META_NEW;
  out.view_of = 0;
  out.offset = 0;
}

// Sharing the storage of argument `argument`; the rule still says shape, strides and offset.
inline void set_view(tenon_meta& out, int32_t dtype, uint16_t argument) {
  set_new(out, dtype);
  out.kind = TENON_META_VIEW;
  out.view_of = argument;
}

inline void set_shape(tenon_meta& out, int64_t ndim, const int64_t* sizes) {
  out.ndim = static_cast<int32_t>(ndim);
  for (int64_t i = 0; i < ndim; ++i) out.shape[i] = sizes[i];
}

inline tenon_status check_ndim(const char* op, int64_t ndim, tenon_err* err) {
  if (ndim <= TENON_MAX_NDIM) return TENON_OK;
  return fail(err, TENON_INVALID_ARGUMENT, op, "expected at most %d dimensions, got %lld",
              TENON_MAX_NDIM, static_cast<long long>(ndim));
}

// -- axes -------------------------------------------------------------------------------------

// `axis` counted from the end if negative, checked against [-ndim, ndim).
inline tenon_status normalize_axis(const char* op, const char* name, int64_t axis, int64_t ndim,
                                   int64_t* result, tenon_err* err) {
  if (axis < -ndim || axis >= ndim)
    return ndim == 0
               ? fail(err, TENON_OUT_OF_RANGE, op, "expected no %s for a 0-d tensor, got %lld",
                      name, static_cast<long long>(axis))
               : fail(err, TENON_OUT_OF_RANGE, op,
                      "expected %s in [%lld, %lld) for %lld dimensions, got %lld", name,
                      -static_cast<long long>(ndim), static_cast<long long>(ndim),
                      static_cast<long long>(ndim), static_cast<long long>(axis));
  *result = axis < 0 ? axis + ndim : axis;
  return TENON_OK;
}

// The same for operators along an axis (scans, sorting, softmax, reductions): a 0-d tensor counts
// as one with a single axis of length 1, as in NumPy and PyTorch. `*result` is 0 for it.
inline tenon_status normalize_axis_along(const char* op, const char* name, int64_t axis,
                                         int64_t ndim, int64_t* result, tenon_err* err) {
  if (ndim == 0 && axis != 0 && axis != -1)
    return fail(err, TENON_OUT_OF_RANGE, op, "expected %s 0 or -1 for a 0-d tensor, got %lld", name,
                static_cast<long long>(axis));
  return normalize_axis(op, name, axis, ndim == 0 ? 1 : ndim, result, err);
}

// An int or int[] of axes as a mask of dimensions; none: all of them. No axis may come twice.
inline tenon_status axis_mask(const char* op, const char* name, const tenon_value& axes,
                              int64_t ndim, uint32_t* mask, tenon_err* err) {
  *mask = 0;
  if (axes.tag == TENON_VALUE_NONE) {
    *mask = ndim == 32 ? ~uint32_t{0} : (uint32_t{1} << ndim) - 1;
    return TENON_OK;
  }
  const int64_t* list = tenon_arg_ints(&axes);
  for (uint64_t i = 0; i < tenon_arg_count(&axes); ++i) {
    int64_t axis = 0;
    TENON_TRY(normalize_axis(op, name, list[i], ndim, &axis, err));
    uint32_t bit = uint32_t{1} << axis;
    if (*mask & bit)
      return fail(err, TENON_INVALID_ARGUMENT, op, "expected different axes in %s, got %lld twice",
                  name, static_cast<long long>(axis));
    *mask |= bit;
  }
  return TENON_OK;
}

// The same for reductions, which take 0 and -1 for an axis of a 0-d tensor.
inline tenon_status reduction_mask(const char* op, const char* name, const tenon_value& axes,
                                   int64_t ndim, uint32_t* mask, tenon_err* err) {
  if (ndim > 0 || axes.tag == TENON_VALUE_NONE) return axis_mask(op, name, axes, ndim, mask, err);
  const int64_t* list = tenon_arg_ints(&axes);
  for (uint64_t i = 0; i < tenon_arg_count(&axes); ++i) {
    int64_t axis = 0;
    TENON_TRY(normalize_axis_along(op, name, list[i], 0, &axis, err));
  }
  TENON_TRY(axis_mask(op, name, axes, 1, mask, err));  // no axis twice
  *mask = 0;
  return TENON_OK;
}

// -- rules ------------------------------------------------------------------------------------

inline void same(const tenon_value& x, tenon_meta& out) {
  const tenon_tensor* t = tenon_arg_tensor(&x);
  set_shape(out, t ? t->ndim : 0, t ? t->shape : nullptr);
}

inline tenon_status reduce(const char* op, const tenon_value& x, const char* axis_name,
                           const tenon_value& axes, bool keepdim, tenon_meta& out, tenon_err* err) {
  const tenon_tensor* t = tenon_arg_tensor(&x);
  int64_t ndim = t ? t->ndim : 0;
  uint32_t mask = 0;
  TENON_TRY(reduction_mask(op, axis_name, axes, ndim, &mask, err));
  out.ndim = 0;
  for (int64_t i = 0; i < ndim; ++i) {
    bool reduced = (mask >> i & 1) != 0;
    if (!reduced || keepdim) out.shape[out.ndim++] = reduced ? 1 : t->shape[i];
  }
  return TENON_OK;
}

inline tenon_status of(const char* op, const char* name, const tenon_value& sizes, tenon_meta& out,
                       tenon_err* err) {
  const int64_t* list = tenon_arg_ints(&sizes);
  int64_t ndim = static_cast<int64_t>(tenon_arg_count(&sizes));
  TENON_TRY(check_ndim(op, ndim, err));
  for (int64_t i = 0; i < ndim; ++i)
    if (list[i] < 0)
      return fail(err, TENON_INVALID_ARGUMENT, op, "expected sizes >= 0 in %s, got %s", name,
                  shape_text(ndim, list).c_str());
  set_shape(out, ndim, list);
  return TENON_OK;
}

// Widen the shape in `out` by one more operand.
inline tenon_status broadcast_with(const char* op, const tenon_tensor* t, tenon_meta& out,
                                   tenon_err* err) {
  if (!t) return TENON_OK;
  int32_t ndim = t->ndim > out.ndim ? t->ndim : out.ndim;
  int64_t shape[TENON_MAX_NDIM];
  for (int32_t i = 1; i <= ndim; ++i) {
    int64_t a = i <= out.ndim ? out.shape[out.ndim - i] : 1;
    int64_t b = i <= t->ndim ? t->shape[t->ndim - i] : 1;
    if (a != b && a != 1 && b != 1)
      return fail(
          err, TENON_INVALID_ARGUMENT, op,
          "expected shapes that broadcast, got %s and %s: %lld against %lld, %d from the end",
          shape_text(out.ndim, out.shape).c_str(), shape_text(*t).c_str(),
          static_cast<long long>(a), static_cast<long long>(b), i);
    shape[ndim - i] = a == 1 ? b : a;
  }
  set_shape(out, ndim, shape);
  return TENON_OK;
}

inline tenon_status broadcast(const char* op, std::initializer_list<const tenon_value*> operands,
                              tenon_meta& out, tenon_err* err) {
  out.ndim = 0;
  for (const tenon_value* operand : operands)
    TENON_TRY(broadcast_with(op, tenon_arg_tensor(operand), out, err));
  return TENON_OK;
}

}  // namespace tenon::shapes
