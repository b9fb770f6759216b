// SPDX-License-Identifier: Apache-2.0
// Names of a program's inputs and results.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// Does the program name an input or a result?
bool has_names(const Graph& graph);
// Those of all, "input_0" and "output_0" for what has none.
std::vector<std::string> input_names(const Graph& graph);
std::vector<std::string> result_names(const Graph& graph);

// Throws Error where two inputs or two results have one name, or a name is no text.
void check_names(const Graph& graph);

}  // namespace tenon::graph
