// SPDX-License-Identifier: Apache-2.0
#include "expression/host_functions.hpp"
#include "expression/operator_checker.hpp"
#include "support/text.hpp"

namespace tenon::codegen {

Value OperatorChecker::infix(const Node& node, const char* callee, std::vector<Value> operands) {
  const Operator* target = package_.find(callee, op_.name_space);
  if (!target)
    fail(node, cat("`", node.text, "` on tensors is the operator `", callee,
                   "`, which is not among the loaded files"));
  Value value = make(Value::OperatorCall, result_type(*target), node);
  value.op = target;
  value.bound.assign(target->signature.params.size(), -1);
  for (size_t i = 0; i < operands.size(); ++i) value.bound[i] = static_cast<int>(i);
  value.children = std::move(operands);
  check_arguments(node, value);
  return value;
}

ValueType OperatorChecker::result_type(const Operator& op) {
  if (op.signature.results.size() > 1) return {ValueType::Record, false, &op};
  return {op.signature.list_result() ? ValueType::Tensors : ValueType::Tensor};
}

Value OperatorChecker::call(const Node& node) {
  std::vector<Value> arguments;
  bool on_host = true, keywords = false;
  std::vector<ValueType> types;
  for (size_t i = 0; i < node.children.size(); ++i) {
    arguments.push_back(check(node.children[i]));
    types.push_back(arguments.back().type);
    on_host = on_host && types.back().base != ValueType::Tensor;
    keywords = keywords || !node.keywords[i].empty();
  }
  if (on_host && !keywords && !tensor_literals_) {
    if (const HostFunction* function = find_host_function(node.text, types)) {
      Value value = make(Value::HostCall, function->result, node);
      if (function->follows_arguments) {
        bool integers = true;
        for (const ValueType& type : types) integers = integers && type.is(ValueType::Int);
        if (integers) value.type = {ValueType::Int};
      }
      value.children = std::move(arguments);
      return value;
    }
  }
  const Operator* target = package_.find(node.text, op_.name_space);
  if (!target) {
    std::vector<std::string> known = package_.operator_names();
    for (std::string& function : host_function_names()) known.push_back(std::move(function));
    fail(node, cat("unknown operator `", node.text, "`", did_you_mean(node.text, known)));
  }
  Value value = make(Value::OperatorCall, result_type(*target), node);
  value.op = target;
  value.children = std::move(arguments);
  bind_arguments(node, value);
  check_arguments(node, value);
  return value;
}

void OperatorChecker::bind_arguments(const Node& node, Value& value) const {
  const Signature& signature = value.op->signature;
  value.bound.assign(signature.params.size(), -1);
  for (size_t i = 0; i < node.children.size(); ++i) {
    int index = static_cast<int>(i);
    if (!node.keywords[i].empty()) {
      index = signature.find_param(node.keywords[i]);
      if (index < 0) {
        std::vector<std::string> names;
        for (const Param& param : signature.params) names.push_back(param.name);
        fail(node, cat("`", value.op->name, "` has no parameter `", node.keywords[i], "`",
                       did_you_mean(node.keywords[i], names), "; its signature is ",
                       signature.canonical()));
      }
    } else if (i >= signature.params.size() || signature.params[i].keyword_only) {
      fail(node, cat("`", value.op->name, "` takes fewer positional arguments; its signature is ",
                     signature.canonical()));
    }
    if (value.bound[index] >= 0)
      fail(node,
           cat("`", signature.params[index].name, "` of `", value.op->name, "` is given twice"));
    value.bound[index] = static_cast<int>(i);
  }
}

void OperatorChecker::check_arguments(const Node& node, Value& value) const {
  const Signature& signature = value.op->signature;
  for (size_t i = 0; i < signature.params.size(); ++i) {
    const Param& param = signature.params[i];
    if (value.bound[i] < 0) {
      if (!param.default_value)
        fail(node, cat("`", value.op->name, "` needs `", param.name, "`; its signature is ",
                       signature.canonical()));
      continue;
    }
    Value& argument = value.children[value.bound[i]];
    if (accepts(param, argument)) continue;
    std::string hint;
    if (argument.type.optional && argument.type.base != ValueType::None)
      hint = "; it may be none: write `name == none ? ... : ...`";
    else if ((argument.type.is(ValueType::Float) && param.kind == ParamKind::Int) ||
             (argument.type.is(ValueType::Floats) && param.kind == ParamKind::Ints))
      hint = "; `/` gives a float, `//` divides integers";
    fail(node,
         cat("`", param.name, "` of `", value.op->name, "`: expected ", name_of(type_of(param)),
             ", got ", name_of(argument.type), " `", argument_text(node, value, i), "`", hint));
  }
}

std::string OperatorChecker::argument_text(const Node& node, const Value& value, size_t param) {
  size_t child = static_cast<size_t>(value.bound[param]);
  return child < node.children.size() ? text_of(node.children[child]) : "";
}

bool OperatorChecker::accepts(const Param& param, Value& argument) const {
  if (converts(argument.type, type_of(param))) return true;
  if (tensor_literals_ && param.kind == ParamKind::Device && argument.type.is(ValueType::String))
    return true;  // 'cpu'
  if (argument.form != Value::List) return false;
  // An empty list has no type of its own.
  if (argument.children.empty() &&
      (param.kind == ParamKind::Floats || param.kind == ParamKind::Tensors)) {
    argument.type = type_of(param);
    return true;
  }
  return tensor_literals_ && param.holds_tensors();
}

}  // namespace tenon::codegen
