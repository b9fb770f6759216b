/* SPDX-License-Identifier: Apache-2.0
 *
 * Read one boxed argument. C11 and C++20. Used by the generated wrappers around typed kernels, and
 * handy in boxed ones. The host has checked kinds and filled in defaults before a kernel runs. */
#ifndef TENON_UNBOX_H_
#define TENON_UNBOX_H_

#include <tenon/abi.h>

/* NULL: none. */
static inline const tenon_tensor* tenon_arg_tensor(const tenon_value* value) {
  return value->tag == TENON_VALUE_TENSOR ? (const tenon_tensor*)value->v.p : 0;
}

static inline int64_t tenon_arg_int(const tenon_value* value) { return value->v.i; }

static inline double tenon_arg_float(const tenon_value* value) {
  return value->tag == TENON_VALUE_FLOAT ? value->v.f : (double)value->v.i;
}

static inline int32_t tenon_arg_bool(const tenon_value* value) { return value->v.i != 0; }

/* Scalars and optional numbers stay boxed; tag NONE: none. Never NULL. */
static inline const tenon_value* tenon_arg_value(const tenon_value* value) { return value; }

/* A dtype or device id; -1: none. */
static inline int32_t tenon_arg_id(const tenon_value* value) {
  return value->tag == TENON_VALUE_NONE ? -1 : (int32_t)value->v.i;
}

/* Lists and strings; NULL: none. A lone number is a list of one. */
static inline const int64_t* tenon_arg_ints(const tenon_value* value) {
  if (value->tag == TENON_VALUE_INT) return &value->v.i;
  return value->tag == TENON_VALUE_INTS ? (const int64_t*)value->v.p : 0;
}
static inline const double* tenon_arg_floats(const tenon_value* value) {
  if (value->tag == TENON_VALUE_FLOAT) return &value->v.f;
  return value->tag == TENON_VALUE_FLOATS ? (const double*)value->v.p : 0;
}
static inline const char* tenon_arg_string(const tenon_value* value) {
  return value->tag == TENON_VALUE_STRING ? (const char*)value->v.p : 0;
}
static inline const tenon_tensor* const* tenon_arg_tensors(const tenon_value* value) {
  return value->tag == TENON_VALUE_TENSORS ? (const tenon_tensor* const*)value->v.p : 0;
}
static inline uint64_t tenon_arg_count(const tenon_value* value) {
  switch (value->tag) {
    case TENON_VALUE_NONE:
      return 0;
    case TENON_VALUE_INT:
    case TENON_VALUE_FLOAT:
      return 1;
    default:
      return value->aux;
  }
}

static inline tenon_tensor* tenon_out_tensor(const tenon_value* value) {
  return value->tag == TENON_VALUE_TENSOR ? (tenon_tensor*)value->v.p : 0;
}

#endif /* TENON_UNBOX_H_ */
