// SPDX-License-Identifier: Apache-2.0
// Matrix products C = A B and C += A B for any strides of A and B.
#pragma once

#include "isa.hpp"

#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

// Strides in elements; they may be negative or 0.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
};

// C is m x n with dense rows, `c_row` elements apart. Instantiated for float, double and the unsigned
// integers (signed ones wrap to the same bits). gemm_serial stays on the calling thread.
template <class T>
void gemm_serial(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                 bool accumulate);

// `batch` products; item i of A begins at a.data + a_offset(i), and so on. Runs on the pool.
struct BatchOffsets {
  // Axes of the batch, outermost first, with strides in elements for A, B and C.
  int count = 0;
  int64_t extent[32];
  int64_t a[32], b[32], c[32];
};
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
          bool accumulate, const BatchOffsets& batch = {});

}  // namespace tenon::cpu::TENON_CPU_ISA
