// SPDX-License-Identifier: Apache-2.0
#include "emit/cpp_types.hpp"

#include <tenon/abi.h>

#include <cmath>
#include <cstdio>

#include "emit/cpu_kernels.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

std::string optional_of(const char* type, bool optional) {
  return optional ? cat("std::optional<", type, ">") : type;
}

std::string cpp_integer(int64_t number) {
  if (number == INT64_MIN) return "INT64_MIN";
  return std::to_string(number);
}

}  // namespace

std::string cpp_number(double number) {
  if (std::isnan(number)) return "NAN";
  if (std::isinf(number)) return number > 0 ? "INFINITY" : "-INFINITY";
  char buffer[32];
  for (int digits : {6, 15, 17}) {
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, number);
    if (std::strtod(buffer, nullptr) == number) break;
  }
  std::string text = buffer;
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string cpp_param_type(const Param& param) {
  switch (param.kind) {
    case ParamKind::Tensor:
      return "TensorArg";
    case ParamKind::Tensors:
      return "TensorList";
    case ParamKind::Int:
      return optional_of("int64_t", param.optional);
    case ParamKind::Float:
      return optional_of("double", param.optional);
    case ParamKind::Bool:
      return optional_of("bool", param.optional);
    case ParamKind::Scalar:
      return optional_of("ScalarArg", param.optional);
    case ParamKind::String:
      return optional_of("std::string_view", param.optional);
    case ParamKind::Dtype:
    case ParamKind::Device:
      return "int32_t";
    case ParamKind::Ints:
      return param.optional ? "OptionalInts" : "IntList";
    case ParamKind::Floats:
      return param.optional ? "OptionalFloats" : "FloatList";
  }
  return "";
}

std::string cpp_default(const Param& param) {
  return std::visit(
      Overloaded{[&](NoneValue) -> std::string {
                   if (param.kind == ParamKind::Dtype || param.kind == ParamKind::Device)
                     return "-1";
                   if (param.is_tensor()) return "nullptr";
                   return param.kind == ParamKind::Tensors ? "TensorList()" : "{}";
                 },
                 [](bool truth) -> std::string { return truth ? "true" : "false"; },
                 [&](int64_t number) -> std::string {
                   // Weak scalars keep their kind.
                   return param.kind == ParamKind::Int ? cpp_integer(number)
                                                       : cat("int64_t{", cpp_integer(number), "}");
                 },
                 [](double number) { return cpp_number(number); },
                 [](const std::string& text) { return quoted(text); },
                 [](DtypeValue dtype) -> std::string { return dtypes()[dtype.id].macro; },
                 [](const std::vector<int64_t>& list) {
                   return cat("IntList{", join(list, ", ", cpp_integer), "}");
                 },
                 [](const std::vector<double>& list) {
                   return cat("FloatList{", join(list, ", ", cpp_number), "}");
                 }},
      *param.default_value);
}

std::string cpp_boxed(const Param& param) {
  switch (param.kind) {
    case ParamKind::Tensor:
    case ParamKind::Tensors:
    case ParamKind::Ints:
    case ParamKind::Floats:
      return param.name + ".value()";
    case ParamKind::Dtype:
      return cat("call::boxed_dtype(", param.name, ")");
    case ParamKind::Device:
      return cat("call::boxed_device(", param.name, ")");
    default:
      return cat("call::boxed(", param.name, ")");
  }
}

// C types of a parameter: one, or two for lists and strings.
static std::vector<std::string> c_types(const Param& param) {
  auto number = [&](const char* type) {
    return std::vector<std::string>{param.optional ? "const tenon_value*" : type};
  };
  switch (param.kind) {
    case ParamKind::Tensor:
      return {"const tenon_tensor*"};
    case ParamKind::Tensors:
      return {"const tenon_tensor* const*", "uint64_t"};
    case ParamKind::Int:
      return number("int64_t");
    case ParamKind::Float:
      return number("double");
    case ParamKind::Bool:
      return number("int32_t");
    case ParamKind::Scalar:
      return {"const tenon_value*"};
    case ParamKind::String:
      return {"const char*", "uint64_t"};
    case ParamKind::Dtype:
    case ParamKind::Device:
      return {"int32_t"};
    case ParamKind::Ints:
      return {"const int64_t*", "uint64_t"};
    case ParamKind::Floats:
      return {"const double*", "uint64_t"};
  }
  return {};
}

std::string c_param(const Param& param) {
  std::vector<std::string> types = c_types(param);
  std::string text = cat(types[0], " ", param.name);
  if (types.size() == 1) return text;
  return cat(text, ", ", types[1], " ", param.name,
             param.kind == ParamKind::String ? "_bytes" : "_count");
}

std::string c_param_types(const Param& param) { return join(c_types(param), ", "); }

