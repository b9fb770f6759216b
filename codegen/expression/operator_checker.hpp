// SPDX-License-Identifier: Apache-2.0
// Gives every part of an operator expression its type. Inside of operator_check.hpp; in three
// files: operator_checker.cpp (names, arithmetic, choices), operator_calls.cpp (calls and their
// arguments), operator_check.cpp (what results must be).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "expression/value.hpp"

namespace tenon::codegen {

// What a name stands for, before it is used.
struct Binding {
  ValueType type;
  Role role;
  int index;
};

class OperatorChecker {
 public:
  OperatorChecker(const Operator& op, const Package& package, std::string key);
  void bind(const std::string& name, Binding binding) { bindings_[name] = binding; }

  // In examples a list is a tensor where one is expected.
  void allow_tensor_literals() { tensor_literals_ = true; }

  Program program(const Steps& steps);
  Value check(const Node& node);
  [[noreturn]] void fail(const Node& node, const std::string& text) const;

 private:
  static Value make(Value::Form form, ValueType type, const Node& node);
  static Value constant(const Node& node, ValueType type);
  Value name(const Node& node);
  void refuse_optional(const Node& node, const Value& value) const;
  Value unary(const Node& node);
  Value binary(const Node& node);
  ValueType arithmetic_type(const Node& node, const ValueType& left, const ValueType& right) const;
  Value infix(const Node& node, const char* callee, std::vector<Value> operands);
  // Names that `test` proves to be there, if it comes out as `outcome`.
  void narrow(const Value& test, bool outcome);
  Value conditional(const Node& node);
  ValueType common_type(const Node& node, ValueType a, ValueType b) const;
  static ValueType result_type(const Operator& op);
  Value call(const Node& node);
  void bind_arguments(const Node& node, Value& value) const;
  void check_arguments(const Node& node, Value& value) const;
  static std::string argument_text(const Node& node, const Value& value, size_t param);
  bool accepts(const Param& param, Value& argument) const;
  Value list(const Node& node);
  Value member(const Node& node);
  // `tensors.shape[axis]`: that extent of every element of a Tensor[].
  std::optional<Value> extents(const Node& node);
  Value subscript(const Node& node);
  const Operator& op_;
  const Package& package_;
  std::string key_;
  std::map<std::string, Binding> bindings_;
  std::set<std::string> present_;  // optional names known to be there
  bool tensor_literals_ = false;
};

}  // namespace tenon::codegen
