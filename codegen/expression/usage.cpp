// SPDX-License-Identifier: Apache-2.0
#include "expression/usage.hpp"

#include "expression/operator_check.hpp"

namespace tenon::codegen {
namespace {

void collect_usage(const Value& value, Usage& usage) {
  // A tensor of which only the shape or dtype is used is not read.
  bool meta = value.form == Value::Meta ||
              (value.form == Value::HostCall && (value.text == "extents" || value.text == "len"));
  if (meta && value.children[0].form == Value::Variable) {
    const Value& variable = value.children[0];
    if (variable.role == Role::Argument && value.text != "device") {
      usage.shapes.insert(variable.index);
      usage.named.insert(variable.index);
    } else if (variable.role == Role::Output) {
      usage.outputs.insert(variable.index);
    } else if (variable.role == Role::Gradient) {
      usage.gradients.insert(variable.index);
    }
    for (size_t i = 1; i < value.children.size(); ++i) collect_usage(value.children[i], usage);
    return;
  }
  if (value.form == Value::Variable) {
    if (value.role == Role::Argument) {
      usage.arguments.insert(value.index);
      usage.named.insert(value.index);
    } else if (value.role == Role::Output) {
      usage.outputs.insert(value.index);
    } else if (value.role == Role::Gradient) {
      usage.gradients.insert(value.index);
    }
  }
  for (const Value& child : value.children) collect_usage(child, usage);
}

uint64_t mask_of(const std::set<int>& indices) {
  uint64_t mask = 0;
  for (int index : indices) mask |= uint64_t{1} << index;
  return mask;
}

// Attributes are always there; what a rule reads counts for tensors only.
uint64_t tensor_mask(const Operator& op) {
  uint64_t mask = 0;
  for (size_t i = 0; i < op.signature.params.size(); ++i)
    if (op.signature.params[i].holds_tensors()) mask |= uint64_t{1} << i;
  return mask;
}

}  // namespace

Usage usage_of(const Program& program) {
  Usage usage;
  for (const auto& [name, value] : program.steps) collect_usage(value, usage);
  collect_usage(program.result, usage);
  return usage;
}

uint64_t params_mask(const Operator& op, const Gradient& gradient) {
  uint64_t mask = 0;
  for (const std::string& name : gradient.params)
    mask |= uint64_t{1} << op.signature.find_param(name);
  return mask;
}

GradientRule gradient_rule(const Operator& op, const Package& package) {
  GradientRule rule;
  const uint64_t tensors = tensor_mask(op);
  rule.arg_reads.resize(op.signature.params.size());
  rule.out_reads.resize(op.signature.params.size());
  for (const Gradient& gradient : op.gradients) {
    CheckedGradient checked{&gradient, check_gradient(op, gradient, package), {}};
    checked.usage = usage_of(checked.program);
    // Where several results feed one gradient, those without a gradient of their own count as
    // zeros, and their shape is taken from the result.
    if (checked.usage.gradients.size() > 1) {
      checked.usage.outputs.insert(checked.usage.gradients.begin(), checked.usage.gradients.end());
      rule.zeroed.insert(checked.usage.gradients.begin(), checked.usage.gradients.end());
    }
    rule.diff_args |= params_mask(op, gradient);
    rule.saves_args |= mask_of(checked.usage.arguments) & tensors;
    rule.shapes_args |= mask_of(checked.usage.shapes);
    rule.saves_outs |= mask_of(checked.usage.outputs);
    rule.gradients.push_back(std::move(checked));
  }
  for (const CheckedGradient& checked : rule.gradients) {
    // An argument of which this gradient reads the shape alone is replaced by a stand-in on the
    // meta device, also where another gradient reads its data.
    uint64_t reads = mask_of(checked.usage.arguments) & tensors;
    for (const std::string& name : checked.gradient->params) {
      auto index = static_cast<size_t>(op.signature.find_param(name));
      rule.arg_reads[index] = reads;
      rule.out_reads[index] = mask_of(checked.usage.outputs);
    }
  }
  return rule;
}

}  // namespace tenon::codegen
