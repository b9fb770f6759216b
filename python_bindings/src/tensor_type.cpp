// SPDX-License-Identifier: Apache-2.0
#include "tensor_type.hpp"

#include <cstddef>

#include "autograd_hooks.hpp"
#include "dlpack.hpp"
#include "errors.hpp"
#include "tensor_object.hpp"

namespace tenon::python {
namespace {

TensorObject* as_object(PyObject* self) { return reinterpret_cast<TensorObject*>(self); }

// Of a subclass, or a tensor for which another part of the bindings keeps data.
[[gnu::noinline]] void forget_others(TensorObject* self) {
  auto* object = reinterpret_cast<PyObject*>(self);
  if (!is_exact_tensor(object) || self->hooks) PyObject_GC_UnTrack(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  if (self->hooks) forget_hooks(*self);
}

void tensor_dealloc(PyObject* object) {
  TensorObject* self = as_object(object);
  bool exact = is_exact_tensor(object);
  if (!exact || self->weak_references || self->hooks) [[unlikely]]
    forget_others(self);
  tenon_tensor* tensor = self->tensor;
  if (exact && free_list.count < FreeList::kMax) [[likely]] {
    self->tensor = reinterpret_cast<tenon_tensor*>(free_list.first);
    free_list.first = self;
    ++free_list.count;
  } else {
    Py_TYPE(object)->tp_free(object);
  }
  host->tensor_release(
      tensor);  // last: what dies with the tensor may run Python code that makes tensors
}

// Everything that a tensor refers to lives in the core, out of the collector's sight, except hooks:
// a closure over the tensor itself is a common cycle. It is ours to report while the tensor
// has no other reference.
int tensor_traverse(PyObject* object, visitproc visit, void* argument) {
  TensorObject* self = as_object(object);
  if (!self->hooks || host->tensor_use_count(self->tensor) != 1) return 0;
  return visit_hooks(*self, visit, argument);
}

int tensor_clear(PyObject* object) {
  TensorObject* self = as_object(object);
  if (self->hooks && host->tensor_use_count(self->tensor) == 1) remove_hooks(*self);
  return 0;
}

PyObject* tensor_repr(PyObject* self) {
  static PyObject* format;
  if (!format) {
    PyObject* module = PyImport_ImportModule("tenon._tensor.printing");
    if (module) format = PyObject_GetAttrString(module, "format_tensor");
    Py_XDECREF(module);
    if (!format) return nullptr;
  }
  return PyObject_CallOneArg(format, self);
}

// `values, indices = x.max(1)` has another meaning in PyTorch, which is told. false: an exception is set.
bool look_at_unpacking() {
  static PyObject* look = nullptr;
  if (!look) {
    PyObject* module = PyImport_ImportModule("tenon._tensor.unpacking");
    if (module) look = PyObject_GetAttrString(module, "look");
    Py_XDECREF(module);
    if (!look) return false;
  }
  PyObject* done = PyObject_CallNoArgs(look);
  Py_XDECREF(done);
  return done != nullptr;
}

// A[i] and iteration stop at the first axis; a 0-d tensor has none.
PyObject* tensor_iter(PyObject* self) {
  if (handle_of(self)->ndim == 0)
    return raise_error(PyExc_TypeError, "iteration over a 0-d tensor; read its value with .item()");
  if (handle_of(self)->shape[0] == 2 && !look_at_unpacking()) return nullptr;
  return PySeqIter_New(self);
}

}  // namespace

PyObject* wrap_as(PyTypeObject* type, tenon_tensor* owned) {
  if (type == &tensor_type) return wrap(owned);
  PyObject* object = type->tp_alloc(type, 0);
  if (object)
    as_object(object)->tensor = owned;
  else
    host->tensor_release(owned);
  return object;
}

int add_tensor_attribute(const char* name, PyObject* value) {
  int result = PyDict_SetItemString(tensor_type.tp_dict, name, value);
  PyType_Modified(&tensor_type);
  return result;
}

PyTypeObject tensor_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "tenon.Tensor",
    .tp_basicsize = sizeof(TensorObject),
    .tp_dealloc = tensor_dealloc,
    .tp_repr = tensor_repr,
    .tp_as_number = &tensor_number_methods,
    .tp_as_sequence = &tensor_sequence_methods,
    .tp_as_mapping = &tensor_mapping_methods,
    .tp_as_buffer = &tensor_buffer_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc =
        "Tensor(data=None, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
        "An n-dimensional array on a device. Another tensor as `data` is shared, without its "
        "history.",
    .tp_traverse = tensor_traverse,
    .tp_clear = tensor_clear,
    .tp_richcompare = tensor_compare,
    .tp_weaklistoffset = offsetof(TensorObject, weak_references),
    .tp_iter = tensor_iter,
    .tp_methods = tensor_methods,
    .tp_getset = tensor_attributes,
    .tp_new = tensor_new,
};

bool ready_tensor_type() {
  // Comparing gives tensors, so equality cannot carry a hash: identity does.
  tensor_type.tp_hash = PyBaseObject_Type.tp_hash;
  if (PyType_Ready(&tensor_type) < 0 || !add_exchange_table(&tensor_type)) return false;
  // NumPy's arrays leave mixed expressions to us (and we refuse them with an explanation) instead
  // of copying the tensor element by element.
  PyObject* priority = PyLong_FromLong(1000);
  int result = priority ? add_tensor_attribute("__array_priority__", priority) : -1;
  Py_XDECREF(priority);
  return result == 0;
}

}  // namespace tenon::python
