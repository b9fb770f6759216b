// SPDX-License-Identifier: Apache-2.0
// Steps as the service's callers see them.
#pragma once

#include <tenon/services/graph.h>

#include <functional>

#include "ir/graph.hpp"

namespace tenon::graph {

// Texts are the step's. `struct_size` is left 0.
tenon_graph_step describe_step(const Graph& graph, const Step& step, int32_t depth = 0);
// `visit` for each step in order, those of regions behind the step that they belong to.
void for_each_step(const Graph& graph, const std::function<void(const tenon_graph_step&)>& visit,
                   int32_t depth = 0);

}  // namespace tenon::graph
