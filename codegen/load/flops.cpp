// SPDX-License-Identifier: Apache-2.0
#include "load/flops.hpp"

#include "expression/parser.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

bool is_tensor_of(const Operator& op, const std::string& name) {
  const int param = op.signature.find_param(name);
  return (param >= 0 && op.signature.params[static_cast<size_t>(param)].is_tensor()) ||
         op.signature.find_result(name) >= 0;
}

bool is_axis(const Node& node) {
  return node.kind == NodeKind::Integer ||
         (node.kind == NodeKind::Unary && node.text == "-" && is_axis(node.children[0]));
}

void check(const Operator& op, const Location& where, const Node& node) {
  const auto fail = [&](const std::string& text) {
    throw Error(where, cat("`flops`: ", text, ", got `", text_of(node), "`"));
  };
  switch (node.kind) {
    case NodeKind::Integer:
      return;
    case NodeKind::Binary:
      if (node.text != "+" && node.text != "-" && node.text != "*" && node.text != "//")
        fail("expected the signs + - * //");
      for (const Node& child : node.children) check(op, where, child);
      return;
    case NodeKind::Call: {
      const bool is_numel = node.text == "numel", is_given = node.text == "given";
      const size_t count = is_numel || is_given ? 1 : 2;
      if (!is_numel && !is_given && node.text != "size")
        fail("expected numel(tensor), size(tensor, axis) or given(tensor)");
      if (node.children.size() != count || node.children[0].kind != NodeKind::Name ||
          !is_tensor_of(op, node.children[0].text) || (count == 2 && !is_axis(node.children[1])))
        fail(cat("expected ", node.text, count == 1 ? "(tensor)" : "(tensor, axis)",
                 " of a parameter or a result of ", op.name, op.signature.canonical()));
      return;
    }
    default:
      fail("expected whole numbers, signs, numel(), size() and given()");
  }
}

}  // namespace

void read_flops(const YamlEntry& entry, Operator& op) {
  if (!entry.has("flops")) return;
  const Location where = entry.where("flops");
  if (op.is_composite() || op.is_view())
    throw Error(where, op.is_view()
                           ? "`flops`: a view computes nothing; leave it out"
                           : "`flops`: the parts of a composite are counted; leave it out");
  op.flops = entry.text("flops");
  if (op.flops != "unknown") check(op, where, parse_expression(op.flops, where, "flops"));
}

}  // namespace tenon::codegen
