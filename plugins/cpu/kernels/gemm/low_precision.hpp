// SPDX-License-Identifier: Apache-2.0
// GEMM of float16 and bfloat16.
#pragma once

#include "gemm/gemm.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// True if the processor has AVX512-BF16 and the build has AVX-512.
bool has_avx512_bf16();
// True if AMX may multiply bfloat16 (amx.hpp).
bool has_amx_bf16();

// GEMM of Float16 and BFloat16. Elements are converted to float32 as they are read, or multiplied
// by AVX512-BF16 or AMX where the processor has them. Accumulators are float32 and are rounded
// once.
template <class T16>
tenon_status gemm_low_precision(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T16> a,
                                Matrix<T16> b, T16* c, int64_t c_row, bool accumulate,
                                const BatchOffsets& batch, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
