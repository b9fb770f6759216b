// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with the transpose of a matrix in rows, as a layer's weight is: the
// transpose of C is that matrix, read once where it lies, times the transpose of A.
#pragma once

#include "gemm/blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Fewer rows are dot products; for more, packing B is not what costs.
inline constexpr int64_t kMostTurned = 64;
template <class Format>
inline constexpr int64_t kFewestTurned = by_tiles<Format> ? 4 : 17;

// Rows of B that are turned together: whole tiles, and whole registers of the transposition.
template <class Format>
inline constexpr int64_t kTurnedTogether = by_tiles<Format> ? kRowsOf<Format> : 4 * kTileRows;

// Are elements of B packed ones where they lie?
template <class Format>
inline constexpr bool turns = by_tiles<Format> ||
                              (std::is_same_v<typename Format::Right, typename Format::Packed> &&
                               std::is_floating_point_v<typename Format::Packed>);

// Whole tiles of B, and rows of A that are worth it?
template <class Format>
bool suits_turned(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Right> b) {
  if (!turns<Format> || m < kFewestTurned<Format> || m > kMostTurned || b.row != 1) return false;
  if constexpr (by_tiles<Format>) {
    constexpr int64_t depth = Format::kDepth;
    return n % 16 == 0 && k > 0 && k % (kStep<Format> * depth) == 0 && b.column >= k &&
           b.column % depth == 0;
  }
  // Pairs of vectors, of which more than half is needed.
  constexpr int64_t width = kWidth<typename Format::Packed>;
  return n >= 2 * m && k >= 64 && (m - 1) % (2 * width) >= width;
}

// Steps along k of one pass: the packed rows of A stay in the second-level cache.
template <class Format>
int64_t turned_steps(int64_t k) {
  if constexpr (by_tiles<Format>) {
    return rounded_up<kStep<Format>>((k + Format::kDepth - 1) / Format::kDepth);
  }
  const int64_t passes = std::max<int64_t>(1, (k + kBlockK - 1) / kBlockK);
  return (k + passes - 1) / passes;
}

// Bytes that multiply_turned() packs into.
template <class Format>
int64_t turned_bytes(int64_t m, int64_t k) {
  if (!turns<Format> || m < kFewestTurned<Format>) return 0;
  using Packed = typename Format::Packed;
  return rounded_up<kPanel<Packed>>(std::min(m, kMostTurned)) * turned_steps<Format>(k) *
         static_cast<int64_t>(sizeof(Packed));
}

// So many rows of B times a panel: sums with dense rows.
template <class Format>
void multiply_turned_rows(int64_t rows, int64_t columns, int64_t steps,
                          const typename Format::Packed* b, int64_t b_row,
                          const typename Format::Packed* panel, typename Format::Sum* sums,
                          bool near) {
  constexpr int64_t width = kPanel<typename Format::Packed>;
  if constexpr (by_tiles<Format>) {
    choose_tile_kernel<typename Format::Swapped::Product, Passing::kA>(rows, columns)(
        steps, b, b_row, panel, width, sums, width, false, {});
  } else {
    // Rows from afar: as many micro-kernels' as a first-level cache has room for where they are
    // 4 KiB apart, which is eight.
    const int64_t micro =
        vectors_for<typename Format::Packed>(columns) > 2 ? kTileRows / 2 : std::min(8, kTileRows);
    const int64_t together = near ? kTileRows : 8 / micro * micro;
    for (int64_t r = 0; r < rows; r += together) {
      Ahead next;
      if (!near) {
        next = ahead_of<1>(Matrix<typename Format::Right>{b + (r + together) * b_row, 1, b_row},
                           steps, together, {0, 1});
      }
      run_tile<Format>(std::min(together, rows - r), columns, steps, b + r * b_row, b_row, 1, panel,
                       width, MatrixTarget<typename Format::Sum>{sums, width}, r, 0, false, next);
    }
  }
}

// C = A B, or C += A B. `memory` has turned_bytes() bytes.
template <class Format>
void multiply_turned(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                     Matrix<typename Format::Right> b, typename Format::Sum* c, int64_t c_row,
                     bool accumulate, void* memory) {
  using Packed = typename Format::Packed;
  using Sum = typename Format::Sum;
  using Bits = std::conditional_t<sizeof(Sum) == 8, uint64_t, uint32_t>;
  constexpr int64_t panel = kPanel<Packed>, side = kTurnedTogether<Format>, depth = Format::kDepth;
  [[maybe_unused]] const ProcessorState<Format> state;
  const int64_t step = turned_steps<Format>(k), row = b.column / depth;
  const bool near = n * k * static_cast<int64_t>(sizeof(Packed)) < kDirectBytes;
  Packed* panels = static_cast<Packed*>(memory);
  alignas(64) Sum sums[side * panel], turned[panel * side];
  for (int64_t p = 0; p < k; p += step * depth) {
    const int64_t sources = std::min(step * depth, k - p), steps = (sources + depth - 1) / depth;
    for (int64_t q = 0; q < m; q += panel) {
      pack_panel(typename Format::Swapped(), {a.data + q * a.row + p * a.column, a.column, a.row},
                 sources, std::min(panel, m - q), panels + q * step);
    }
    for (int64_t j = 0; j < n; j += side) {
      const auto* rows = reinterpret_cast<const Packed*>(b.data + j * b.column + p);
      const int64_t some = std::min(side, n - j);
      for (int64_t q = 0; q < m; q += panel) {
        const int64_t count = std::min(panel, m - q);
        multiply_turned_rows<Format>(some, count, steps, rows, row, panels + q * step, sums,
                                     near || q > 0);
        transpose_block(reinterpret_cast<const Bits*>(sums), panel, reinterpret_cast<Bits*>(turned),
                        side, some, count);
        for (int64_t i = 0; i < count; ++i) {
          put(MatrixTarget<Sum>{c, c_row}, c + (q + i) * c_row + j, turned + i * side, some,
              accumulate || p > 0);
        }
      }
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
