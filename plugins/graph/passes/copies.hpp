// SPDX-License-Identifier: Apache-2.0
// The pass "copies".
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Drops copies of values that are not used otherwise: the copy's users use the value itself.
// Gradients copy so while they are recorded, as the recording holds what they would take over.
void eliminate_copies(Graph& graph, bool passes_gradients);

}  // namespace tenon::graph
