// SPDX-License-Identifier: Apache-2.0
#include "gemm/gemm.hpp"

#include "gemm/in_tiles.hpp"
#include "gemm/parallel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
tenon_status gemm(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c,
                  int64_t c_row, bool accumulate, const BatchOffsets& batch, tenon_err* err) {
  return multiply_parallel<Plain<T>>(ctx, m, n, k, a, b, c, c_row, accumulate, nullptr, batch, err);
}

template <class T>
tenon_status gemm_with_bias(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T> a,
                            Matrix<T> b, const T* bias, T* c, int64_t c_row,
                            const BatchOffsets& batch, tenon_err* err) {
  return multiply_parallel<Plain<T>>(ctx, m, n, k, a, b, c, c_row, true, bias, batch, err);
}

namespace {

// The columns of a tile for products of n columns, so that threads have equally many: the panels
// that a whole number of tiles for each thread leaves over are a last, narrower tile.
int64_t columns_in_tiles(int64_t n, const BatchOffsets& batch) {
  int64_t items = 1;
  for (int i = 0; i < batch.count; ++i) items *= batch.extent[i];
  const int64_t threads = host->thread_count(), least = (n + kBlockColumns - 1) / kBlockColumns;
  const int64_t tiles = (least + threads - 1) / threads * threads;
  // A few columns are divided by Tiles, and many tiles balance as they are.
  if (least == 1 || tiles > 2 * least || items * least >= 4 * threads) return kBlockColumns;
  return std::max(kNR<float>, n / tiles / kNR<float> * kNR<float>);
}

}  // namespace

tenon_status gemm_in_tiles(RunMemory* memory, int64_t m, int64_t n, int64_t k, Matrix<float> a,
                           Matrix<float> b, float* c, int64_t c_row, bool accumulate,
                           const BatchOffsets& batch, const TileHooks& hooks, tenon_err* err) {
  using Format = Plain<float>;
  if (m == 0 || n == 0) return TENON_OK;
  // The algorithm of the whole product, as in multiply_parallel(): bits do not depend on tiles.
  const Tiles tiles(Type<Format>{}, m, n, k, m, columns_in_tiles(n, batch), batch);
  const Algorithm algorithm = choose_algorithm<Format>(m, n, k, a, b);
  return parallel_for_with_scratch(
      memory, tiles.count(), tiles.work(),
      scratch_bytes<Format>(algorithm, tiles.rows(), tiles.columns(), k), err,
      [&](int64_t t, void* own) {
        const OutputTile tile = tiles.at(t);
        const int64_t at = tile.c + tile.i * c_row + tile.j;
        hooks.before(hooks.user, at, tile.rows, tile.columns);
        multiply<Format>(algorithm, tile.rows, tile.columns, k,
                         {a.data + tile.a + tile.i * a.row, a.row, a.column},
                         {b.data + tile.b + tile.j * b.column, b.row, b.column}, c + at, c_row,
                         accumulate, {}, own);
        hooks.after(hooks.user, at, tile.rows, tile.columns);
      });
}

template <class T>
void gemm_padded(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
                 int64_t b_row, T* c, int64_t c_row, Addend<T> addend) {
  for (int64_t j = 0; j < n; j += kNR<T>) {
    run_tile<Plain<T>>(m, std::min(kNR<T>, n - j), k, a, a_row, 1, b + j, b_row,
                       MatrixEpilogue<T>{c, c_row, addend}, 0, j, addend.data != nullptr);
  }
}
template void gemm_padded<float>(int64_t, int64_t, int64_t, const float*, int64_t, const float*,
                                 int64_t, float*, int64_t, Addend<float>);
template void gemm_padded<double>(int64_t, int64_t, int64_t, const double*, int64_t, const double*,
                                  int64_t, double*, int64_t, Addend<double>);

#define TENON_GEMM(T)                                                                            \
  template tenon_status gemm<T>(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<T>, Matrix<T>, T*, \
                                int64_t, bool, const BatchOffsets&, tenon_err*);                 \
  template tenon_status gemm_with_bias<T>(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<T>,      \
                                          Matrix<T>, const T*, T*, int64_t, const BatchOffsets&, \
                                          tenon_err*);
TENON_GEMM(float)
TENON_GEMM(double)
TENON_GEMM(uint8_t)
TENON_GEMM(uint16_t)
TENON_GEMM(uint32_t)
TENON_GEMM(uint64_t)
#undef TENON_GEMM

}  // namespace tenon::cpu::TENON_CPU_ISA
