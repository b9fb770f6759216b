// SPDX-License-Identifier: Apache-2.0
// The pass "freeze": programs for inference, whose weights are data of the program.
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// Tensors from outside become constants: copies, which later changes of the tensors do not reach.
// Throws Error (TENON_FAILED_PRECONDITION) where the program writes into one, sets its .grad or
// returns its memory.
void freeze_leaves(Graph& graph);

// The same without copies, and without refusals: tensors from outside that the program neither
// writes nor returns become constants where they lie. For owners of a program who let no other
// code write its tensors.
void share_leaves(Graph& graph);

}  // namespace tenon::graph
