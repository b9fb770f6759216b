// SPDX-License-Identifier: Apache-2.0
// GEMM of 16-bit floats.
#include "gemm/low_precision.hpp"

#include "gemm/amx_formats.hpp"
#include "gemm/parallel.hpp"

#ifdef __AVX512F__
#include <cpuid.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__
bool has_avx512_bf16() {
  static const bool has = [] {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5));  // AVX512-BF16
  }();
  return has;
}
bool has_amx_bf16() { return has_avx512_bf16() && has_tiles(); }
#else
bool has_avx512_bf16() { return false; }
bool has_amx_bf16() { return false; }
#endif

namespace {

void round_row(BFloat16* to, const float* from, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] = BFloat16(from[j]);
}
void round_row(Float16* to, const float* from, int64_t n) {
  narrow(TENON_DTYPE_F16, from, reinterpret_cast<char*>(to), sizeof(Float16), n);
}

// C is a matrix of 16-bit floats with dense rows, for products whose accumulators are complete after one pass over k.
template <class T16>
struct RoundedEpilogue {
  T16* c;
  int64_t row;
  T16* at(int64_t j) const { return c + j; }
  int64_t dense_from(int64_t) const { return INT64_MAX; }
  static void store_run(T16* to, const float* from, int64_t n, bool accumulate) {
    if (!accumulate) return round_row(to, from, n);
    alignas(64) float accumulators[kNR<float>];
    for (int64_t j = 0; j < n; ++j) accumulators[j] = to[j] + from[j];
    round_row(to, accumulators, n);
  }
};

template <class Format, class Epilogue, class T16>
tenon_status run(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T16> a, Matrix<T16> b,
                 T16* c, int64_t c_row, bool accumulate, const BatchOffsets& batch,
                 tenon_err* err) {
  if (is_column(m, n, c_row))
    return run<typename Format::Swapped, Epilogue>(ctx, 1, m, k, b.transposed(), a.transposed(), c,
                                                   m, accumulate, batch.transposed(), err);
  // True if accumulators are complete when they leave the registers.
  const Algorithm algorithm = choose_algorithm<Format>(m, n, k, a, b);
  const bool at_once = 0 < k && k <= kKC * Format::kDepth && algorithm == Algorithm::kBlocked;
  trace("matmul", Format::kName, name_of(algorithm));
  // The accumulators of a tile stay in the L2 cache, unless multiplying takes less time than
  // packing.
  constexpr int64_t max_rows = uses_amx<Format> ? 4 * kMC : kMC,
                    max_columns = uses_amx<Format> ? kNC : kBlockColumns;
  const Tiles tiles(Type<Format>{}, m, n, k, at_once ? m : max_rows, at_once ? n : max_columns,
                    batch);
  const int64_t accumulators_bytes =
      at_once ? 0 : (tiles.rows() * tiles.columns() * 4 + 63) / 64 * 64;
  const int64_t bytes =
      accumulators_bytes + scratch_bytes<Format>(algorithm, tiles.rows(), tiles.columns(), k);
  return parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), bytes, err, [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        const Matrix<T16> left{a.data + tile.a + tile.i * a.row, a.row, a.column},
            right{b.data + tile.b + tile.j * b.column, b.row, b.column};
        T16* to = c + tile.c + tile.i * c_row + tile.j;
        if (at_once) {
          return multiply_blocked<typename Format::Product>(
              tile.rows, tile.columns, k, MatrixRows<Format>{left}, MatrixPanels<Format>{right},
              Epilogue{to, c_row}, accumulate, memory);
        }
        float* acc = static_cast<float*>(memory);
        for (int64_t i = 0; accumulate && i < tile.rows; ++i) {
          widen_row(to + i * c_row, 1, tile.columns, acc + i * tile.columns);
        }
        multiply<Format>(algorithm, tile.rows, tile.columns, k, left, right, acc, tile.columns,
                         accumulate, {}, static_cast<char*>(memory) + accumulators_bytes);
        for (int64_t i = 0; i < tile.rows; ++i) {
          store_run(Epilogue{to, c_row}, to + i * c_row, acc + i * tile.columns, tile.columns,
                    false);
        }
      });
}

}  // namespace

template <class T16>
tenon_status gemm_low_precision(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<T16> a,
                                Matrix<T16> b, T16* c, int64_t c_row, bool accumulate,
                                const BatchOffsets& batch, tenon_err* err) {
  if (m == 0 || n == 0) return TENON_OK;
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T16, BFloat16>) {
    if (has_amx_bf16()) {
      return run<Bfloat16Tiles, MatrixEpilogue<BFloat16>>(ctx, m, n, k, a, b, c, c_row, accumulate,
                                                          batch, err);
    }
    if (has_avx512_bf16()) {
      return run<Bfloat16Pairs, MatrixEpilogue<BFloat16>>(ctx, m, n, k, a, b, c, c_row, accumulate,
                                                          batch, err);
    }
  }
#endif
  return run<Widened<T16>, RoundedEpilogue<T16>>(ctx, m, n, k, a, b, c, c_row, accumulate, batch,
                                                 err);
}

template tenon_status gemm_low_precision<Float16>(tenon_ctx*, int64_t, int64_t, int64_t,
                                                  Matrix<Float16>, Matrix<Float16>, Float16*,
                                                  int64_t, bool, const BatchOffsets&, tenon_err*);
template tenon_status gemm_low_precision<BFloat16>(tenon_ctx*, int64_t, int64_t, int64_t,
                                                   Matrix<BFloat16>, Matrix<BFloat16>, BFloat16*,
                                                   int64_t, bool, const BatchOffsets&, tenon_err*);

}  // namespace tenon::cpu::TENON_CPU_ISA
