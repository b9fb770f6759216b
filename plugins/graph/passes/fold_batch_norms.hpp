// SPDX-License-Identifier: Apache-2.0
// The pass "batch_norms".
#pragma once

#include "ir/graph.hpp"

namespace tenon::graph {

// A normalisation by constants (batch_norm_inference) of what conv2d or linear makes becomes
// part of that one's weights, which are constants, too (Jacob et al., "Quantization and Training of Neural
// Networks for Efficient Integer-Arithmetic-Only Inference", 2018, section 3.2). Sums are rounded in another order.
void fold_batch_norms(Graph& graph, std::vector<std::string>& changes);

}  // namespace tenon::graph
