// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

struct DLTensor;  // dlpack_layout.hpp
struct ManagedVersioned;

PyObject* tensor_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords);
PyObject* tensor_dlpack_device(PyObject* self, PyObject*);

// May others have the tensor's memory? False: BufferError, or why a recording refuses it.
bool may_share(tenon_tensor* tensor);
// Empty, or NULL, with the Python error set where it cannot be. The tensor owns `managed`.
Tensor tensor_of_managed(ManagedVersioned* managed);
ManagedVersioned* managed_of_tensor(tenon_tensor* tensor);
// A dense tensor on the host device of the prototype's dtype and shape, uninitialised.
ManagedVersioned* managed_like(const DLTensor& prototype);

// -- the C table (dlpack_exchange.cpp) --------------------------------------------------------------
// Ours, as an attribute of the type.
bool add_exchange_table(PyTypeObject* type);
// The tensor that the producer's table hands out. Empty without an error: it has none, or the producer has to be asked by
// __dlpack__.
Tensor tensor_by_exchange(PyObject* producer);
// The tensor's memory as a tensor of another library, whose type is `type`. Py_None: the type has no table.
PyObject* object_by_exchange(PyObject* tensor, PyObject* type);

}  // namespace tenon::python
