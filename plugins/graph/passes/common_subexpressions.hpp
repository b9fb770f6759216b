// SPDX-License-Identifier: Apache-2.0
// The pass "cse": common subexpression elimination.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Steps that do the same with the same values become one. Where gradients may pass through the program,
// only steps that are not recorded for them: their sums would be rounded in another order.
void eliminate_common_subexpressions(Graph& graph, bool passes_gradients);

}  // namespace tenon::graph
