// SPDX-License-Identifier: Apache-2.0
#include "python_method.hpp"

#include <Python.h>

#include "python/spellings.hpp"
#include "tensor_object.hpp"

namespace tenon::python {
namespace {

// tests/python/tensor/test_tensor_methods.py holds this to the names in tenon/_tensor/methods.py.
constexpr const char* kNames[] = {
    "__dir__",
    "__round__",
    "apply_",
    "astype",
    "bernoulli_",
    "bfloat16",
    "bool",
    "broadcast_to",
    "byte",
    "cauchy_",
    "cdouble",
    "cfloat",
    "char",
    "chunk",
    "clamp_max",
    "clamp_max_",
    "clamp_min",
    "clamp_min_",
    "clear_grad",
    "coalesce",
    "copy",
    "cuda",
    "detach_",
    "dim",
    "double",
    "element_size",
    "expand_as",
    "exponential_",
    "flatten_",
    "float",
    "geometric_",
    "get_device",
    "half",
    "index_add_",
    "indices",
    "indptr",
    "int",
    "is_complex",
    "is_cpu",
    "is_cuda",
    "is_floating_point",
    "is_integer",
    "is_meta",
    "is_same_size",
    "is_signed",
    "is_sparse",
    "log_normal_",
    "long",
    "moveaxis",
    "ndimension",
    "nelement",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "normal_",
    "offsets",
    "polygamma",
    "polygamma_",
    "random_",
    "ravel",
    "reshape_",
    "reshape_as",
    "scatter_",
    "scatter_add_",
    "scatter_reduce_",
    "set_value",
    "short",
    "squeeze_",
    "stride",
    "swapaxes_",
    "swapdims_",
    "t",
    "t_",
    "take",
    "to_dense",
    "to_sparse",
    "transpose_",
    "type",
    "type_as",
    "unfold",
    "uniform_",
    "unsqueeze_",
    "values",
    "view_as",
    "where",
};

// A descriptor that puts the function in its own place when it is first looked up.
struct LateMethod {
  PyObject_HEAD PyObject* name;
};

PyObject* late_get(PyObject* self, PyObject* instance, PyObject* owner) {
  PyObject* name = reinterpret_cast<LateMethod*>(self)->name;
  PyObject* module = PyImport_ImportModule("tenon._tensor.methods");
  PyObject* function = module ? PyObject_GetAttr(module, name) : nullptr;
  Py_XDECREF(module);
  if (!function) return nullptr;
  Py_INCREF(self);  // the type lets go of it
  PyObject* result = nullptr;
  const descrgetfunc get = Py_TYPE(function)->tp_descr_get;  // of a function, or of a property
  if (add_tensor_attribute(PyUnicode_AsUTF8(name), function) == 0)
    result = get ? get(function, instance, owner) : Py_NewRef(function);
  Py_DECREF(self);
  Py_DECREF(function);
  return result;
}

void late_dealloc(PyObject* self) {
  Py_XDECREF(reinterpret_cast<LateMethod*>(self)->name);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject late_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "tenon._LateMethod",
    .tp_basicsize = sizeof(LateMethod),
    .tp_dealloc = late_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_descr_get = late_get,
};

bool add_late_method(const char* name) {
  if (PyDict_GetItemString(tensor_type.tp_dict, name)) return true;
  auto* method = PyObject_New(LateMethod, &late_type);
  if (!method) return false;
  method->name = PyUnicode_InternFromString(name);
  const int result =
      method->name ? add_tensor_attribute(name, reinterpret_cast<PyObject*>(method)) : -1;
  Py_DECREF(method);
  return result == 0;
}

}  // namespace

bool add_python_methods() {
  if (PyType_Ready(&late_type) < 0) return false;
  for (const char* name : kNames)
    if (!add_late_method(name)) return false;
  for (const char* name : kMethods)
    if (!add_late_method(name)) return false;
  return true;
}

}  // namespace tenon::python
