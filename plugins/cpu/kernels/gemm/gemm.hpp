// SPDX-License-Identifier: Apache-2.0
// GEMM: C = A B and C += A B for any strides of A and B.
#pragma once

#include "simd/isa.hpp"

#include <tenon/abi.h>

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

// Strides count elements and may be negative or 0.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;

  Matrix transposed() const { return {data, column, row}; }
};

// A batch of products; item i of A begins at a.data plus the offset that the index of i along the
// batch axes gives, and likewise for B and C.
struct BatchOffsets {
  // Axes of the batch, outermost first, with strides in elements for A, B and C.
  int count = 0;
  int64_t extent[32];
  int64_t a[32], b[32], c[32];

  // Those of the transposed product, C^T = B^T A^T.
  BatchOffsets transposed() const {
    BatchOffsets result;
    result.count = count;
    for (int i = 0; i < count; ++i) {
      result.extent[i] = extent[i];
      result.a[i] = b[i];
      result.b[i] = a[i];
      result.c[i] = c[i];
    }
    return result;
  }
};

// What a product is added to as it is stored: dense rows, `row` elements apart. One row serves all
// rows of C if `row` is 0.
template <class T>
struct Addend {
  const T* data = nullptr;  // NULL: nothing, or C itself where a product accumulates
  int64_t row = 0;
};

// C is m x n; its rows are dense and `c_row` elements apart. Instantiated for float, double and the
// unsigned integers (signed integers wrap to the same bits). Runs on the thread pool and packs into
// scratch memory of `ctx`.
template <class T>
tenon_status gemm(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c,
                  int64_t c_row, bool accumulate, const BatchOffsets& batch, tenon_err* err);

// C = A B + `bias`, which has an element for each column of C. C has several columns.
template <class T>
tenon_status gemm_with_bias(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a,
                            Matrix<T> b, const T* bias, T* c, int64_t c_row,
                            const BatchOffsets& batch, tenon_err* err);

// C = A B plus `addend` on the calling thread and without packing. B has dense rows with room for
// whole vectors past their end, and A has dense rows. Instantiated for float and double.
template <class T>
void gemm_padded(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
                 int64_t b_row, T* c, int64_t c_row, Addend<T> addend);

// GEMM of 8-bit integers: L and R are int8_t or uint8_t. Accumulators are int32 and wrap.
template <class L, class R>
tenon_status gemm_int8(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<L> a, Matrix<R> b,
                       int32_t* c, int64_t c_row, const BatchOffsets& batch, tenon_err* err);

}  // namespace tenon::cpu::TENON_CPU_ISA
