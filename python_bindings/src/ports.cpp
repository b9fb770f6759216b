// SPDX-License-Identifier: Apache-2.0
#include "ports.hpp"

#include <string>

#include "errors.hpp"
#include "modules.hpp"
#include "tensor_object.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

// Methods that PyTorch has with another meaning. They have one vectorcall function, as they have no
// keywords beside their own and may not be defined anew.
constexpr const char* kMethods[] = {"std", "var", "max", "min", "sort", "median", "repeat"};
vectorcallfunc plain_call;

PyObject* tell;  // of tenon/_tensor/ports.py, as `make_size`
PyObject* make_size;

// By `dim` these give other numbers, or more of them, in PyTorch.
constexpr struct {
  const char* name;
  const char* theirs;
  const char* fix;
} kOfDim[] = {
    {"std", "divides by n - 1", "correction=1 as well for that, or axis= to divide by n"},
    {"var", "divides by n - 1", "correction=1 as well for that, or axis= to divide by n"},
    {"std_mean", "divides by n - 1", "correction=1 as well for that, or axis= to divide by n"},
    {"var_mean", "divides by n - 1", "correction=1 as well for that, or axis= to divide by n"},
    {"sort", "gives (values, indices)", "axis= for the values, and argsort() for the indices"},
    {"median", "gives (values, indices), of an even number the lower middle one",
     "axis= for the mean of the middle two"},
    {"nanmedian", "gives (values, indices), of an even number the lower middle one",
     "axis= for the mean of the middle two"},
};

// So do max and min, which are amax and amin, too, and have one meaning by those names: Python finds out which name the caller has
// written, and warns.
bool tell_of_dim(const OperatorObject& self) {
  static PyObject* told = [] {
    PyObject* parts = Py_BuildValue("(s)", "tell_of_dim");
    PyObject* module =
        parts ? PyImport_ImportModuleLevel("tenon._tensor.ports", nullptr, nullptr, parts, 0)
              : nullptr;
    Py_XDECREF(parts);
    PyObject* function = module ? PyObject_GetAttrString(module, "tell_of_dim") : nullptr;
    Py_XDECREF(module);
    return function;
  }();
  if (!told) return PyErr_Clear(), true;
  PyObject* done = PyObject_CallOneArg(told, self.name);
  Py_XDECREF(done);
  return done;
}

// By what std, var and their like divide.
bool is_correction_told(const OperatorObject& self, PyObject* names, size_t positional) {
  for (uint32_t i = 0; i < self.parameter_count && i < positional; ++i)
    if (PyUnicode_CompareWithASCIIString(self.parameters[i].name, "correction") == 0) return true;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); ++k)
    for (const char* word : {"correction", "unbiased", "ddof"})
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), word) == 0) return true;
  return false;
}

bool is_in_port() {
  static PyObject* name = PyUnicode_InternFromString("torch");
  PyObject* globals = PyEval_GetGlobals();  // of the Python function that calls
  return globals && PyDict_GetItem(globals, name) == port_namespace;
}

PyObject* call_in_port(PyObject* callable, PyObject* const* objects, size_t flags,
                       PyObject* keyword_names) {
  if (is_in_port()) {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject* arguments = PyTuple_New(count);
    for (Py_ssize_t i = 0; arguments && i < count; ++i)
      PyTuple_SET_ITEM(arguments, i, Py_NewRef(objects[i]));
    PyObject* done = arguments ? PyObject_CallFunctionObjArgs(
                                     tell, reinterpret_cast<OperatorObject*>(callable)->name,
                                     arguments, keyword_names ? keyword_names : Py_None, nullptr)
                               : nullptr;
    Py_XDECREF(arguments);
    if (!done) return nullptr;
    Py_DECREF(done);
  }
  return plain_call(callable, objects, flags, keyword_names);
}

