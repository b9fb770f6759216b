// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "autograd_hooks.hpp"
#include "guards.hpp"
#include "host_call.hpp"
#include "modules.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// -- what a function reads from outside ---------------------------------------------------------------
// Each takes one of the lists that tenon.jit.captured_state keeps, of tuples. -1: Python error set.

// (container, how many items it had)
int have_sizes(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    const Py_ssize_t size = PyObject_Size(PyTuple_GET_ITEM(entry, 0));
    if (size < 0) return -1;
    if (size != PyLong_AsSsize_t(PyTuple_GET_ITEM(entry, 1))) return 0;
  }
  return 1;
}

// (dictionary, key, the value or `absent`)
int have_values(PyObject* list, PyObject* absent) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject *names = PyTuple_GET_ITEM(entry, 0), *key = PyTuple_GET_ITEM(entry, 1);
    PyObject* found = nullptr;
    if (PyDict_Check(names)) {
      found = Py_XNewRef(PyDict_GetItemWithError(names, key));
      if (!found && PyErr_Occurred()) return -1;
    } else {  // a mapping proxy
      found = PyObject_GetItem(names, key);
      if (!found && !PyErr_ExceptionMatches(PyExc_KeyError)) return -1;
      PyErr_Clear();
    }
    const bool is_same = (found ? found : absent) == PyTuple_GET_ITEM(entry, 2);
    Py_XDECREF(found);
    if (!is_same) return 0;
  }
  return 1;
}

// (cell, its contents or `absent`)
int have_contents(PyObject* list, PyObject* absent) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject* contents = PyCell_GET(PyTuple_GET_ITEM(entry, 0));
    if ((contents ? contents : absent) != PyTuple_GET_ITEM(entry, 1)) return 0;
  }
  return 1;
}

int has_items(PyObject* container, PyObject* before) {
  PyObject** old = &PyTuple_GET_ITEM(before, 0);
  const Py_ssize_t count = PyTuple_GET_SIZE(before);
  if (PyList_CheckExact(container)) {
    if (PyList_GET_SIZE(container) != count) return 0;
    for (Py_ssize_t i = 0; i < count; ++i)
      if (PyList_GET_ITEM(container, i) != old[i]) return 0;
    return 1;
  }
  if (PyDict_CheckExact(container)) {  // its keys, in order
    if (PyDict_GET_SIZE(container) != count) return 0;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; PyDict_Next(container, &position, &key, &value); ++i)
      if (key != old[i]) return 0;
    return 1;
  }
  PyObject* items = PySequence_Tuple(container);
  if (!items) return -1;
  const bool is_same =
      PyTuple_GET_SIZE(items) == count && std::equal(old, old + count, &PyTuple_GET_ITEM(items, 0));
  Py_DECREF(items);
  return is_same;
}

// (container, its items)
int have_items(PyObject* list) {
  int holds = 1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && holds > 0; ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    holds = has_items(PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 1));
  }
  return holds;
}

// (function, its code, defaults, defaults of keywords; closures cannot be assigned)
int have_code(PyObject* list) {
  auto or_none = [](PyObject* object) { return object ? object : Py_None; };
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject* function = PyTuple_GET_ITEM(entry, 0);
    if (PyFunction_GET_CODE(function) != PyTuple_GET_ITEM(entry, 1) ||
        or_none(PyFunction_GET_DEFAULTS(function)) != PyTuple_GET_ITEM(entry, 2) ||
        or_none(PyFunction_GET_KW_DEFAULTS(function)) != PyTuple_GET_ITEM(entry, 3))
      return 0;
  }
  return 1;
}

// (function without arguments, what it returned): the same object, or equal bytes
int have_returned(PyObject* list) {
  int holds = 1;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && holds > 0; ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject* after = PyObject_CallNoArgs(PyTuple_GET_ITEM(entry, 0));
    if (!after) return -1;
    PyObject* before = PyTuple_GET_ITEM(entry, 1);
    holds = after == before;
    if (!holds && PyBytes_Check(before)) holds = PyObject_RichCompareBool(after, before, Py_EQ);
    Py_DECREF(after);
  }
  return holds;
}

// Changes whenever an attribute of the class, or of one that it derives from, is assigned, and never comes again. -1: none of
// them can be assigned.
int64_t version_of(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030B0000
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE && !(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG))
    return 0;
#endif
  return type->tp_flags & Py_TPFLAGS_HEAPTYPE ? type->tp_version_tag : -1;
}

