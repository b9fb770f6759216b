// SPDX-License-Identifier: Apache-2.0
// The pass "dce": dead code elimination.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Drops steps whose results are not read. Random operators stay, so that all others draw what they
// would have drawn.
void eliminate_dead_code(Graph& graph);

}  // namespace tenon::graph