// Methods are other objects than the functions from here on, which have one meaning.
void watch_ports(nb::handle module, nb::handle tell_function, nb::handle size_function) {
  if (port_namespace) return;
  for (const char* name : kMethods) {
    nb::object method = nb::steal(find_internal_operator((std::string("tenon::") + name).c_str()));
    if (!method) throw nb::python_error();
    plain_call = reinterpret_cast<OperatorObject*>(method.ptr())->vectorcall;
    reinterpret_cast<OperatorObject*>(method.ptr())->vectorcall = call_in_port;
    if (add_tensor_attribute(name, method.ptr()) < 0) throw nb::python_error();
  }
  PyType_Modified(&tensor_type);
  tell = tell_function.inc_ref().ptr();
  make_size = size_function.inc_ref().ptr();
  port_namespace = module.inc_ref().ptr();
}

}  // namespace

PyObject* size_in_port(PyObject* tensor, PyObject* size) {
  if (!size || !is_in_port()) return size;
  PyObject* result = PyObject_CallFunctionObjArgs(make_size, size, tensor, nullptr);
  Py_DECREF(size);
  return result;
}

bool has_one_meaning(const OperatorObject& self, PyObject* keyword, PyObject* names,
                     size_t positional) {
  if (PyUnicode_CompareWithASCIIString(keyword, "dim") != 0) return true;
  for (const char* name : {"max", "min"})
    if (PyUnicode_CompareWithASCIIString(self.name, name) == 0) return tell_of_dim(self);
  for (const auto& [name, theirs, fix] : kOfDim) {
    if (PyUnicode_CompareWithASCIIString(self.name, name) != 0) continue;
    if (is_correction_told(self, names, positional)) return true;
    return raise_error(PyExc_TypeError,
                       "%U(): dim= is PyTorch's keyword, whose %U() %s; write %s\n  signature: %s",
                       self.name, self.name, theirs, fix, self.schema());
  }
  return true;
}

PyObject* call_as_other_library(const OperatorObject& self, PyObject* const* objects, size_t flags,
                                PyObject* keyword_names) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  // The caller's `__import__`, which a restricted program lacks, is not asked.
  PyObject* parts = Py_BuildValue("(s)", "call");
  PyObject* module =
      parts ? PyImport_ImportModuleLevel("tenon._tensor.ports", nullptr, nullptr, parts, 0)
            : nullptr;
  Py_XDECREF(parts);
  PyObject* call = module ? PyObject_GetAttrString(module, "call") : nullptr;
  Py_XDECREF(module);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  const Py_ssize_t named = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  PyObject* arguments = call ? PyTuple_New(count + 1) : nullptr;
  PyObject* keywords = arguments ? PyDict_New() : nullptr;
  PyObject* result = nullptr;
  if (keywords) {
    PyTuple_SET_ITEM(arguments, 0, Py_NewRef(self.name));
    for (Py_ssize_t i = 0; i < count; ++i)
      PyTuple_SET_ITEM(arguments, i + 1, Py_NewRef(objects[i]));
    bool is_complete = true;
    for (Py_ssize_t i = 0; i < named && is_complete; ++i)
      is_complete =
          PyDict_SetItem(keywords, PyTuple_GET_ITEM(keyword_names, i), objects[count + i]) == 0;
    if (is_complete) result = PyObject_Call(call, arguments, keywords);
  }
  Py_XDECREF(call);
  Py_XDECREF(arguments);
  Py_XDECREF(keywords);
  if (!keywords || result == Py_NotImplemented) {
    Py_XDECREF(result);
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result;
}

void add_port_functions(nb::module_& module) {
  module.def("_watch_ports", &watch_ports, nb::arg("namespace"), nb::arg("tell"), nb::arg("size"),
             "From here on, modules that have `namespace` as `torch` are ports of programs for "
             "PyTorch: methods with "
             "another meaning there call `tell` first, and x.size is what `size` gives.");
}

}  // namespace tenon::python
