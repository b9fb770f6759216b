// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

namespace tenon::python {

PyObject* tensor_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_dlpack_device(PyObject* self, PyObject*);

}  // namespace tenon::python
