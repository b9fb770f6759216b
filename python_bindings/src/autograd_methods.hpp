// SPDX-License-Identifier: Apache-2.0
// Methods of tenon.Tensor that belong to differentiation.
#pragma once

#include <Python.h>

namespace tenon::python {

PyObject* tensor_detach(PyObject* self, PyObject*);
PyObject* tensor_requires_grad_(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_retain_grad(PyObject* self, PyObject*);
PyObject* tensor_backward(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_register_hook(PyObject* self, PyObject* hook);
PyObject* tensor_register_post_accumulate_grad_hook(PyObject* self, PyObject* hook);

}  // namespace tenon::python
