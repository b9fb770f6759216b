// SPDX-License-Identifier: Apache-2.0
// GEMM of few rows of A with the transpose of a matrix that has dense rows, as the weight of a
// layer is. Computes the transpose of C: the matrix in place, read once, times the transpose of A.
#pragma once

#include "gemm/blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Fewer rows use dot products. For more rows, packing B costs little in comparison.
inline constexpr int64_t kMaxTransposed = 64;
template <class Format>
inline constexpr int64_t kMinTransposed = uses_amx<Format> ? 4 : 17;

// Rows of B that are transposed together: whole register tiles and whole registers of the
// transposition.
template <class Format>
inline constexpr int64_t kTransposedBatch = uses_amx<Format> ? kRowsOf<Format> : 4 * kMR;

// True if elements of B are packed elements in place.
template <class Format>
inline constexpr bool transposes =
    uses_amx<Format> || (std::is_same_v<typename Format::Right, typename Format::Packed> &&
                         std::is_floating_point_v<typename Format::Packed>);

// True if B consists of whole AMX tiles and A has enough rows.
template <class Format>
bool suits_transposed(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Right> b) {
  if (!transposes<Format> || m < kMinTransposed<Format> || m > kMaxTransposed || b.row != 1)
    return false;
  if constexpr (uses_amx<Format>) {
    constexpr int64_t depth = Format::kDepth;
    return n % 16 == 0 && k > 0 && k % (kStep<Format> * depth) == 0 && b.column >= k &&
           b.column % depth == 0;
  }
  // Accumulators are pairs of vectors, and more than half of each must be used.
  constexpr int64_t width = kWidth<typename Format::Packed>;
  return n >= 2 * m && k >= 64 && (m - 1) % (2 * width) >= width;
}

// Steps along k of one pass: the packed rows of A stay in the L2 cache.
template <class Format>
int64_t transposed_steps(int64_t k) {
  if constexpr (uses_amx<Format>) {
    return rounded_up<kStep<Format>>((k + Format::kDepth - 1) / Format::kDepth);
  }
  const int64_t passes = std::max<int64_t>(1, (k + kKC - 1) / kKC);
  return (k + passes - 1) / passes;
}

// Bytes that multiply_transposed() needs for packing. Tiles for threads have fewer rows than a product for
// which the algorithm is chosen.
template <class Format>
int64_t transposed_bytes(int64_t m, int64_t k) {
  using Packed = typename Format::Packed;
  return rounded_up<kNR<Packed>>(std::min(m, kMaxTransposed)) * transposed_steps<Format>(k) *
         static_cast<int64_t>(sizeof(Packed));
}

// Multiplies rows of B by a panel; the accumulators have dense rows.
template <class Format>
void multiply_transposed_rows(int64_t rows, int64_t columns, int64_t steps,
                              const typename Format::Packed* b, int64_t b_row,
                              const typename Format::Packed* panel,
                              typename Format::Accumulator* accumulators, bool near) {
  constexpr int64_t width = kNR<typename Format::Packed>;
  if constexpr (uses_amx<Format>) {
    choose_amx_kernel<typename Format::Swapped::Product, Streamed::kA>(rows, columns)(
        steps, b, b_row, panel, width, accumulators, width, false, {});
  } else {
    // Rows beyond the L2 cache are multiplied in groups of as many as the L1 cache holds at a
    // distance of 4 KiB, which is eight.
    const int64_t micro =
        vectors_for<typename Format::Packed>(columns) > 2 ? kMR / 2 : std::min(8, kMR);
    const int64_t together = near ? kMR : 8 / micro * micro;
    for (int64_t r = 0; r < rows; r += together) {
      PrefetchPlan next;
      if (!near) {
        next = prefetch_of<1>(Matrix<typename Format::Right>{b + (r + together) * b_row, 1, b_row},
                              steps, together, {0, 1});
      }
      run_tile<Format>(std::min(together, rows - r), columns, steps, b + r * b_row, b_row, 1, panel,
                       width, MatrixEpilogue<typename Format::Accumulator>{accumulators, width}, r,
                       0, false, next);
    }
  }
}

// Computes C = A B, or C += A B or plus `addend` if `accumulate`. `memory` has transposed_bytes()
// bytes.
template <class Format>
void multiply_transposed(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                         Matrix<typename Format::Right> b, typename Format::Accumulator* c,
                         int64_t c_row, bool accumulate,
                         Addend<typename Format::Accumulator> addend, void* memory) {
  using Packed = typename Format::Packed;
  using Accumulator = typename Format::Accumulator;
  using Bits = std::conditional_t<sizeof(Accumulator) == 8, uint64_t, uint32_t>;
  constexpr int64_t panel = kNR<Packed>, side = kTransposedBatch<Format>, depth = Format::kDepth;
  [[maybe_unused]] const ProcessorState<Format> state;
  const int64_t step = transposed_steps<Format>(k), row = b.column / depth;
  const bool near = n * k * static_cast<int64_t>(sizeof(Packed)) < kUnpackedBytes;
  Packed* panels = static_cast<Packed*>(memory);
  alignas(64) Accumulator accumulators[side * panel], transposed[panel * side];
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
        multiply_transposed_rows<Format>(some, count, steps, rows, row, panels + q * step,
                                         accumulators, near || q > 0);
        transpose_block(reinterpret_cast<const Bits*>(accumulators), panel,
                        reinterpret_cast<Bits*>(transposed), side, some, count);
        for (int64_t i = 0; i < count; ++i) {
          const MatrixEpilogue<Accumulator> epilogue{c, c_row, addend};
          Accumulator* to = c + (q + i) * c_row + j;
          if (p == 0) begin_run(epilogue, to, q + i, j, some);
          store_run(epilogue, to, transposed + i * side, some, accumulate || p > 0);
        }
      }
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
