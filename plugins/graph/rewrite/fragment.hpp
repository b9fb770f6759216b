// SPDX-License-Identifier: Apache-2.0
// One side of a rewrite with its variables known: steps that could stand in a program.
#pragma once

#include "rewrite/rule.hpp"

namespace tenon::graph {

struct Fragment {
  std::vector<Step> steps;
  Operand result;  // a value: of a step, or the one that a variable stands for

  // `variables`: what each stands for, values or attributes. Results of steps are values from `next` on.
  // Throws Error where a number does not fit its parameter.
  static Fragment of(const Expression& expression, const std::vector<Operand>& variables,
                     ValueId next);
  // Calls the operators for real, without history for gradients. `tensors`, by value, holds what the steps
  // read, and receives the results. Throws Error if one fails.
  void run(std::vector<Tensor>& tensors) const;
  // Of the results, values of `graph` from its next one on, as the operators' own rules say them of tensors
  // without memory. Throws Error where an operator does not take such operands.
  std::vector<Type> types(const Graph& graph, tenon_device_id device) const;
};

// What a call that could stand in `graph` makes, by the operator's own rule. Throws Error as Fragment::types does.
std::vector<Type> inferred_types(const Graph& graph, Step call);

}  // namespace tenon::graph
