// SPDX-License-Identifier: Apache-2.0
// From tenon_err to Python exceptions. Every function that may fail returns NULL (or -1) with the
// Python error set, as CPython's own do.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

// An error sink for one call into the host. Idle sinks wait on a stack guarded by the GIL: calls
// nest (a hook runs operators) and threads take turns, so one sink per process would not do.
class ErrorSink {
 public:
  ErrorSink() : err_(idle_count > 0 ? idle[--idle_count] : host->err_create()) {}
  ~ErrorSink() {
    if (idle_count < kMaxIdle)
      idle[idle_count++] = err_;
    else
      host->err_destroy(err_);
  }
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;
  operator tenon_err*() const { return err_; }

 private:
  static constexpr int kMaxIdle = 16;
  static inline tenon_err* idle[kMaxIdle];
  static inline int idle_count = 0;
  tenon_err* err_;
};

// The one for a call that runs no Python code, neither by itself nor by whom it calls.
inline tenon_err* brief_sink() {
  static constinit tenon_err* sink = nullptr;
  if (!sink) [[unlikely]]
    sink = host->err_create();
  return sink;
}

// What functions return after setting the Python error: NULL, false or an empty tensor, as they
// need.
struct Raised {
  operator bool() const { return false; }
  operator Tensor() const { return {}; }
  template <class T>
  operator T*() const {
    return nullptr;
  }
};

// Raise what `err` recorded and clear it. A Python error that is already set (by a callback that
// the call ran) is kept instead.
[[gnu::cold]] Raised raise(tenon_status status, tenon_err* err);

// The same for a call of an operator: OverflowError where a whole number was given for elements whose
// dtype does not hold it. Without `def`, all values are operands.
[[gnu::cold]] Raised raise_call(tenon_status status, const tenon_op_def* def,
                                const tenon_value* values, uint32_t count, tenon_err* err);

// Raise `type` with printf-like text, in CPython's format language.
[[gnu::cold]] Raised raise_error(PyObject* type, const char* format, ...);

// Make Python's pending error the failure of a callback that the host called.
[[gnu::cold]] tenon_status fail_from_python(tenon_err* err);

// The exception classes of the package, added to `module`. False: Python error set.
bool add_exceptions(PyObject* module);

// Name of the object's type for "got ..." texts: "list", "numpy.ndarray".
const char* type_name(PyObject* object);

}  // namespace tenon::python
