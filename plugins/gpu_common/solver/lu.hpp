// SPDX-License-Identifier: Apache-2.0
// Gaussian elimination of batches, in place.
#pragma once

#include "solver/matrices.hpp"

namespace gpu::solver {

struct Pivots {
  int* rows = nullptr;   // counted from 1, as many as the shorter extent of each matrix
  int* infos = nullptr;  // the first pivot of each matrix that is zero
};

// Factors matrices that are packed as those of `of`.
tenon_status factor(const SolverCall& call, const Batch& of, const Packed& packed, int m, int n,
                    Pivots* pivots);

// Solves for `b`, right-hand sides of a batch of shape `batch` and `count` matrices, to which the matrices `of` that were
// factored broadcast.
tenon_status solve_factored(const SolverCall& call, const Batch& of, const Packed& factors,
                            const Pivots& pivots, std::span<const int64_t> batch, int64_t count,
                            const Packed& b, int n, int64_t columns);

}  // namespace gpu::solver
