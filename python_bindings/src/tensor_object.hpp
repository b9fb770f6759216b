// SPDX-License-Identifier: Apache-2.0
// tenon.Tensor as C sees it: one reference to a tensor of the core. The objects of the exact type
// come from a free list; subclasses are allocated by CPython.
#pragma once

#include <Python.h>

#include <tenon/tensor.hpp>

namespace tenon::python {

struct Hook;  // autograd_hooks.cpp

struct TensorObject {
  PyObject_HEAD tenon_tensor*
      tensor;  // owned. While the object is idle: the next one of the free list
  PyObject* weak_references;
  Hook* hooks;  // registered through this object; only then the collector tracks it
};

extern PyTypeObject tensor_type;

inline bool is_exact_tensor(PyObject* object) { return Py_TYPE(object) == &tensor_type; }
inline bool is_tensor(PyObject* object) {
  return is_exact_tensor(object) || PyType_IsSubtype(Py_TYPE(object), &tensor_type);
}
inline tenon_tensor* handle_of(PyObject* tensor) {
  return reinterpret_cast<TensorObject*>(tensor)->tensor;
}

// Idle objects, guarded by the GIL.
struct FreeList {
  static constexpr int kMax =
      1 << 16;  // beyond it, every object is one more for the collector to count
  TensorObject* first = nullptr;
  int count = 0;
};
inline FreeList free_list;

// A new object, or NULL with the Python error set. Consumes `owned` in either case.
inline PyObject* wrap(tenon_tensor* owned) {
  TensorObject* self = free_list.first;
  if (self) [[likely]] {
    free_list.first = reinterpret_cast<TensorObject*>(self->tensor);
    --free_list.count;
#ifdef Py_REF_DEBUG
    PyObject_Init(reinterpret_cast<PyObject*>(self), &tensor_type);
#else
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(self), 1);
#endif
  } else {
    self = PyObject_GC_New(TensorObject, &tensor_type);
    if (!self) {
      host->tensor_release(owned);
      return nullptr;
    }
    self->weak_references = nullptr;
    self->hooks = nullptr;
  }
  self->tensor = owned;
  return reinterpret_cast<PyObject*>(self);
}

// A new object that shares a borrowed handle.
inline PyObject* wrap_borrowed(tenon_tensor* borrowed) {
  host->tensor_retain(borrowed);
  return wrap(borrowed);
}

// The handle of a Tensor argument, or NULL with a TypeError that names the function.
inline tenon_tensor* require_tensor(PyObject* object, const char* function) {
  if (is_tensor(object)) [[likely]]
    return handle_of(object);
  PyErr_Format(PyExc_TypeError, "%s: expected a Tensor, got %s; convert it with tenon.tensor(...)",
               function, Py_TYPE(object)->tp_name);
  return nullptr;
}

// An instance of `type` (tenon.Tensor or a subclass) around `owned`, which is consumed.
PyObject* wrap_as(PyTypeObject* type, tenon_tensor* owned);

// Complete the static type: slots from the other files, then PyType_Ready. False: Python error set.
bool ready_tensor_type();

// Add an attribute to the type after it was made. 0, or -1 with the Python error set.
int add_tensor_attribute(const char* name, PyObject* value);

}  // namespace tenon::python
