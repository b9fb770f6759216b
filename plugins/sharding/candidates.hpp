// SPDX-License-Identifier: Apache-2.0
// What rules allow for one call along one axis of the mesh.
#pragma once

#include <tenon/sharding_rule.hpp>

#include <optional>

#include "sharded.hpp"

namespace tenon::sharding {

// A tensor among the arguments, or an element of a list there.
struct Operand {
  uint32_t param;
  int32_t element;  // -1: the argument itself
  tenon_tensor* tensor;
  View view;
};

// The rules of an operator, read once.
const std::vector<ShardingRule>& rules_of(const tenon_op* op);

tenon_status set_rules(const tenon_op* op, const char* lines, tenon_err* err);

struct Call {
  const tenon_op* op;
  const tenon_op_def& def;
  const tenon_value* args;
  uint32_t nargs;
  std::vector<Operand> operands;
  std::vector<tenon_meta> results;  // of the whole; empty: they depend on the data
  const Mesh* mesh = nullptr;

  const char* name() const;
  int32_t find_param(std::string_view name) const;
  // The numbers of an int or int[] argument; nothing: it is none.
  std::optional<std::vector<int64_t>> numbers(int32_t param) const;
};

// Placements of the operands, and of the results that follow.
struct Candidate {
  std::vector<Placement> operands, results;
  bool cuts_mean = false;  // an axis is cut over which the operator takes the mean
};

// All that the rules of the operator allow along axis `a` of the mesh, where axes before it have got `chosen`. The first one is
// the whole on every rank. `has_rule`: whether there is any rule for the call.
std::vector<Candidate> candidates(const Call& call, uint32_t a,
                                  const std::vector<Candidate>& chosen, bool& has_rule);

}  // namespace tenon::sharding
