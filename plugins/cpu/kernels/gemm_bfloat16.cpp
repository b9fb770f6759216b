// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include <tenon/tensor.hpp>

#ifdef __AVX512F__
#include "gemm_serial.hpp"
#include "gemm_tiles.hpp"
#include "parallel_memory.hpp"

#include <cpuid.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__
namespace {

// To the nearest, ties to even; NaNs stay quiet NaNs. Written so that loops over it vectorise.
uint16_t rounded(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : nearest);
}

}  // namespace

bool has_gemm_bfloat16() {
  static const bool has = [] {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5));  // AVX512-BF16
  }();
  return has;
}

tenon_status gemm_bfloat16(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k, Matrix<uint16_t> a,
                           Matrix<uint16_t> b, uint16_t* c, int64_t c_row, bool accumulate,
                           const BatchOffsets& batch, tenon_err* err) {
  using Format = Bfloat16Pairs;
  if (m == 0 || n == 0) return TENON_OK;
  constexpr int64_t most_columns = 512;  // sums of a tile stay in the second-level cache
  const Tiles tiles(m, n, k, kPanel<uint32_t>, kBlockM, most_columns, batch);
  const int64_t sums = tiles.rows() * tiles.columns();
  const int64_t sums_bytes = (sums * 4 + 63) / 64 * 64;
  const int64_t bytes = sums_bytes + blocked_bytes<Format>(tiles.rows(), tiles.columns());
  return parallel_with_memory(
      ctx, tiles.count(), tiles.work(), bytes, err, [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        float* sum = static_cast<float*>(memory);
        uint16_t* to = c + tile.c + tile.i * c_row + tile.j;
        for (int64_t i = 0; accumulate && i < tile.rows; ++i) {
          for (int64_t j = 0; j < tile.columns; ++j) {
            sum[i * tile.columns + j] = Format::value(to[i * c_row + j]);
          }
        }
        multiply<Format>(tile.rows, tile.columns, k,
                         {a.data + tile.a + tile.i * a.row, a.row, a.column},
                         {b.data + tile.b + tile.j * b.column, b.row, b.column}, sum, tile.columns,
                         accumulate, static_cast<char*>(memory) + sums_bytes);
        for (int64_t i = 0; i < tile.rows; ++i) {
          for (int64_t j = 0; j < tile.columns; ++j) {
            to[i * c_row + j] = rounded(sum[i * tile.columns + j]);
          }
        }
      });
}

#else

bool has_gemm_bfloat16() { return false; }
tenon_status gemm_bfloat16(tenon_ctx*, int64_t, int64_t, int64_t, Matrix<uint16_t>,
                           Matrix<uint16_t>, uint16_t*, int64_t, bool, const BatchOffsets&,
                           tenon_err* err) {
  return fail(err, TENON_INTERNAL, "gemm_bfloat16: no instructions for bfloat16");
}

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
