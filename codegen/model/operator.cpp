// SPDX-License-Identifier: Apache-2.0
#include "model/operator.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace tenon::codegen {

const char* yaml_name(Amp amp) {
  constexpr const char* kNames[] = {"keep", "low", "high", "widest"};
  return kNames[static_cast<int>(amp)];
}

const char* yaml_name(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::Elementwise:
      return "elementwise";
    case OperatorKind::Reduction:
      return "reduction";
    case OperatorKind::View:
      return "view";
    case OperatorKind::Kernel:
      return "kernel";
    case OperatorKind::Composite:
      return "composite";
  }
  return "";
}

bool DtypeRules::is_promoted(const std::string& name) const {
  return std::find(promoted.begin(), promoted.end(), name) != promoted.end();
}

bool Operator::uses_broadcast_rule() const {
  if (!is_elementwise() || !shape || signature.results.size() != 1) return false;
  if (shape->kind != ShapeRule::Broadcast && shape->kind != ShapeRule::Same) return false;
  // The host's rule looks at promoted tensors only; others need their dtype checked.
  size_t tensors = 0;
  for (const Param& param : signature.params) {
    if (param.kind == ParamKind::Tensors) return false;
    if (!param.is_tensor()) continue;
    ++tensors;
    if (dtypes.checked.count(param.name)) return false;
  }
  if (tensors == 0 || tensors != shape->params.size()) return false;
  if (dtypes.compute == Compute::Output) return false;
  OutDtype::Rule out = dtypes.outs[0].rule;
  return out == OutDtype::Same || out == OutDtype::Bool || out == OutDtype::Real;
}

InteriorRule Operator::interior_rule() const {
  InteriorRule rule;
  for (size_t i = 0; i < signature.params.size(); ++i)
    if (signature.params[i].is_tensor() && !dtypes.checked.count(signature.params[i].name))
      rule.tensors |= uint64_t{1} << i;
  for (size_t i = 0; i < signature.results.size(); ++i)
    if (dtypes.outs[i].rule == OutDtype::Same || dtypes.outs[i].rule == OutDtype::Real)
      rule.rounded |= uint64_t{1} << i;  // of floats the real dtype is their own
  // Without a shape rule there is no kernel, and the parts decide on the dtype: they promote.
  rule.first = shape.has_value() && dtypes.compute == Compute::First;
  rule.stays_wide = is_composite() && amp == Amp::High;
  rule.takes_floats = dtypes.compute == Compute::PromoteFloat;
  return rule;
}

bool Operator::has_in_place_form() const {
  if (!has_out_form() || signature.results.size() != 1 || signature.params.empty()) return false;
  if (!signature.params[0].is_tensor() || signature.params[0].optional) return false;
  if (dtypes.checked.count(signature.params[0].name))
    return false;  // a mask cannot hold the result
  if (is_elementwise() || has_tag("convert") || !in_place.empty()) return true;
  return shape && shape->kind == ShapeRule::Same && shape->params[0] == signature.params[0].name &&
         dtypes.outs[0].rule == OutDtype::Same && !has_tag("materialize");
}

std::string Operator::summary() const {
  std::string first_line = trimmed(doc.substr(0, doc.find("\n\n")));
  std::replace(first_line.begin(), first_line.end(), '\n', ' ');
  size_t end = first_line.find(". ");
  return end == std::string::npos ? first_line : first_line.substr(0, end + 1);
}

const Operator* Package::add(std::unique_ptr<Operator> op, bool emit) {
  auto [entry, inserted] = by_name_.emplace(op->qualified_name(), op.get());
  if (!inserted) return entry->second;
  if (emit) emitted.push_back(op.get());
  operators.push_back(std::move(op));
  return nullptr;
}

const Operator* Package::find(const std::string& name, const std::string& own) const {
  auto lookup = [&](const std::string& qualified) {
    auto entry = by_name_.find(qualified);
    return entry == by_name_.end() ? nullptr : entry->second;
  };
  if (name.find("::") != std::string::npos) return lookup(name);
  if (const Operator* op = lookup(own + "::" + name)) return op;
  return lookup("tenon::" + name);
}

std::vector<std::string> Package::operator_names() const {
  std::vector<std::string> names;
  for (const auto& op : operators) names.push_back(op->name);
  return names;
}

std::vector<const Operator*> Package::in_file(const std::string& file) const {
  std::vector<const Operator*> result;
  for (const Operator* op : emitted)
    if (op->file == file) result.push_back(op);
  return result;
}

}  // namespace tenon::codegen
