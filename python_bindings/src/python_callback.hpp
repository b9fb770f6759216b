// SPDX-License-Identifier: Apache-2.0
// Python functions that operators are made of - bodies, shape rules, kernels, gradients - as the
// host calls them. Everything here needs the GIL.
#pragma once

#include <Python.h>

#include <tenon/schema.hpp>
#include <tenon/tensor.hpp>

#include <vector>

#include "errors.hpp"
#include "python_thread.hpp"
#include "runtime.hpp"

namespace tenon::python {

// What one parameter of the Python function is given.
struct ArgumentSource {
  enum class Kind {
    kArgument,  // the operator's argument `index`
    kResult,    // result `index`, in a gradient
    kGradient,  // the gradient of result `index`, or None
    kOutputs,   // what a kernel may write into: a Tensor, or a tuple of them
    kNeeds      // names of the arguments whose gradients are wanted
  };
  Kind kind;
  uint32_t index;
};

// What the host has for one call.
struct CallFrame {
  const Schema& schema;
  const tenon_value* args;
  tenon_tensor* const* results = nullptr;
  tenon_tensor* const* gradients = nullptr;
  uint64_t needs = 0;
  // Kernels compute below gradients: they see tensors without history.
  bool detaches = false;
};

class Callback {
 public:
  Callback() = default;
  // Both references are shared. `keyword_names` is a tuple of the names of the last parameters, or
  // NULL.
  Callback(PyObject* function, std::vector<ArgumentSource> sources, PyObject* keyword_names);
  Callback(Callback&& other) noexcept { swap(other); }
  Callback& operator=(Callback&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Callback();

  explicit operator bool() const { return function_ != nullptr; }
  bool takes(ArgumentSource::Kind kind) const;
  // Bits of the indices that sources of `kind` name.
  uint64_t indices(ArgumentSource::Kind kind) const;
  // A new reference, or NULL with the Python error set. The function may take the callback away.
  PyObject* call(const CallFrame& frame) const;

 private:
  void swap(Callback& other);

  PyObject* function_ = nullptr;
  PyObject* keyword_names_ = nullptr;
  std::vector<ArgumentSource> sources_;
};

// A boxed value as Python sees it: a new reference, or NULL with the Python error set.
PyObject* python_value(const tenon_value& value, bool detaches);

// raise_error, unless what was tried has raised an error of its own.
template <class... Arguments>
Raised raise_otherwise(PyObject* type, const char* format, Arguments... arguments) {
  return PyErr_Occurred() ? Raised() : raise_error(type, format, arguments...);
}

// Recording for gradients is off while one lives.
class WithoutRecording {
 public:
  WithoutRecording() : previous_(autograd ? autograd->set_enabled(0) : 0) {}
  ~WithoutRecording() {
    if (previous_) autograd->set_enabled(1);
  }
  WithoutRecording(const WithoutRecording&) = delete;
  WithoutRecording& operator=(const WithoutRecording&) = delete;

 private:
  int32_t previous_;
};

// Runs `work` with the GIL, from whatever thread the host called. `work` returns false with the
// Python error set; C++ exceptions end here too.
template <class Work>
tenon_status run_python(tenon_err* err, Work&& work) {
  PythonThread python;
  if (!python.is_alive()) return tenon::fail(err, TENON_CANCELLED, "Python is shutting down");
  PyErr_Clear();  // of an earlier one within the same operator call, whose failure was not the end
  try {
    if (work()) return TENON_OK;
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    raise_error(PyExc_RuntimeError, "%s", error.what());
  }
  return fail_from_python(err);
}

}  // namespace tenon::python
