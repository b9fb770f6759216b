// SPDX-License-Identifier: Apache-2.0
// tenon.Tensor with the methods of another library, in a process that runs programs written for it.
#include "modules.hpp"
#include "tensor_object.hpp"
#include "tensor_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

PyObject*
    construct;  // what Tensor(...) calls. Never released: the type lives as long as the process

PyObject* new_by_dialect(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  if (type == &tensor_type) return PyObject_Call(construct, arguments, keywords);
  return tensor_new(type, arguments, keywords);
}

void adopt_dialect(nb::dict attributes, nb::handle constructor, nb::handle shape_type) {
  if (construct)
    throw std::runtime_error("expected no dialect yet; a process has one, and keeps it");
  if (!PyType_Check(shape_type.ptr()) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(shape_type.ptr()), &PyTuple_Type))
    throw nb::type_error("expected a subclass of tuple for shapes");
  for (auto [name, value] : attributes)
    if (add_tensor_attribute(nb::cast<const char*>(name), value.ptr()) < 0)
      throw nb::python_error();
  construct = constructor.inc_ref().ptr();
  tensor_type.tp_new = new_by_dialect;
  set_shape_type(reinterpret_cast<PyTypeObject*>(shape_type.inc_ref().ptr()));
  PyType_Modified(&tensor_type);
}

}  // namespace

void add_dialect_functions(nb::module_& module) {
  module.def(
      "_adopt_dialect", &adopt_dialect, nb::arg("attributes"), nb::arg("constructor"),
      nb::arg("shape_type"),
      "Gives tenon.Tensor, for the rest of the process, `attributes` in the place of its own of "
      "the same names, `constructor` as what Tensor(...) calls, and `shape_type`, a subclass of "
      "tuple, as the class of shapes. Slots keep their meaning.");
}

}  // namespace tenon::python
