// SPDX-License-Identifier: Apache-2.0
#include "emit/definition.hpp"

#include <tenon/abi.h>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

#define NAMED(constant) \
  NamedBit { constant, #constant }

bool broadcasts(const Operator& op, const Param& param) {
  if (!param.is_tensor() || !op.shape || op.shape->kind != ShapeRule::Broadcast)
    return param.is_tensor() && op.uses_broadcast_rule();
  for (const std::string& name : op.shape->params)
    if (name == param.name) return true;
  return false;
}

}  // namespace

uint32_t bits_of(const std::vector<NamedBit>& flags) {
  uint32_t bits = 0;
  for (const NamedBit& flag : flags) bits |= flag.bit;
  return bits;
}

std::vector<NamedBit> op_flags(const Operator& op, bool to_primitives) {
  std::vector<NamedBit> flags;
  if (op.is_view()) flags.push_back(NAMED(TENON_OP_VIEW));
  if (op.data_dependent()) flags.push_back(NAMED(TENON_OP_DATA_DEPENDENT));
  if (op.may_alias()) flags.push_back(NAMED(TENON_OP_ELEMENTWISE));
  if (op.is_composite()) flags.push_back(NAMED(TENON_OP_COMPOSITE));
  if (op.has_tag("random")) flags.push_back(NAMED(TENON_OP_RANDOM));
  if (op.has_tag("convert")) flags.push_back(NAMED(TENON_OP_CONVERT));
  if (op.has_tag("materialize")) flags.push_back(NAMED(TENON_OP_MATERIALIZE));
  if (op.has_tag("primitive")) flags.push_back(NAMED(TENON_OP_PRIMITIVE));
  if (op.has_tag("to_primitives") || to_primitives) flags.push_back(NAMED(TENON_OP_TO_PRIMITIVES));
  if (op.has_tag("strided")) flags.push_back(NAMED(TENON_OP_STRIDED));
  if (op.signature.list_result()) flags.push_back(NAMED(TENON_OP_LIST_OUTPUT));
  if (op.never_differentiable) flags.push_back(NAMED(TENON_OP_NO_GRAD));
  if (!op.is_public()) flags.push_back(NAMED(TENON_OP_INTERNAL));
  bool takes_tensor = !op.signature.params.empty() && op.signature.params[0].is_tensor();
  if (takes_tensor && !op.method) flags.push_back(NAMED(TENON_OP_NO_METHOD));
  if (op.amp == Amp::Low) flags.push_back(NAMED(TENON_OP_AMP_LOW));
  if (op.amp == Amp::High) flags.push_back(NAMED(TENON_OP_AMP_HIGH));
  if (op.amp == Amp::Widest) flags.push_back(NAMED(TENON_OP_AMP_WIDEST));
  return flags;
}

std::vector<NamedBit> param_flags(const Operator& op, const Param& param) {
  std::vector<NamedBit> flags;
  if (param.optional) flags.push_back(NAMED(TENON_PARAM_FLAG_OPTIONAL));
  if (param.default_value) flags.push_back(NAMED(TENON_PARAM_FLAG_HAS_DEFAULT));
  if (param.keyword_only) flags.push_back(NAMED(TENON_PARAM_FLAG_KEYWORD_ONLY));
  if (op.dtypes.is_promoted(param.name)) flags.push_back(NAMED(TENON_PARAM_FLAG_PROMOTE));
  if (broadcasts(op, param)) flags.push_back(NAMED(TENON_PARAM_FLAG_BROADCAST));
  return flags;
}

NamedBit out_rule(const Operator& op) {
  if (!op.uses_broadcast_rule()) return NAMED(TENON_OUT_COMPUTE);
  switch (op.dtypes.outs[0].rule) {
    case OutDtype::Bool:
      return NAMED(TENON_OUT_BOOL);
    case OutDtype::Real:
      return NAMED(TENON_OUT_REAL);
    default:
      return NAMED(TENON_OUT_COMPUTE);
  }
}

std::string traits_text(const Operator& op) {
  std::string text;
  if (!op.flops.empty()) text += cat("flops: ", op.flops, "\n");
  if (!op.rows.empty()) text += cat("rows: ", op.rows, "\n");
  // Elementwise operators say it by their flag.
  if (op.has_in_place_form() && !op.may_alias() && !op.has_tag("convert"))
    text += cat("in_place: ", op.in_place.empty() ? kByCopy : op.in_place, "\n");
  for (const std::string& line : op.shard) text += cat("shard: ", line, "\n");
  for (const std::string& line : op.earlier) text += cat("earlier: ", line, "\n");
  for (const OnnxLine& line : op.onnx)
    text += cat("onnx: ", line.name, " ", line.since, line.is_native ? " native " : " import ",
                line.text, "\n");
  return text;
}

}  // namespace tenon::codegen
