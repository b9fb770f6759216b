// SPDX-License-Identifier: Apache-2.0
// For tables of methods written against CPython.
#pragma once

#include <Python.h>

namespace tenon::python {

inline PyCFunction with_keywords(PyObject* (*function)(PyObject*, PyObject*, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace tenon::python
