// SPDX-License-Identifier: Apache-2.0
#include "batched.hpp"

#include <vector>

#include "modules.hpp"
#include "operator_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

PyObject* handler;  // f(operator, *args, **kwargs) of tenon/func

void set_batched(nb::handle type, nb::handle function) {
  handler = function.inc_ref().ptr();
  batched_type = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());
}

}  // namespace

PyObject* call_batched(PyObject* op, PyObject* const* objects, size_t flags,
                       PyObject* keyword_names) {
  const Py_ssize_t positional = PyVectorcall_NARGS(flags);
  const Py_ssize_t named = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  std::vector<PyObject*> all{op};
  all.insert(all.end(), objects, objects + positional + named);
  return PyObject_Vectorcall(handler, all.data(), static_cast<size_t>(positional) + 1,
                             keyword_names);
}

PyObject* index_by_batched(PyObject* tensor, PyObject* positions) {
  PyObject* op = find_operator("index");
  PyObject* list = op ? PyList_New(1) : nullptr;
  PyObject* result = nullptr;
  if (list) {
    PyList_SET_ITEM(list, 0, Py_NewRef(positions));
    PyObject* const objects[] = {tensor, list};
    result = call_batched(op, objects, 2, nullptr);
  }
  Py_XDECREF(list);
  Py_XDECREF(op);
  return result;
}

void add_batched_functions(nb::module_& module) { module.def("_set_batched", &set_batched); }

}  // namespace tenon::python
