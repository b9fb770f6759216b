// SPDX-License-Identifier: Apache-2.0
// Matrix products C = A B and C += A B for any strides of A and B.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

// Strides in elements; they may be negative or 0.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
};

// `batch` products; item i of A begins at a.data + a_offset(i), and so on.
struct BatchOffsets {
  // Axes of the batch, outermost first, with strides in elements for A, B and C.
  int count = 0;
  int64_t extent[32];
  int64_t a[32], b[32], c[32];
};

// C is m x n with dense rows, `c_row` elements apart. Instantiated for float, double and the
// unsigned integers (signed ones wrap to the same bits). Runs on the pool; packs into scratch
// memory of `ctx`.
template <class T>
tenon_status gemm(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c,
                  int64_t c_row, bool accumulate, const BatchOffsets& batch, tenon_err* err);

// The same on the calling thread and without packing, for a B in dense rows that have room for
// whole vectors past their end, and an A in dense rows. Instantiated for float and double.
template <class T>
void gemm_padded(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
                 int64_t b_row, T* c, int64_t c_row, bool accumulate);

// The product of 8-bit integers, L and R being int8_t or uint8_t, with sums in int32, which wrap.
template <class L, class R>
tenon_status gemm_bytes(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<L> a, Matrix<R> b,
                        int32_t* c, int64_t c_row, const BatchOffsets& batch, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
