// SPDX-License-Identifier: Apache-2.0
// Passes in the order in which a caller names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// "dce,cse,rewrites=ulp,copies,views": names of passes, also of plugins' ones. Throws Error for one that is
// unknown. A line for each change of a rewrite or of a plugin's pass goes to `changes`. True: inputs may not lie in
// memory that the program writes (program/overlap.hpp).
bool run_passes(std::string_view names, Graph& graph, bool passes_gradients,
                std::vector<std::string>& changes);

}  // namespace tenon::graph
