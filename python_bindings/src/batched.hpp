// SPDX-License-Identifier: Apache-2.0
// Tensors that stand for one of a batch (tenon.func.vmap): calls that meet one go to Python, which
// calls the operator for the whole batch.
#pragma once

#include <Python.h>

namespace tenon::python {

// NULL until tenon.func is imported. Compared only with types that are not tenon.Tensor itself, so
// that calls of plain tensors do not pay for it.
inline PyTypeObject* batched_type;

inline bool is_batched(PyObject* object) { return Py_TYPE(object) == batched_type; }

// What Python answers for `op(*objects)`, arguments as in Python's vectorcall protocol.
PyObject* call_batched(PyObject* op, PyObject* const* objects, size_t flags,
                       PyObject* keyword_names);

// x[positions], where `positions` is batched.
PyObject* index_by_batched(PyObject* tensor, PyObject* positions);

}  // namespace tenon::python
