// SPDX-License-Identifier: Apache-2.0
// What every program satisfies before it may run, wherever it came from.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Throws Error: which step is wrong, what was expected and what was found. Afterwards running the
// program cannot read a value that is not there, or give an operator an argument of a wrong kind.
void verify(const Graph& graph);

}  // namespace tenon::graph
