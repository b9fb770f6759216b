// SPDX-License-Identifier: Apache-2.0
#include "gemm/gemm.hpp"

#include "gemm/parallel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
tenon_status gemm(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c,
                  int64_t c_row, bool accumulate, const BatchOffsets& batch, tenon_err* err) {
  return multiply_parallel<Plain<T>>(ctx, m, n, k, a, b, c, c_row, accumulate, batch, err);
}

template <class T>
void gemm_padded(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
                 int64_t b_row, T* c, int64_t c_row, bool accumulate) {
  for (int64_t j = 0; j < n; j += kNR<T>) {
    run_tile<Plain<T>>(m, std::min(kNR<T>, n - j), k, a, a_row, 1, b + j, b_row,
                       MatrixEpilogue<T>{c, c_row}, 0, j, accumulate);
  }
}
template void gemm_padded<float>(int64_t, int64_t, int64_t, const float*, int64_t, const float*,
                                 int64_t, float*, int64_t, bool);
template void gemm_padded<double>(int64_t, int64_t, int64_t, const double*, int64_t, const double*,
                                  int64_t, double*, int64_t, bool);

#define TENON_GEMM(T)                                                                            \
  template tenon_status gemm<T>(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<T>, Matrix<T>, T*, \
                                int64_t, bool, const BatchOffsets&, tenon_err*);
TENON_GEMM(float)
TENON_GEMM(double)
TENON_GEMM(uint8_t)
TENON_GEMM(uint16_t)
TENON_GEMM(uint32_t)
TENON_GEMM(uint64_t)
#undef TENON_GEMM

}  // namespace tenon::cpu::TENON_CPU_ISA
