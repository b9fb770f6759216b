// SPDX-License-Identifier: Apache-2.0
// Operator calls from C: the GIL policy, and shorthands for code that builds on operators.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

#include <initializer_list>

#include "errors.hpp"
#include "runtime.hpp"
#include "tensor_object.hpp"

namespace tenon::python {

// Below this many elements a call takes less time than other threads could use.
inline constexpr int64_t kReleaseGilElements = 50'000;

[[gnu::noinline]] inline tenon_status call_host_unlocked(const tenon_op* op, tenon_value* args,
                                                         uint32_t nargs, tenon_value* results,
                                                         uint32_t nresults, tenon_err* err) {
  PyThreadState* thread = PyEval_SaveThread();
  tenon_status status = host->op_call(op, args, nargs, results, nresults, err);
  PyEval_RestoreThread(thread);
  return status;
}
[[gnu::noinline]] inline tenon_status call_complete_unlocked(const tenon_op* op, tenon_value* args,
                                                             tenon_value* results, tenon_err* err) {
  PyThreadState* thread = PyEval_SaveThread();
  tenon_status status = calls->call(op, args, results, err);
  PyEval_RestoreThread(thread);
  return status;
}

// A call whose arguments are complete and of the parameters' kinds, as the argument parser leaves
// them.
inline tenon_status call_complete(const tenon_op* op, tenon_value* args, tenon_value* results,
                                  int64_t work, tenon_err* err) {
  if (work < kReleaseGilElements) [[likely]]
    return calls->call(op, args, results, err);
  return call_complete_unlocked(op, args, results, err);
}

// A call whose arguments the host completes and checks.

inline tenon_status call_host(const tenon_op* op, tenon_value* args, uint32_t nargs,
                              tenon_value* results, uint32_t nresults, int64_t work,
                              tenon_err* err) {
  if (work < kReleaseGilElements) [[likely]]
    return host->op_call(op, args, nargs, results, nresults, err);
  return call_host_unlocked(op, args, nargs, results, nresults, err);
}

// NULL with the Python error set: no loaded plugin defines `name`.
[[gnu::cold]] inline Raised raise_missing(const char* name) {
  return raise_error(PyExc_NotImplementedError,
                     "operator tenon::%s is not defined by any loaded plugin; "
                     "tenon.plugins.doctor() lists what failed to load",
                     name);
}

inline tenon_value value_of(tenon_tensor* tensor) { return {TENON_VALUE_TENSOR, 0, {.p = tensor}}; }
inline tenon_value value_of(int64_t number) { return {TENON_VALUE_INT, 0, {.i = number}}; }
inline tenon_value value_of_dtype(int32_t dtype) { return {TENON_VALUE_DTYPE, 0, {.i = dtype}}; }
inline tenon_value value_of_device(tenon_device_id device) {
  return {TENON_VALUE_DEVICE, 0, {.i = device}};
}
inline tenon_value value_of(const int64_t* list, size_t count) {
  return {TENON_VALUE_INTS, static_cast<uint32_t>(count), {.p = const_cast<int64_t*>(list)}};
}
inline tenon_value value_of(tenon_tensor* const* list, size_t count) {
  return {
      TENON_VALUE_TENSORS, static_cast<uint32_t>(count), {.p = const_cast<tenon_tensor**>(list)}};
}

// Whether a call releases the GIL: by its number of elements, or in any case.
enum class Gil { kByWork, kReleased };

// Call an operator of one result. Empty: Python error set. `name` is for the message if the
// operator is absent. With `out`, the result is written there.
inline Tensor call_operator(const tenon_op* op, const char* name,
                            std::initializer_list<tenon_value> values, tenon_tensor* out = nullptr,
                            Gil gil = Gil::kByWork) {
  if (!op) [[unlikely]] {
    raise_missing(name);
    return {};
  }
  tenon_value args[16];
  uint32_t nargs = 0;
  int64_t work = gil == Gil::kReleased ? kReleaseGilElements : 0;
  for (const tenon_value& value : values) {
    args[nargs++] = value;
    if (value.tag == TENON_VALUE_TENSOR) work += static_cast<tenon_tensor*>(value.v.p)->numel;
  }
  tenon_value result = {};
  if (out) result = value_of(out);
  ErrorSink err;
  tenon_status status = call_host(op, args, nargs, &result, 1, work, err);
  if (status != TENON_OK) [[unlikely]] {
    raise(status, err);
    return {};
  }
  auto* tensor = static_cast<tenon_tensor*>(result.v.p);
  return out ? Tensor::borrow(tensor) : Tensor::adopt(tensor);
}
#define TENON_CALL(name, ...) call_operator(operators.name, #name, {__VA_ARGS__})

// Hand a tensor to Python; NULL stays NULL (the error is set already).
inline PyObject* to_python(Tensor tensor) { return tensor ? wrap(tensor.release()) : nullptr; }

}  // namespace tenon::python