std::string c_word(ParamKind kind) {
  switch (kind) {
    case ParamKind::Tensor:
      return "tensor";
    case ParamKind::Tensors:
      return "tensors";
    case ParamKind::Int:
      return "int";
    case ParamKind::Float:
      return "float";
    case ParamKind::Bool:
      return "bool";
    case ParamKind::Scalar:
      return "scalar";
    case ParamKind::String:
      return "string";
    case ParamKind::Dtype:
    case ParamKind::Device:
      return "id";
    case ParamKind::Ints:
      return "ints";
    case ParamKind::Floats:
      return "floats";
  }
  return "";
}

std::string c_shape(const Param& param) {
  bool number = param.kind == ParamKind::Int || param.kind == ParamKind::Float ||
                param.kind == ParamKind::Bool;
  if (param.kind == ParamKind::Scalar || (number && param.optional)) return "value";
  return c_word(param.kind);
}

std::string c_unboxed(const Param& param, size_t index) {
  std::string shape = c_shape(param), argument = cat("&args[", index, "]");
  std::string first = cat("tenon_arg_", shape, "(", argument, ")");
  if (shape == "tensors" || shape == "string" || shape == "ints" || shape == "floats")
    return cat(first, ", tenon_arg_count(", argument, ")");
  return first;
}

std::string kernel_param(const Param& param) {
  switch (param.kind) {
    case ParamKind::Tensors:
      return "std::span<const tenon_tensor* const>";
    case ParamKind::Int:
      return optional_of("int64_t", param.optional);
    case ParamKind::Float:
      return optional_of("double", param.optional);
    case ParamKind::Bool:
      return optional_of("bool", param.optional);
    case ParamKind::Scalar:
      return "const tenon_value&";
    case ParamKind::String:
      return "std::string_view";
    case ParamKind::Ints:
      return "std::span<const int64_t>";
    case ParamKind::Floats:
      return "std::span<const double>";
    default:
      return "int32_t";  // ids of dtypes and devices
  }
}

std::string kernel_argument(const Param& param, const std::string& boxed) {
  bool number = c_shape(param) == "value" && param.kind != ParamKind::Scalar;
  std::string read = param.kind == ParamKind::Bool    ? "argument::boolean"
                     : param.kind == ParamKind::Float ? "tenon_arg_float"
                                                      : "tenon_arg_int";
  if (number) return cat("argument::optional(", boxed, ", ", read, ")");
  switch (param.kind) {
    case ParamKind::Scalar:
      return boxed;
    case ParamKind::Int:
    case ParamKind::Float:
    case ParamKind::Bool:
      return cat(read, "(&", boxed, ")");
    case ParamKind::Dtype:
    case ParamKind::Device:
      return cat("tenon_arg_id(&", boxed, ")");
    default:
      return cat("argument::", c_word(param.kind), "(", boxed, ")");
  }
}

std::string kernel_element_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
      return "::tenon::Float8E4M3";
    case TENON_DTYPE_F8E5M2:
      return "::tenon::Float8E5M2";
    case TENON_DTYPE_F16:
      return "::tenon::Float16";
    case TENON_DTYPE_BF16:
      return "::tenon::BFloat16";
    default:
      return cpu_element_type(dtype);
  }
}

std::string default_elements(const Param& param) {
  if (!param.default_value) return "";
  if (auto list = std::get_if<std::vector<int64_t>>(&*param.default_value))
    return join(*list, ", ", cpp_integer);
  if (auto list = std::get_if<std::vector<double>>(&*param.default_value))
    return join(*list, ", ", cpp_number);
  return "";
}

std::string value_initialiser(const Param& param, const std::string& array) {
  if (!param.default_value) return "{}";
  auto value = [](const char* tag, size_t aux, const std::string& member) {
    return cat("{", tag, ", ", aux, ", {", member, "}}");
  };
  auto list_pointer = [&](bool empty, const char* type) {
    return empty ? std::string(".p = nullptr") : cat(".p = const_cast<", type, "*>(", array, ")");
  };
  return std::visit(
      Overloaded{
          [](NoneValue) -> std::string { return "{}"; },
          [&](bool truth) { return value("TENON_VALUE_BOOL", 0, cat(".i = ", truth)); },
          [&](int64_t number) {
            return value("TENON_VALUE_INT", 0, cat(".i = ", cpp_integer(number)));
          },
          [&](double number) {
            return value("TENON_VALUE_FLOAT", 0, cat(".f = ", cpp_number(number)));
          },
          [&](const std::string& text) {
            return value("TENON_VALUE_STRING", text.size(),
                         cat(".p = const_cast<char*>(", quoted(text), ")"));
          },
          [&](DtypeValue dtype) {
            return value("TENON_VALUE_DTYPE", 0, cat(".i = ", dtypes()[dtype.id].macro));
          },
          [&](const std::vector<int64_t>& list) {
            return value("TENON_VALUE_INTS", list.size(), list_pointer(list.empty(), "int64_t"));
          },
          [&](const std::vector<double>& list) {
            return value("TENON_VALUE_FLOATS", list.size(), list_pointer(list.empty(), "double"));
          }},
      *param.default_value);
}

std::string c_prefix(const Operator& op) { return op.name_space; }

}  // namespace tenon::codegen
