// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats.
#include "gemm/low_precision.hpp"

#include "gemm/amx_formats.hpp"
#include "gemm/parallel.hpp"

#ifdef __AVX512F__
#include <cpuid.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__
bool has_bfloat16_products() {
  static const bool has = [] {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5));  // AVX512-BF16
  }();
  return has;
}
bool has_bfloat16_tiles() { return has_bfloat16_products() && has_tiles(); }
#else
bool has_bfloat16_products() { return false; }
bool has_bfloat16_tiles() { return false; }
#endif

namespace {

void round_row(BFloat16* to, const float* from, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] = BFloat16(from[j]);
}
void round_row(Float16* to, const float* from, int64_t n) {
  narrow(TENON_DTYPE_F16, from, reinterpret_cast<char*>(to), sizeof(Float16), n);
}

// C with dense rows of halves, for products that have their sums in one pass over k.
template <class Half>
struct RoundedTarget {
  Half* c;
  int64_t row;
  Half* at(int64_t j) const { return c + j; }
  int64_t dense_from(int64_t) const { return INT64_MAX; }
  static void put(Half* to, const float* from, int64_t n, bool accumulate) {
    if (!accumulate) return round_row(to, from, n);
    alignas(64) float sums[kPanel<float>];
    for (int64_t j = 0; j < n; ++j) sums[j] = to[j] + from[j];
    round_row(to, sums, n);
  }
};

template <class Format, class Target, class Half>
tenon_status run(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<Half> a, Matrix<Half> b,
                 Half* c, int64_t c_row, bool accumulate, const BatchOffsets& batch,
                 tenon_err* err) {
  // Are sums complete when they leave the registers?
  const Way way = way_of<Format>(m, n, k, a, b);
  const bool at_once = 0 < k && k <= kBlockK * Format::kDepth && n > 1 && way == Way::kBlocked;
  trace("matmul", Format::kName, name_of(way));
  // Sums of a tile stay in the second-level cache, unless multiplying takes less time than packing.
  constexpr int64_t most_rows = by_tiles<Format> ? 4 * kBlockM : kBlockM,
                    most_columns = by_tiles<Format> ? kBlocksN : kBlockN;
  const Tiles tiles(Type<Format>{}, m, n, k, at_once ? m : most_rows, at_once ? n : most_columns,
                    batch);
  const int64_t sums_bytes = at_once ? 0 : (tiles.rows() * tiles.columns() * 4 + 63) / 64 * 64;
  const int64_t bytes = sums_bytes + scratch_bytes<Format>(tiles.rows(), tiles.columns(), k);
  return parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), bytes, err, [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        const Matrix<Half> left{a.data + tile.a + tile.i * a.row, a.row, a.column},
            right{b.data + tile.b + tile.j * b.column, b.row, b.column};
        Half* to = c + tile.c + tile.i * c_row + tile.j;
        if (at_once) {
          return multiply_blocked<typename Format::Product>(
              tile.rows, tile.columns, k, MatrixRows<Format>{left}, MatrixPanels<Format>{right},
              Target{to, c_row}, accumulate, memory);
        }
        float* sum = static_cast<float*>(memory);
        for (int64_t i = 0; accumulate && i < tile.rows; ++i) {
          widen_row(to + i * c_row, 1, tile.columns, sum + i * tile.columns);
        }
        multiply<Format>(tile.rows, tile.columns, k, left, right, sum, tile.columns, accumulate,
                         static_cast<char*>(memory) + sums_bytes);
        for (int64_t i = 0; i < tile.rows; ++i) {
          put(Target{to, c_row}, to + i * c_row, sum + i * tile.columns, tile.columns, false);
        }
      });
}

}  // namespace

template <class Half>
tenon_status gemm_halves(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<Half> a,
                         Matrix<Half> b, Half* c, int64_t c_row, bool accumulate,
                         const BatchOffsets& batch, tenon_err* err) {
  if (m == 0 || n == 0) return TENON_OK;
#ifdef __AVX512F__
  if constexpr (std::is_same_v<Half, BFloat16>) {
    if (has_bfloat16_tiles()) {
      return run<Bfloat16Tiles, MatrixTarget<BFloat16>>(ctx, m, n, k, a, b, c, c_row, accumulate,
                                                        batch, err);
    }
    if (has_bfloat16_products()) {
      return run<Bfloat16Pairs, MatrixTarget<BFloat16>>(ctx, m, n, k, a, b, c, c_row, accumulate,
                                                        batch, err);
    }
  }
#endif
  return run<Widened<Half>, RoundedTarget<Half>>(ctx, m, n, k, a, b, c, c_row, accumulate, batch,
                                                 err);
}

template tenon_status gemm_halves<Float16>(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<Float16>,
                                           Matrix<Float16>, Float16*, int64_t, bool,
                                           const BatchOffsets&, tenon_err*);
template tenon_status gemm_halves<BFloat16>(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<BFloat16>,
                                            Matrix<BFloat16>, BFloat16*, int64_t, bool,
                                            const BatchOffsets&, tenon_err*);

}  // namespace tenon::cpu::TENON_CPU_ISA
