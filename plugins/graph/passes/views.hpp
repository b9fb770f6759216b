// SPDX-License-Identifier: Apache-2.0
// The pass "views".
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Makes views as soon as what they look at is there. They compute nothing, and would divide steps that can run together.
void hoist_views(Graph& graph);

}  // namespace tenon::graph
