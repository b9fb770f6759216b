// SPDX-License-Identifier: Apache-2.0
// In which order a GEMM adds up, for code that has to give the same bits in another layout.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

// Whether each element of C = A B, of m x k and k x n floats in rows, is one chain of fused
// multiply-adds from zero on, along k.
bool adds_in_one_chain(int64_t m, int64_t n, int64_t k);

// The same for products by im2col, which are blocked whatever their size.
bool adds_im2col_in_one_chain(int64_t k);

}  // namespace tenon::cpu::TENON_CPU_ISA
