// SPDX-License-Identifier: Apache-2.0
#include "region.hpp"

#include <string>

namespace tenon::amp {

uint32_t class_in_definition(const tenon_op* op) {
  const uint32_t flags = host->op_def(op)->flags;
  if (flags & TENON_OP_AMP_LOW) return TENON_AMP_LOW;
  if (flags & TENON_OP_AMP_HIGH) return TENON_AMP_HIGH;
  return flags & TENON_OP_AMP_WIDEST ? TENON_AMP_WIDEST : TENON_AMP_KEEP;
}

Region::Region(const tenon_amp_options& options)
    : dtype_(options.dtype),
      lowers_widest_(options.level == 2),
      moves_(options.moves, options.moves + options.nmoves) {}

uint32_t Region::class_of(const tenon_op* op) const {
  for (const tenon_amp_move& move : moves_)
    if (move.op == op) return move.to;
  const uint32_t said = class_in_definition(op);
  return said == TENON_AMP_WIDEST && lowers_widest_ ? uint32_t{TENON_AMP_LOW} : said;
}

tenon_status check_options(const tenon_amp_options& options, tenon_err* err) {
  if (options.struct_size < sizeof options)
    return fail(err, TENON_INVALID_ARGUMENT,
                "amp: expected struct_size " + std::to_string(sizeof options) + ", got " +
                    std::to_string(options.struct_size));
  if (options.dtype != TENON_DTYPE_F16 && options.dtype != TENON_DTYPE_BF16) {
    const char* name = host->dtype_name(options.dtype);
    return fail(err, TENON_INVALID_ARGUMENT,
                "amp: expected dtype float16 or bfloat16, got " +
                    (name ? std::string(name) : std::to_string(options.dtype)));
  }
  if (options.level != 1 && options.level != 2)
    return fail(err, TENON_INVALID_ARGUMENT,
                "amp: expected level 1 or 2, got " + std::to_string(options.level));
  for (uint32_t i = 0; i < options.nmoves; ++i) {
    const tenon_op_def* def = options.moves[i].op ? host->op_def(options.moves[i].op) : nullptr;
    if (!def) return fail(err, TENON_NOT_FOUND, "amp: an operator that was moved is not defined");
    const std::string name =
        "amp: expected operators that can be moved, got `" + std::string(def->name) + "`, ";
    if (def->flags & TENON_OP_COMPOSITE)
      return fail(err, TENON_INVALID_ARGUMENT,
                  name +
                      "which is made of others, and they are cast one by one: move those, or "
                      "call it in a region of its own in which nothing is cast");
    if (def->flags & TENON_OP_VIEW)
      return fail(err, TENON_INVALID_ARGUMENT,
                  name + "a view, which shares memory and cannot be cast");
    if (options.moves[i].to != TENON_AMP_LOW && options.moves[i].to != TENON_AMP_HIGH)
      return fail(err, TENON_INVALID_ARGUMENT,
                  name + "moved to class " + std::to_string(options.moves[i].to) +
                      "; expected TENON_AMP_LOW or TENON_AMP_HIGH");
  }
  return TENON_OK;
}

}  // namespace tenon::amp
