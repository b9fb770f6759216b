// SPDX-License-Identifier: Apache-2.0
// The pass "recompute=BYTES": less memory for more work.
//
// A training step keeps results of its forward pass until its backward pass reads them. Where the results that live
// at once take more than a budget, some of them are dropped and made again before they are read. This is
// rematerialization as compilers do it (Briggs, Cooper and Torczon, 1992; for networks Chen et al., 2016,
// arXiv:1604.06174), on the program's own order of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// Steps that are made again are the same operators with the same operands, so that results keep their bits. A line about
// it, and about a budget that cannot be met, goes to `changes`. True: the result is right only where inputs do not lie in
// memory that the program writes (program/overlap.hpp).
bool rematerialize(Graph& graph, int64_t budget, std::vector<std::string>& changes);

}  // namespace tenon::graph
