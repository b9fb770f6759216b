// SPDX-License-Identifier: Apache-2.0
#include "load/rows.hpp"

#include "expression/parser.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

bool names_axes(const Operator& op, const std::string& name, bool takes_lists) {
  const int index = op.signature.find_param(name);
  if (index < 0) return false;
  const ParamKind kind = op.signature.params[static_cast<size_t>(index)].kind;
  return kind == ParamKind::Int || (takes_lists && kind == ParamKind::Ints);
}

}  // namespace

void read_rows(const YamlEntry& entry, Operator& op) {
  if (!entry.has("rows")) {
    if (op.kind == OperatorKind::Reduction && names_axes(op, "axis", true)) op.rows = "axis";
    return;
  }
  const Location where = entry.where("rows");
  if (op.is_view() || op.is_elementwise() || op.has_tag("random") || op.data_dependent())
    throw Error(where,
                "`rows`: expected a reduction, kernel or composite whose shape does not depend on "
                "data and that draws no "
                "random numbers");
  op.rows = entry.text("rows");
  const Node node = parse_expression(op.rows, where, "rows");
  const bool counts =
      node.kind == NodeKind::Call && node.text == "last" && node.children.size() == 1;
  const Node& named = counts ? node.children[0] : node;
  const bool is_right = (counts && named.kind == NodeKind::Integer) ||
                        (named.kind == NodeKind::Name && names_axes(op, named.text, !counts));
  if (!is_right || op.signature.params.empty() || !op.signature.params[0].is_tensor())
    throw Error(where,
                cat("`rows`: expected a parameter of type int or int[] that names axes of the "
                    "first tensor, or "
                    "last(count) with a parameter or a number that counts them from the end, got `",
                    op.rows, "`"));
}

}  // namespace tenon::codegen
