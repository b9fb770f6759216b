// SPDX-License-Identifier: Apache-2.0
#include "load/shard.hpp"

#include <tenon/sharding_rule.hpp>

#include <map>

#include "expression/parser.hpp"
#include "model/dtype.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// How an expression depends on a set of parameters. Sums of parts of these may pass through where it is kLinear:
// f(a + b) = f(a) + f(b), which a constant beside them, as in `x + 1`, would spoil.
enum class Degree { kConstant, kLinear, kOther };
using Degrees = std::map<std::string, Degree>;

bool is_zero(const Node& node) {
  return (node.kind == NodeKind::Integer && node.integer == 0) ||
         (node.kind == NodeKind::Float && node.number == 0);
}

Degree degree_of(const Node& node, const Degrees& names) {
  const auto child = [&](size_t i) { return degree_of(node.children[i], names); };
  // Both branches of a sum or a choice; 0 is as linear as it is constant.
  const auto together = [&](size_t i, size_t k) {
    const Degree a = child(i), b = child(k);
    if (is_zero(node.children[i])) return b;
    if (is_zero(node.children[k]) || a == b) return a;
    return Degree::kOther;
  };
  switch (node.kind) {
    case NodeKind::Name: {
      const auto found = names.find(node.text);
      return found == names.end() ? Degree::kConstant : found->second;
    }
    case NodeKind::Unary:
      return node.text == "-" || child(0) == Degree::kConstant ? child(0) : Degree::kOther;
    case NodeKind::Binary:
      if (node.text == "+" || node.text == "-") return together(0, 1);
      if (node.text == "*") {
        const Degree a = child(0), b = child(1);
        if (a == Degree::kConstant) return b;
        return b == Degree::kConstant ? a : Degree::kOther;
      }
      if (node.text == "/" && child(1) == Degree::kConstant) return child(0);
      break;
    case NodeKind::Conditional:
      return child(0) == Degree::kConstant ? together(1, 2) : Degree::kOther;
    default:
      break;
  }
  for (size_t i = 0; i < node.children.size(); ++i)
    if (child(i) != Degree::kConstant) return Degree::kOther;
  return Degree::kConstant;
}

bool is_linear(const Operator& op, const std::vector<std::string>& set) {
  for (const ScalarCase& scalar : op.cases) {
    if (!(scalar.mask & ~bool_dtypes())) continue;  // nothing is a sum of truths
    Degrees names;
    for (const std::string& name : set) names[name] = Degree::kLinear;
    for (const Step& part : scalar.parts) names[part.name] = degree_of(part.expression, names);
    if (degree_of(scalar.expression, names) != Degree::kLinear) return false;
  }
  return !op.cases.empty() && op.dtypes.outs[0].rule != OutDtype::Bool;
}

// "; linear x y | x z", the sets of tensors in which the operator is linear together.
std::string linear_sets(const Operator& op) {
  std::vector<std::string> tensors;
  for (const Param& param : op.signature.params)
    if (param.is_tensor()) tensors.push_back(param.name);
  std::string text;
  for (uint32_t bits = 1; tensors.size() <= 5 && bits < 1u << tensors.size(); ++bits) {
    std::vector<std::string> set;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (bits >> i & 1) set.push_back(tensors[i]);
    if (is_linear(op, set)) text += cat(text.empty() ? "; linear " : " | ", join(set, " "));
  }
  return text;
}

std::string derived(const Operator& op) {
  if (op.is_elementwise() && !op.has_tag("random")) return "elementwise" + linear_sets(op);
  if (op.kind == OperatorKind::Reduction && op.reduction && op.rows == "axis") {
    const std::string combine = text_of(op.reduction->combine),
                      finish = text_of(op.reduction->finish), map = text_of(op.reduction->map);
    const std::string linear = map == "x" ? "; linear x" : "";
    if (combine == "(a + b)" && finish == "a") return "reduce sum" + linear;
    if (combine == "(a + b)" && finish == "(a / n)") return "reduce mean" + linear;
    if (combine == "max(a, b)" && finish == "a" && map == "x") return "reduce max";
    if (combine == "min(a, b)" && finish == "a" && map == "x") return "reduce min";
    return "rows axis";
  }
  if (op.has_tag("random") || op.data_dependent() || op.is_composite()) return "";
  if (op.rows.starts_with("last(")) return "rows " + op.rows;
  return op.rows.empty() ? "" : "rows " + op.rows;
}

void check(const Operator& op, const ShardingRule& rule) {
  const auto tensor = [&](const std::string& name) {
    const int index = op.signature.find_param(name);
    if (index < 0 || !(op.signature.params[static_cast<size_t>(index)].is_tensor() ||
                       op.signature.params[static_cast<size_t>(index)].kind == ParamKind::Tensors))
      throw std::invalid_argument(cat("expected a tensor parameter, got `", name, "`"));
  };
  for (const auto& set : rule.linear)
    for (const std::string& name : set) tensor(name);
  for (const std::string& name : rule.whole) tensor(name);
  for (const auto& contraction : rule.contractions)
    for (const std::string& name : contraction.added) tensor(name);
  if (!rule.condition.empty() && op.signature.find_param(rule.condition) < 0)
    throw std::invalid_argument(cat("expected a parameter in `if`, got `", rule.condition, "`"));
  if (rule.kind == ShardingRule::Kind::kRows && !rule.word.starts_with("last(") &&
      op.signature.find_param(rule.word) < 0)
    throw std::invalid_argument(
        cat("expected `rows` of a parameter or last(count), got `", rule.word, "`"));
  if (rule.kind != ShardingRule::Kind::kProduct) return;
  size_t tensors = 0;
  for (const Param& param : op.signature.params) tensors += param.is_tensor();
  if (rule.operands.size() != tensors || rule.results.size() != op.signature.results.size())
    throw std::invalid_argument(cat("expected axes of ", tensors, " tensors and ",
                                    op.signature.results.size(), " results, got ",
                                    rule.operands.size(), " and ", rule.results.size()));
}

}  // namespace

void read_shard(const YamlEntry& entry, Operator& op) {
  if (!entry.has("shard")) {
    if (std::string text = derived(op); !text.empty()) op.shard.push_back(text);
    return;
  }
  for (const auto& [text, where] : entry.scalars(entry.find("shard"), "shard")) {
    try {
      check(op, ShardingRule::parse(text));
    } catch (const std::invalid_argument& error) {
      throw Error(where, cat("`shard`: ", error.what()));
    }
    op.shard.push_back(text);
  }
}

}  // namespace tenon::codegen
