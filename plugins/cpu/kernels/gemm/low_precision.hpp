// SPDX-License-Identifier: Apache-2.0
// Matrix products of float16 and bfloat16.
#pragma once

#include "gemm/gemm.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Does the processor have dot products of bfloat16, and the build AVX-512?
bool has_bfloat16_products();
// And may they go by tiles (amx.hpp)?
bool has_bfloat16_tiles();

// gemm of Float16 and BFloat16, converted as they are read or, where the processor has dot products
// of bfloat16, multiplied by these. Sums are float32, rounded once.
template <class Half>
tenon_status gemm_halves(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<Half> a,
                         Matrix<Half> b, Half* c, int64_t c_row, bool accumulate,
                         const BatchOffsets& batch, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
