// SPDX-License-Identifier: Apache-2.0
// GEMM of 8-bit integers.
#include "gemm/amx_formats.hpp"

#include "gemm/parallel.hpp"
#include "simd/vnni.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class L, class R>
tenon_status gemm_int8(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<L> a, Matrix<R> b,
                       int32_t* c, int64_t c_row, const BatchOffsets& batch, tenon_err* err) {
#ifdef __AVX512F__
  if (has_vnni() && has_tiles()) {
    return multiply_parallel<Int8Amx<L, R>>(ctx, m, n, k, a, b, c, c_row, false, nullptr, batch,
                                            err);
  }
  if (has_vnni()) {
    return multiply_parallel<Int8Quads<L, R>>(ctx, m, n, k, a, b, c, c_row, false, nullptr, batch,
                                              err);
  }
#endif
  return multiply_parallel<Int8Pairs<L, R>>(ctx, m, n, k, a, b, c, c_row, false, nullptr, batch,
                                            err);
}

#define TENON_GEMM_INT8(L, R)                                                              \
  template tenon_status gemm_int8<L, R>(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<L>,  \
                                        Matrix<R>, int32_t*, int64_t, const BatchOffsets&, \
                                        tenon_err*);
TENON_GEMM_INT8(int8_t, int8_t)
TENON_GEMM_INT8(int8_t, uint8_t)
TENON_GEMM_INT8(uint8_t, int8_t)
TENON_GEMM_INT8(uint8_t, uint8_t)
#undef TENON_GEMM_INT8

}  // namespace tenon::cpu::TENON_CPU_ISA