// (object or None, its class, the version of the class, the dictionary of its attributes or None)
int have_classes(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    PyObject *object = PyTuple_GET_ITEM(entry, 0), *type = PyTuple_GET_ITEM(entry, 1);
    const int64_t version = PyLong_AsLongLong(PyTuple_GET_ITEM(entry, 2));
    if ((object != Py_None && reinterpret_cast<PyObject*>(Py_TYPE(object)) != type) ||
        version == 0 || version != version_of(reinterpret_cast<PyTypeObject*>(type)))
      return 0;
    PyObject* own = PyTuple_GET_ITEM(entry, 3);
    if (own == Py_None) continue;
    PyObject* now = PyObject_GenericGetDict(object, nullptr);
    if (!now) return -1;
    Py_DECREF(now);  // the object keeps it
    if (now != own) return 0;
  }
  return 1;
}

// (tensor, its layout, its address, its hooks)
int have_layouts(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* entry = PyList_GET_ITEM(list, i);
    tenon_tensor* tensor = handle_of(PyTuple_GET_ITEM(entry, 0));
    Description description;
    description.add_tensor(tensor);
    PyObject* before = PyTuple_GET_ITEM(entry, 1);
    if (!description.has_bytes(PyBytes_AS_STRING(before), PyBytes_GET_SIZE(before)) ||
        address_of(*tensor) != PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(entry, 2)) ||
        hook_state(*reinterpret_cast<TensorObject*>(PyTuple_GET_ITEM(entry, 0))) !=
            PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(entry, 3)))
      return 0;
  }
  return 1;
}

}  // namespace

// The lists (sizes, values, contents, items, code, classes, layouts, returned), and what stands for a value that is not there.
int is_unchanged(PyObject* watched) {
  auto list = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(watched, i); };
  PyObject* absent = list(8);
  // A list that shrinks meanwhile, in Python code that a comparison runs, would be one of this object's own: none does.
  int holds = have_sizes(list(0));
  if (holds > 0) holds = have_values(list(1), absent);
  if (holds > 0) holds = have_contents(list(2), absent);
  if (holds > 0) holds = have_items(list(3));
  if (holds > 0) holds = have_code(list(4));
  if (holds > 0) holds = have_classes(list(5));
  if (holds > 0) holds = have_layouts(list(6));
  if (holds > 0) holds = have_returned(list(7));
  // What cannot be looked at any more is another one. Interrupts go on.
  if (holds < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();
    return 0;
  }
  return holds;
}

void add_guards(nb::module_& module) {
  module.def(
      "is_unchanged",
      [](const nb::tuple& watched) {
        const int holds = is_unchanged(watched.ptr());
        if (holds < 0) throw nb::python_error();
        return holds != 0;
      },
      nb::arg("watched"));
  module.def(
      "tensor_layout",
      [](nb::handle tensor) {
        tenon_tensor* handle = tensor_argument(tensor, "tensor_layout");
        Description description;
        description.add_tensor(handle);
        const std::vector<int64_t> words = description.words();
        return nb::make_tuple(nb::bytes(words.data(), words.size() * sizeof(int64_t)),
                              address_of(*handle));
      },
      nb::arg("tensor"));
  module.def(
      "own_dictionary",
      [](nb::handle object) -> nb::object {
        // No property that shows another object's is run.
        PyObject* own = PyObject_GenericGetDict(object.ptr(), nullptr);
        if (own) return nb::steal(own);
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
        PyErr_Clear();
        return nb::none();
      },
      nb::arg("object"));
  module.def(
      "hook_state",
      [](nb::handle tensor) {
        tensor_argument(tensor, "hook_state");
        return hook_state(*reinterpret_cast<TensorObject*>(tensor.ptr()));
      },
      nb::arg("tensor"));
  module.def(
      "list_hooks",
      [](nb::handle tensor) {
        tensor_argument(tensor, "list_hooks");
        PyObject* list = list_hooks(*reinterpret_cast<TensorObject*>(tensor.ptr()));
        if (!list) throw nb::python_error();
        return nb::steal<nb::list>(list);
      },
      nb::arg("tensor"));
  module.def(
      "class_version",
      [](nb::type_object type) {
        // Looking something up gives it a version.
        nb::getattr(type, "__init__", nb::none());
        return version_of(reinterpret_cast<PyTypeObject*>(type.ptr()));
      },
      nb::arg("type"));
  module.def("kernel_generation", &kernel_generation);
  add_compiled_type(module);
}

}  // namespace tenon::python
