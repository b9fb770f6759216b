// SPDX-License-Identifier: Apache-2.0
// gemm() for executables, with work around each tile of C.
#pragma once

#include "gemm/gemm.hpp"
#include "run_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// What is done around the product of a tile of C, by the thread that computes it. The tile begins
// `at` elements behind C's first one.
struct TileHooks {
  void* user;
  void (*before)(void* user, int64_t at, int64_t rows, int64_t columns);
  void (*after)(void* user, int64_t at, int64_t rows, int64_t columns);
};

// gemm<float>() with the same bits, in tiles that the L2 cache holds. C has several columns.
tenon_status gemm_in_tiles(RunMemory* memory, int64_t m, int64_t n, int64_t k, Matrix<float> a,
                           Matrix<float> b, float* c, int64_t c_row, bool accumulate,
                           const BatchOffsets& batch, const TileHooks& hooks, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
