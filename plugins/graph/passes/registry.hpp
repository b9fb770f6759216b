// SPDX-License-Identifier: Apache-2.0
// Passes that plugins add.
#pragma once

#include <tenon/services/graph.h>

#include <string_view>

#include "ir/graph.hpp"

namespace tenon::graph {

// Throws Error if the name is none, or taken.
void add_pass(const tenon_graph_pass& pass);
// Throws Error if there is none of that name.
void remove_pass(std::string_view name);
bool has_pass(std::string_view name);
// Runs it. What it leaves is verified; where it fails or leaves what is no program, throws Error.
void run_pass(std::string_view name, Graph& graph);
// "a, b", for messages.
std::string pass_names();

}  // namespace tenon::graph
