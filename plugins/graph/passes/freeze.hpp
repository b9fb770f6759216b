// SPDX-License-Identifier: Apache-2.0
// Programs for inference: weights are data of the program, and what follows from them is computed once.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// Tensors from outside become constants: copies, which later changes of the tensors do not reach. Throws Error
// (TENON_FAILED_PRECONDITION) where the program writes into one, sets its .grad or returns its memory.
void freeze_leaves(Graph& graph);

// Steps whose tensors are all constants are done now; what others read of their results becomes constants.
// Views stay, as they cost nothing, and so does what would be much larger than what it is made of.
void fold_constants(Graph& graph, std::vector<std::string>& changes);

// A normalisation by constants (batch_norm_inference) of what conv2d or linear makes becomes
// part of that one's weights, which are constants, too (Jacob et al., "Quantization and Training of Neural
// Networks for Efficient Integer-Arithmetic-Only Inference", 2018, section 3.2). Sums are rounded in another order.
void fold_batch_norms(Graph& graph, std::vector<std::string>& changes);

}  // namespace tenon::graph
