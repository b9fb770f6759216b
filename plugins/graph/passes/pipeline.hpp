// SPDX-License-Identifier: Apache-2.0
// Passes: a program that does the same with less.
#pragma once

#include <string_view>

#include "ir/graph.hpp"

namespace tenon::graph {

// Drops steps whose results are not read. Random operators stay, so that all others draw what they
// would have drawn.
void eliminate_dead_code(Graph& graph);

// Steps that do the same with the same values become one. Where gradients may pass through the program,
// only steps that are not recorded for them: their sums would be rounded in another order.
void eliminate_common_subexpressions(Graph& graph, bool passes_gradients);

// Drops copies of values that are not used otherwise: the copy's users use the value itself.
// Gradients copy so while they are recorded, as the recording holds what they would take over.
void eliminate_copies(Graph& graph, bool passes_gradients);

// Makes views as soon as what they look at is there. They compute nothing, and would divide steps that can run together.
void hoist_views(Graph& graph);

// "dce,cse,rewrites=ulp,copies,views": names of passes, also of plugins' ones. Throws Error for one that is
// unknown. A line for each change of a rewrite or of a plugin's pass goes to `changes`. True: inputs may not lie in
// memory that the program writes (program/overlap.hpp).
bool run_passes(std::string_view names, Graph& graph, bool passes_gradients,
                std::vector<std::string>& changes);

}  // namespace tenon::graph
