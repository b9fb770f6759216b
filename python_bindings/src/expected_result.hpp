// SPDX-License-Identifier: Apache-2.0
// What a shape rule promised of one result, and what Python functions return in its place.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

#include <string>

namespace tenon::python {

struct ExpectedResult {
  int32_t dtype;           // -1: any
  tenon_device_id device;  // TENON_DEVICE_NONE: any
  int32_t ndim;
  int64_t shape[TENON_MAX_NDIM];

  static ExpectedResult like(const tenon_tensor& tensor);
  bool fits(const tenon_tensor& tensor) const;
  // "float32 of shape (2, 2) on cpu:0".
  std::string text() const;
};

// The elements of a tuple or list, which no Python code that runs meanwhile can change.
class Items {
 public:
  explicit Items(PyObject* sequence)
      : tuple_(PyTuple_Check(sequence) || PyList_Check(sequence) ? PySequence_Tuple(sequence)
                                                                 : nullptr) {}
  ~Items() { Py_XDECREF(tuple_); }
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  // False: neither a tuple nor a list, or the Python error is set.
  explicit operator bool() const { return tuple_ != nullptr; }
  uint32_t size() const { return static_cast<uint32_t>(PyTuple_GET_SIZE(tuple_)); }
  PyObject* operator[](uint32_t i) const { return PyTuple_GET_ITEM(tuple_, i); }  // borrowed

 private:
  PyObject* tuple_;
};

}  // namespace tenon::python
