// SPDX-License-Identifier: Apache-2.0
#include "expression/host_functions.hpp"

#include <algorithm>

namespace tenon::codegen {

ValueType type_of(const Param& param) {
  static constexpr ValueType::Base bases[] = {
      ValueType::None,  ValueType::Tensor, ValueType::Tensors, ValueType::Int,
      ValueType::Float, ValueType::Bool,   ValueType::Scalar,  ValueType::String,
      ValueType::Dtype, ValueType::Device, ValueType::Ints,    ValueType::Floats};
  return {bases[static_cast<int>(param.kind)], param.optional, nullptr};
}

std::string name_of(const ValueType& type) {
  static constexpr const char* names[] = {
      "none", "Tensor", "Tensor[]", "int",   "float",   "bool",           "Scalar",
      "str",  "dtype",  "device",   "int[]", "float[]", "several results"};
  return std::string(names[type.base]) + (type.optional ? "?" : "");
}

bool converts(const ValueType& from, const ValueType& to) {
  if (from.base == ValueType::None) return to.optional;
  if (from.optional && !to.optional) return false;
  if (from.base == to.base) return true;
  switch (to.base) {
    case ValueType::Tensor:
    case ValueType::Scalar:
      return !from.optional && (from.base == ValueType::Int || from.base == ValueType::Float ||
                                from.base == ValueType::Bool || from.base == ValueType::Scalar);
    case ValueType::Float:
      return from.is(ValueType::Int) || from.is(ValueType::Scalar);
    case ValueType::Ints:
      return from.is(ValueType::Int);
    case ValueType::Floats:
      return from.is(ValueType::Ints);
    default:
      return false;
  }
}

const std::vector<HostFunction>& host_functions() {
  static constexpr ValueType integer{ValueType::Int}, number{ValueType::Float},
      truth{ValueType::Bool}, ints{ValueType::Ints}, floats{ValueType::Floats},
      tensors{ValueType::Tensors}, dtype{ValueType::Dtype}, optional_ints{ValueType::Ints, true};
  static const std::vector<HostFunction> table = {
      {"min", {number, number}, number, true},
      {"max", {number, number}, number, true},
      {"abs", {number}, number, true},
      {"floordiv", {integer, integer}, integer},
      {"int", {number}, integer},
      {"sqrt", {number}, number},
      {"exp", {number}, number},
      {"log", {number}, number},
      {"pow", {number, number}, number},
      {"sin", {number}, number},
      {"cos", {number}, number},
      {"tanh", {number}, number},
      {"erf", {number}, number},
      {"lgamma", {number}, number},
      {"floor", {number}, number},
      {"ceil", {number}, number},
      // lists of integers, written for shapes
      {"len", {ints}, integer},
      {"len", {floats}, integer},
      {"len", {tensors}, integer},
      {"prod", {ints}, integer},
      {"range", {integer, integer}, ints},
      {"reversed", {ints}, ints},
      {"slice", {ints, integer, integer}, ints},
      {"insert", {ints, integer, integer}, ints},
      {"remove", {ints, integer}, ints},
      {"replace", {ints, integer, integer}, ints},
      {"repeat", {integer, integer}, ints},
      {"contains", {ints, integer}, truth},
      {"axes", {optional_ints, integer}, ints},
      {"inverse", {ints}, ints},
      {"broadcast_shapes", {ints, ints}, ints},
      // dtypes
      {"is_floating", {dtype}, truth},
      {"is_complex", {dtype}, truth},
      {"is_integer", {dtype}, truth},
      {"is_bool", {dtype}, truth},
      {"promote", {dtype, dtype}, dtype},
      {"real_dtype", {dtype}, dtype},
      {"epsilon", {dtype}, number},
      {"lowest", {dtype}, number},
      {"highest", {dtype}, number},
  };
  return table;
}

const HostFunction* find_host_function(const std::string& name,
                                       const std::vector<ValueType>& arguments) {
  for (const HostFunction& function : host_functions()) {
    if (name != function.name || arguments.size() != function.params.size()) continue;
    if (std::equal(arguments.begin(), arguments.end(), function.params.begin(), converts))
      return &function;
  }
  return nullptr;
}

std::vector<std::string> host_function_names() {
  std::vector<std::string> names;
  for (const HostFunction& function : host_functions()) names.push_back(function.name);
  return names;
}

}  // namespace tenon::codegen
