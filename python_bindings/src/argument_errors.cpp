// SPDX-License-Identifier: Apache-2.0
#include "argument_errors.hpp"

#include "errors.hpp"
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

}  // namespace

bool wrong_type(const OperatorObject& self, const Parameter& parameter, PyObject* got) {
  if (PyErr_Occurred()) return false;
  const char* fix = "";
  bool wants_tensor = parameter.kind == TENON_PARAM_TENSOR || parameter.kind == TENON_PARAM_TENSORS;
  if (wants_tensor && (PyList_Check(got) || PyTuple_Check(got) || PyObject_CheckBuffer(got)))
    fix = "; convert it with tenon.tensor(...)";
  else if (is_tensor(got) &&
           (parameter.kind == TENON_PARAM_INT || parameter.kind == TENON_PARAM_FLOAT))
    fix = "; read its value with .item()";
  return raise_error(PyExc_TypeError,
                     "%U(): argument '%U': expected %s%s, got %s%s\n  signature: %s", self.name,
                     parameter.name, kind_text(parameter.kind),
                     parameter.flags & TENON_PARAM_FLAG_OPTIONAL ? " or None" : "", type_name(got),
                     fix, self.schema());
}

bool wrong_call(const OperatorObject& self, const char* problem, PyObject* name) {
  return raise_error(PyExc_TypeError, "%U(): %s '%U'\n  signature: %s", self.name, problem, name,
                     self.schema());
}

// Spellings of other libraries, named in the error so that the fix is obvious.
bool unknown_keyword(const OperatorObject& self, PyObject* name) {
  static constexpr const char* kSpellings[][2] = {
      {"dim", "axis"}, {"dims", "axes"}, {"dims", "axis"}, {"keepdims", "keepdim"},
      {"input", "x"},  {"other", "y"},   {"size", "shape"}};
  for (const auto& [foreign, own] : kSpellings) {
    if (PyUnicode_CompareWithASCIIString(name, foreign) != 0) continue;
    for (uint32_t i = 0; i < self.parameter_count; ++i)
      if (PyUnicode_CompareWithASCIIString(self.parameters[i].name, own) == 0)
        return raise_error(PyExc_TypeError,
                           "%U(): unknown keyword '%U'; did you mean '%s'?\n  signature: %s",
                           self.name, name, own, self.schema());
  }
  return wrong_call(self, "unknown keyword", name);
}

}  // namespace tenon::python
