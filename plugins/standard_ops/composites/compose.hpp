// SPDX-License-Identifier: Apache-2.0
// What operators written as calls of other operators have in common.
#pragma once

#include <tenon/ops.hpp>

#include <cmath>
#include <vector>

#include "shapes/arguments.hpp"

// The head of a decomposition; the generated operator table refers to it by this name. What it
// throws, which can only be for want of memory, stops here.
#define TENON_DECOMPOSE(op)                                                                     \
  static tenon_status op##_body(const tenon_value* args, tenon_value* outs, tenon_err* err);    \
  tenon_status decompose_##op(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, \
                              uint32_t, tenon_err* err) {                                       \
    try {                                                                                       \
      return op##_body(args, outs, err);                                                        \
    } catch (...) {                                                                             \
      return fail(err, TENON_OUT_OF_MEMORY, "[" #op "] out of host memory");                    \
    }                                                                                           \
  }                                                                                             \
  static tenon_status op##_body(const tenon_value* args, tenon_value* outs, tenon_err* err)

namespace tenon::standard_ops {

using Shape = std::vector<int64_t>;

inline Shape to_vector(Ints values) { return {values.begin(), values.end()}; }
inline Shape sizes_of(const Tensor& tensor) { return to_vector(shape_of(*tensor.get())); }
inline bool is_real_floating(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_F64;
}
inline IntList list_of(Ints values) { return {values.data(), values.size()}; }

// An optional int[] passed on as it came.
inline OptionalInts optional_ints(const tenon_value& value) {
  return is_none(value) ? OptionalInts() : OptionalInts(list_of(ints_of(value)));
}

// A tensor argument whose shape is needed; a number becomes a 0-d tensor.
inline Tensor operand(Scope& scope, const tenon_value& value) {
  if (value.tag == TENON_VALUE_TENSOR) return Tensor::borrow(&tensor_of(value));
  if (is_none(value)) return {};
  return ops::full(scope, IntList(), ScalarArg(value));
}

// Filled like `like`, in another shape.
inline Tensor full_with(Scope& scope, const Tensor& like, Ints shape, ScalarArg value) {
  if (!scope.ok()) return {};
  return ops::full(scope, list_of(shape), value, like->dtype, like->device);
}

// The int64 numbers 0, 1, ..., count - 1 on the device of `like`.
inline Tensor numbers_to(Scope& scope, int64_t count, const Tensor& like) {
  if (!scope.ok()) return {};
  return ops::arange(scope, count, std::nullopt, 1, TENON_DTYPE_I64, like->device);
}

inline Tensor as_int64(Scope& scope, const Tensor& x) {
  if (!scope.ok() || x->dtype == TENON_DTYPE_I64) return x;
  return ops::cast(scope, x, TENON_DTYPE_I64);
}

inline Tensor as_dtype(Scope& scope, const Tensor& x, int32_t dtype) {
  return scope.ok() && x->dtype != dtype ? ops::cast(scope, x, dtype) : x;
}

// Results: owned by the caller from now on. Nothing is handed over if the scope failed.
template <class... Tensors>
tenon_status finish(const Scope& scope, tenon_value* outs, Tensors... results) {
  if (!scope.ok()) return scope.status();
  ((*outs++ = boxed(results.release())), ...);
  return TENON_OK;
}

// Whether the host passes the output on: `x` itself, of an operator whose entry says `in_place: x`. The last step then
// writes into it and nothing is handed over.
inline bool writes_over(const tenon_value* outs) { return outs[0].tag == TENON_VALUE_TENSOR; }

// x with `values` at the flat indices `index`, or added there.
tenon_status put_flat(Scope& scope, const Tensor& x, const Tensor& index, const TensorArg& values,
                      bool accumulate, tenon_value* outs);

inline tenon_status finish_list(const Scope& scope, tenon_value* outs,
                                std::vector<Tensor> results) {
  if (!scope.ok()) return scope.status();
  uint32_t count = static_cast<uint32_t>(results.size());
  tenon_tensor** list = host->list_create(count);
  for (uint32_t i = 0; i < count; ++i) list[i] = results[i].release();
  outs[0] = boxed(list, count);
  return TENON_OK;
}

// int64 numbers known here, as a vector on `device`.
Tensor int_tensor(Scope& scope, const std::vector<int64_t>& numbers, tenon_device_id device);
// The same of floating numbers, rounded to `dtype`.
Tensor float_tensor(Scope& scope, const std::vector<double>& numbers, int32_t dtype,
                    tenon_device_id device);

}  // namespace tenon::standard_ops
