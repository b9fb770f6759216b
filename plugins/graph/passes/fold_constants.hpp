// SPDX-License-Identifier: Apache-2.0
// The pass "fold": constant folding.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Steps whose tensors are all constants are done now; what others read of their results becomes
// constants. Views stay, as they cost nothing, and so does what would be much larger than what it
// is made of. With `folds_fills`, what is made of nothing (full, arange) becomes a constant, too: for
// programs whose sizes do not change.
void fold_constants(Graph& graph, bool folds_fills, std::vector<std::string>& changes);

}  // namespace tenon::graph
