// SPDX-License-Identifier: Apache-2.0
// `samples` in the notation of the conformance kit (conformance/operators/sample.hpp), which knows
// shapes and kinds of values: it chooses the dtypes. Samples of given numbers are left out.
#include <algorithm>
#include <optional>

#include "emit/emit.hpp"
#include "expression/parser.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using OptionalText = std::optional<std::string>;

// Extents, from argument `first` on, as "[3,4]".
std::string shape(const Node& call, size_t first) {
  std::vector<std::string> extents;
  for (size_t i = first; i < call.children.size(); ++i)
    if (call.keywords[i].empty()) extents.push_back(call.children[i].text);
  return cat("[", join(extents, ","), "]");
}

OptionalText number(const Node& node, bool is_float) {
  if (node.kind == NodeKind::Unary) {
    const OptionalText inner = number(node.children[0], is_float);
    return inner ? OptionalText("-" + *inner) : std::nullopt;
  }
  if (node.kind == NodeKind::Integer) return is_float ? node.text + ".0" : node.text;
  if (node.kind == NodeKind::Float) return node.text;
  return std::nullopt;
}

OptionalText tensor(const Node& node) {
  if (node.kind == NodeKind::Boolean) return node.text;
  if (node.kind != NodeKind::Call) return number(node, false);
  if (node.text == "normal") return "u" + shape(node, 0);
  if (node.text == "spread") return "s" + shape(node, 0);
  if (node.text == "booleans") return "b" + shape(node, 0);
  const bool starts_below_zero = node.children[0].kind == NodeKind::Unary;
  if (node.text == "uniform") return (starts_below_zero ? "u" : "x") + shape(node, 2);
  const bool plain = node.children[0].text == "0" && node.children[1].kind == NodeKind::Integer &&
                     node.keywords.back().empty();
  if (!plain) return std::nullopt;
  return cat("i", shape(node, 2), "<", node.children[1].text);
}

OptionalText list(const Node& node, const char* open, const char* separator, const char* close,
                  OptionalText (*item)(const Node&)) {
  std::vector<std::string> items;
  for (const Node& child : node.children) {
    const OptionalText text = item(child);
    if (!text) return std::nullopt;
    items.push_back(*text);
  }
  return cat(open, join(items, separator), close);
}

OptionalText argument(const Param& param, const Node& node) {
  if (node.kind == NodeKind::None) return "none";
  if (node.kind == NodeKind::Boolean) return node.boolean ? "true" : "false";
  if (node.kind == NodeKind::String) return cat("'", node.text, "'");
  if (param.kind == ParamKind::Tensors) return list(node, "{", " ", "}", tensor);
  if (param.kind == ParamKind::Tensor) return tensor(node);
  if (node.kind == NodeKind::List && param.kind == ParamKind::Ints)
    return list(node, "(", ",", ")", [](const Node& child) { return number(child, false); });
  const OptionalText text = number(node, param.kind == ParamKind::Float);
  return param.kind == ParamKind::Ints && text ? OptionalText("(" + *text + ")") : text;
}

Node parse_default(const std::string& text) {
  return parse_expression(text, Location{}, "default");
}

// A default in the same notation, for parameters between those given.
OptionalText default_of(const Param& param) {
  const std::string& text = param.default_text;
  if (param.kind == ParamKind::Bool || param.kind == ParamKind::Int || text == "none" ||
      param.kind == ParamKind::String)
    return text;
  if (param.kind == ParamKind::Float) return number(parse_default(text), true);
  return std::nullopt;
}

bool creates_tensors(const Operator& op) {
  const auto& params = op.signature.params;
  return std::none_of(params.begin(), params.end(),
                      [](const Param& param) { return param.holds_tensors(); });
}

OptionalText line(const Operator& op, const Sample& sample) {
  const std::vector<Param>& params = op.signature.params;
  std::vector<OptionalText> arguments(params.size());
  size_t count = 0;
  for (size_t i = 0; i < sample.call.children.size(); ++i) {
    const std::string& keyword = sample.call.keywords[i];
    const size_t index =
        keyword.empty() ? i : static_cast<size_t>(op.signature.find_param(keyword));
    arguments[index] = params[index].kind == ParamKind::Dtype
                           ? OptionalText("T")
                           : argument(params[index], sample.call.children[i]);
    if (!arguments[index]) return std::nullopt;
    count = std::max(count, index + 1);
  }
  // New tensors are made of the dtype and on the device under test.
  for (size_t i = 0; creates_tensors(op) && i < params.size(); ++i) {
    if (params[i].kind != ParamKind::Dtype && params[i].kind != ParamKind::Device) continue;
    arguments[i] = params[i].kind == ParamKind::Dtype ? "T" : "D";
    count = std::max(count, i + 1);
  }
  std::string text = op.name_space == "tenon" ? op.name : op.qualified_name();
  for (size_t i = 0; i < count; ++i) {
    const OptionalText part = arguments[i] ? arguments[i] : default_of(params[i]);
    if (!part) return std::nullopt;
    text += " " + *part;
  }
  return text;
}

// Which of the kit's two kinds of numbers suit an elementwise operator: "x" is 0.25 to 2.25, "u" is
// -0.95 to 0.95.
std::string kinds_of_numbers(const Operator& op) {
  const auto all = [&](auto good) {
    return std::all_of(op.domain.begin(), op.domain.end(),
                       [&](const auto& each) { return good(each.second); });
  };
  std::string kinds;
  if (all([](const Range& range) { return range.high > 1; })) kinds += "x";
  if (all([](const Range& range) { return range.low < 0; })) kinds += "u";
  return kinds.empty() ? "x" : kinds;
}

}  // namespace

// The kit makes the samples of elementwise operators itself, from their definition and their domain.
std::vector<OutputFile> emit_conformance_samples(const Package& package, const EmitOptions&) {
  std::string samples = generated_line(package.files), domains = samples;
  for (const Operator* op : package.emitted) {
    if (op->is_elementwise() && !op->domain.empty())
      domains += cat("{", quoted(op->name), ", ", quoted(kinds_of_numbers(*op)), "},\n");
    for (const Sample& sample : op->samples) {
      if (op->is_elementwise() && sample.is_made) continue;
      if (const OptionalText each = line(*op, sample)) samples += quoted(*each) + ",\n";
    }
  }
  return {{"conformance/samples.inc", samples}, {"conformance/domains.inc", domains}};
}

}  // namespace tenon::codegen
