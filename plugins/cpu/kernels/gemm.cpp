// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include "gemm_serial.hpp"
#include "gemm_tiles.hpp"
#include "parallel_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
tenon_status gemm(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c,
                  int64_t c_row, bool accumulate, const BatchOffsets& batch, tenon_err* err) {
  using Format = Plain<T>;
  if (m == 0 || n == 0) return TENON_OK;
  const Tiles tiles(m, n, k, kPanel<T>, m, n, batch);
  const bool packs = tiles.rows() < m || tiles.columns() < n || n == 1 ||
                     way_of<Format>(m, n, k, a, b) == Way::kBlocked;
  const int64_t bytes = packs ? blocked_bytes<Format>(tiles.rows(), tiles.columns()) : 0;
  return parallel_with_memory(
      ctx, tiles.count(), tiles.work(), bytes, err, [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        multiply<Format>(tile.rows, tile.columns, k,
                         {a.data + tile.a + tile.i * a.row, a.row, a.column},
                         {b.data + tile.b + tile.j * b.column, b.row, b.column},
                         c + tile.c + tile.i * c_row + tile.j, c_row, accumulate, memory);
      });
}

template <class T>
void gemm_padded(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
                 int64_t b_row, T* c, int64_t c_row, bool accumulate) {
  for (int64_t j = 0; j < n; j += kPanel<T>) {
    run_tile<Plain<T>>(m, std::min(kPanel<T>, n - j), k, a, a_row, 1, b + j, b_row,
                       MatrixTarget<T>{c, c_row}, 0, j, accumulate);
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
