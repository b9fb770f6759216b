// SPDX-License-Identifier: Apache-2.0
#include "load/in_place.hpp"

#include "support/text.hpp"

namespace tenon::codegen {

void read_in_place(const YamlEntry& entry, Operator& op) {
  if (!entry.has("in_place")) return;
  const Location where = entry.where("in_place");
  op.in_place = entry.text("in_place");
  const std::vector<Param>& params = op.signature.params;
  const bool has_first =
      !params.empty() && params[0].kind == ParamKind::Tensor && !params[0].optional;
  if (!has_first || (op.in_place != params[0].name && op.in_place != kByCopy))
    throw Error(where, cat("`in_place`: expected the first parameter, a Tensor, or ", kByCopy,
                           ", got `", op.in_place, "`"));
  if (op.is_elementwise())
    throw Error(where, "`in_place`: an elementwise operator has an in-place form; leave it out");
  // The sums of a narrow integer are wide ones, which are cut to it as its own arithmetic cuts them.
  const OutDtype::Rule rule = op.dtypes.outs[0].rule;
  const bool is_cut = op.in_place == kByCopy && rule == OutDtype::Accumulate;
  if (!op.has_out_form() || op.signature.results.size() != 1 || (rule != OutDtype::Same && !is_cut))
    throw Error(where,
                "`in_place`: expected one result of the compute dtype, of a shape that does not "
                "depend on data, and no view");
}

}  // namespace tenon::codegen
