// SPDX-License-Identifier: Apache-2.0
// Checked operator expressions as C++ over tenon::ops and tenon::expression.
#pragma once

#include <set>
#include <string>

#include "expression/value.hpp"

namespace tenon::codegen {

class ExpressionCpp {
 public:
  // Gradients: C++ that gives the device, because arguments of which only the shape is kept live on
  // the meta device.
  void take_devices_from(std::string variable) { device_of_ = std::move(variable); }

  // `const auto name = ...;`, with a type that owns what it holds.
  std::string step(const std::string& name, const Value& value) const;
  // An expression of type Tensor, std::vector<Tensor> or the result struct.
  std::string owned(const Value& value) const;
  // A statement that has the operator call `value` write into the tensor `out`.
  std::string write_over(const Value& value, const std::string& out) const;
  // Statements `const TensorArg x(args[0]);` for the parameters that the program uses.
  static std::string declare_arguments(const Operator& op, const std::set<int>& used);

 private:
  std::string text(const Value& value) const;
  std::string constant(const Value& value) const;
  std::string variable(const Value& value) const;
  std::string arithmetic(const Value& value) const;
  std::string host_call(const Value& value) const;
  std::string operator_call(const Value& value) const;
  std::string arguments_of(const Value& value) const;
  std::string conditional(const Value& value) const;
  std::string list(const Value& value) const;
  std::string none_test(const Value& value) const;
  std::string folded(const Value& value) const;
  std::string converted(const Value& value, const ValueType& type) const;

  std::string device_of_;
};

}  // namespace tenon::codegen
