// SPDX-License-Identifier: Apache-2.0
#include "operator_text.hpp"

#include <cstring>
#include <string>

namespace tenon::python {
namespace {

std::string float_text(double number) {
  char* text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
  std::string result = text ? text : "0.0";
  PyMem_Free(text);
  // Literals only: inspect does not know names such as inf.
  if (result == "inf") return "1e999";
  if (result == "-inf") return "-1e999";
  return result == "nan" ? "None" : result;
}

std::string default_text(const tenon_value& value) {
  switch (value.tag) {
    case TENON_VALUE_INT:
      return std::to_string(value.v.i);
    case TENON_VALUE_BOOL:
      return value.v.i ? "True" : "False";
    case TENON_VALUE_FLOAT:
      return float_text(value.v.f);
    case TENON_VALUE_DTYPE:
      return std::string("'") + host->dtype_name(static_cast<int32_t>(value.v.i)) + "'";
    case TENON_VALUE_STRING:
      return "'" + std::string(static_cast<const char*>(value.v.p), value.aux) + "'";
    case TENON_VALUE_INTS:
    case TENON_VALUE_FLOATS: {
      std::string text = "[";
      for (uint32_t i = 0; i < value.aux; ++i) {
        if (i > 0) text += ", ";
        text += value.tag == TENON_VALUE_INTS
                    ? std::to_string(static_cast<const int64_t*>(value.v.p)[i])
                    : float_text(static_cast<const double*>(value.v.p)[i]);
      }
      return text + "]";
    }
    default:
      return "None";
  }
}

}  // namespace

PyObject* operator_doc(const OperatorObject& self) {
  const char* schema = std::strstr(self.schema(), "::");
  const char* note = self.form == CallForm::kInPlace
                         ? "\n\nThis form writes the result into `x` and returns it."
                         : "";
  return PyUnicode_FromFormat("%s\n\n%s%s", schema ? schema + 2 : self.schema(),
                              self.def->doc ? self.def->doc : "", note);
}

PyObject* operator_text_signature(const OperatorObject& self) {
  if (!self.is_current()) Py_RETURN_NONE;  // the defaults' texts are gone
  std::string text = "(";
  bool keyword_only = false;
  for (uint32_t i = 0; i < self.parameter_count; ++i) {
    const Parameter& parameter = self.parameters[i];
    if (i > 0) text += ", ";
    if (parameter.flags & TENON_PARAM_FLAG_KEYWORD_ONLY && !keyword_only) {
      text += "*, ";
      keyword_only = true;
    }
    text += PyUnicode_AsUTF8(parameter.name);
    if (!(self.required >> i & 1)) text += "=" + default_text(parameter.default_value);
  }
  if (self.form == CallForm::kFunction)
    text += keyword_only ? ", out=None" : text == "(" ? "*, out=None" : ", *, out=None";
  return PyUnicode_FromString((text + ")").c_str());
}

}  // namespace tenon::python
