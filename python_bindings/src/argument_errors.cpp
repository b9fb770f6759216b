// SPDX-License-Identifier: Apache-2.0
#include "argument_errors.hpp"

#include "errors.hpp"
#include "python/spellings.hpp"
#include "tensor_object.hpp"

namespace tenon::python {
namespace {

const char* kind_text(int32_t kind) {
  switch (kind) {
    case TENON_PARAM_TENSOR:
      return "Tensor or number";
    case TENON_PARAM_TENSORS:
      return "list of Tensors";
    case TENON_PARAM_INT:
      return "int";
    case TENON_PARAM_FLOAT:
      return "float";
    case TENON_PARAM_BOOL:
      return "bool";
    case TENON_PARAM_SCALAR:
      return "number";
    case TENON_PARAM_STRING:
      return "str";
    case TENON_PARAM_DTYPE:
      return "dtype";
    case TENON_PARAM_DEVICE:
      return "device";
    case TENON_PARAM_INTS:
      return "int or list of ints";
    case TENON_PARAM_FLOATS:
      return "list of floats";
    default:
      return "value";
  }
}

bool wants_numbers(int32_t kind) {
  constexpr uint32_t kKinds = 1u << TENON_PARAM_INT | 1u << TENON_PARAM_FLOAT |
                              1u << TENON_PARAM_BOOL | 1u << TENON_PARAM_SCALAR |
                              1u << TENON_PARAM_INTS | 1u << TENON_PARAM_FLOATS;
  return kKinds >> kind & 1;
}

bool takes_correction(const OperatorObject& self) {
  for (uint32_t i = 0; i < self.parameter_count; ++i)
    if (PyUnicode_CompareWithASCIIString(self.parameters[i].name, "correction") == 0) return true;
  return false;
}

}  // namespace

bool wrong_type(const OperatorObject& self, const Parameter& parameter, PyObject* got) {
  return wrong_item(self, parameter, got, got, -1);
}

bool wrong_item(const OperatorObject& self, const Parameter& parameter, PyObject* got,
                PyObject* item, Py_ssize_t index) {
  if (PyErr_Occurred()) return false;
  const char* fix = "";
  bool wants_tensor = parameter.kind == TENON_PARAM_TENSOR || parameter.kind == TENON_PARAM_TENSORS;
  if (wants_tensor && (PyList_Check(item) || PyTuple_Check(item) || PyNumber_Check(item) ||
                       PyObject_CheckBuffer(item)))
    fix = "; convert it with tenon.tensor(...)";
  else if (is_tensor(item) && wants_numbers(parameter.kind))
    fix = "; read its value with .item()";
  else if (PyBool_Check(item) && takes_correction(self))
    fix = "; `unbiased` of PyTorch is correction=1 or correction=0 here";
  PyObject* place = index < 0
                        ? PyUnicode_FromString("")
                        : PyUnicode_FromFormat(" with %s at index %zd", type_name(item), index);
  if (!place) return false;
  raise_error(PyExc_TypeError, "%U(): argument '%U': expected %s%s, got %s%U%s\n  signature: %s",
              self.name, parameter.name, kind_text(parameter.kind),
              parameter.flags & TENON_PARAM_FLAG_OPTIONAL ? " or None" : "", type_name(got), place,
              fix, self.schema());
  Py_DECREF(place);
  return false;
}

bool wrong_call(const OperatorObject& self, const char* problem, PyObject* name) {
  return raise_error(PyExc_TypeError, "%U(): %s '%U'\n  signature: %s", self.name, problem, name,
                     self.schema());
}

// Keywords of other libraries are explained, so that the fix is obvious.
bool unknown_keyword(const OperatorObject& self, PyObject* name) {
  for (const auto& [theirs, ours] : kMeantKeywords) {
    if (PyUnicode_CompareWithASCIIString(name, theirs) != 0) continue;
    for (uint32_t i = 0; i < self.parameter_count; ++i)
      if (PyUnicode_CompareWithASCIIString(self.parameters[i].name, ours) == 0)
        return raise_error(PyExc_TypeError,
                           "%U(): unknown keyword '%U'; did you mean '%s'?\n  signature: %s",
                           self.name, name, ours, self.schema());
  }
  return wrong_call(self, "unknown keyword", name);
}

}  // namespace tenon::python
