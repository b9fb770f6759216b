// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with the transpose of a matrix in rows, as a layer's weight is: the
// transpose of C is that matrix, read once where it lies, times the transpose of A.
#pragma once

#include "gemm_blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Fewer rows are dot products; for more, packing B is not what costs.
inline constexpr int64_t kFewestTurned = 4, kMostTurned = 64;

// Whole tiles of B, and rows of A that are worth it?
template <class Format>
bool suits_turned(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Right> b) {
  if constexpr (by_tiles<Format>) {
    constexpr int64_t depth = Format::kDepth;
    return m >= kFewestTurned && m <= kMostTurned && b.row == 1 && n % 16 == 0 && k > 0 &&
           k % (kStep<Format> * depth) == 0 && b.column >= k && b.column % depth == 0;
  } else {
    return false;
  }
}

// Bytes that multiply_turned() packs into.
template <class Format>
int64_t turned_bytes(int64_t m, int64_t k) {
  if constexpr (by_tiles<Format>) {
    if (m < kFewestTurned) return 0;
    constexpr int64_t panel = kPanel<uint32_t>;
    return rounded_up<panel>(std::min(m, kMostTurned)) *
           rounded_up<kStep<Format>>((k + Format::kDepth - 1) / Format::kDepth) * 4;
  } else {
    return 0;
  }
}

#ifdef __AVX512F__
// C = A B, or C += A B. `memory` has turned_bytes() bytes.
template <class Format>
void multiply_turned(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                     Matrix<typename Format::Right> b, typename Format::Sum* c, int64_t c_row,
                     bool accumulate, void* memory) {
  using Turned = typename Format::Swapped;
  using Sum = typename Format::Sum;
  constexpr int64_t panel = kPanel<uint32_t>, side = kRowsOf<Format>;
  const ProcessorState<Format> state;
  const int64_t steps = k / Format::kDepth, row = b.column / Format::kDepth;
  uint32_t* panels = static_cast<uint32_t*>(memory);
  for (int64_t q = 0; q < m; q += panel) {
    pack_panel(Turned(), {a.data + q * a.row, a.column, a.row}, k, std::min(panel, m - q),
               panels + q * steps);
  }
  alignas(64) Sum sums[side * panel], turned[panel * side];
  for (int64_t j = 0; j < n; j += side) {
    const auto* rows = reinterpret_cast<const uint32_t*>(b.data + j * b.column);
    const int64_t some = std::min(side, n - j);
    for (int64_t q = 0; q < m; q += panel) {
      const int64_t count = std::min(panel, m - q);
      choose_tile_kernel<typename Turned::Product>(some, count)(
          steps, rows, row, panels + q * steps, panel, sums, panel, false, {}, {});
      transpose_block(reinterpret_cast<const uint32_t*>(sums), panel,
                      reinterpret_cast<uint32_t*>(turned), side, some, count);
      for (int64_t i = 0; i < count; ++i) {
        put(MatrixTarget<Sum>{c, c_row}, c + (q + i) * c_row + j, turned + i * side, some,
            accumulate);
      }
    }
  }
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
