// SPDX-License-Identifier: Apache-2.0
// Products of few rows with a large B that lies in rows: B passes by once, in the order in which it
// lies. Panel by panel each row would be a page of its own.
#pragma once

#include "gemm/blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Up to this many rows of A reading B takes longer than the repeated passes over C.
inline constexpr int64_t kPassingRows = 16;

// Steps along k of a packed block of B: with the next block, which is asked for meanwhile, it stays
// in the second-level cache.
inline constexpr int64_t kPassingK = kVectorBytes == 64 ? 128 : 32;

// Packed elements of the block of B; those of A are behind it.
inline constexpr int64_t kPassingBlock = kBlockN * kPassingK;

// C = A B, or C += A B. `memory` has passing_bytes() bytes.
template <class Format>
void multiply_passing(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                      Matrix<typename Format::Right> b, typename Format::Sum* c, int64_t c_row,
                      bool accumulate, void* memory) {
  using Packed = typename Format::Packed;
  using Product = typename Format::Product;
  [[maybe_unused]] const ProcessorState<Product> state;
  constexpr int64_t panel = kPanel<Packed>, depth = Format::kDepth, step = kPassingK * depth;
  constexpr int64_t together = kAheadSteps * depth;  // rows of B that are packed across all panels
  const MatrixPanels<Format> panels{b};
  Packed* packed = static_cast<Packed*>(memory);
  for (int64_t jb = 0; jb < n; jb += kBlockN) {
    const int64_t columns = std::min(kBlockN, n - jb);
    for (int64_t pb = 0; pb < k; pb += step) {
      const int64_t sources = std::min(step, k - pb);
      const auto rows =
          MatrixRows<Format>{a}.pack(0, m, pb, sources, packed + kPassingBlock, columns);
      for (int64_t p = 0; p < sources; p += together) {
        for (int64_t j = 0; j < columns; j += panel) {
          panels.pack(pb + p, std::min(together, sources - p), jb + j, std::min(panel, columns - j),
                      packed + j * kPassingK + p / depth * panel);
        }
      }
      const bool last = pb + step >= k;
      const int64_t next_k = last ? 0 : pb + step, next_n = last ? jb + kBlockN : jb;
      for (int64_t j = 0; j < columns; j += panel) {
        Ahead ahead;
        if (next_n < n) {
          ahead = panels.ahead(next_k, std::min(step, k - next_k), next_n,
                               std::min(kBlockN, n - next_n),
                               {j / panel, (columns + panel - 1) / panel});
        }
        multiply_panel<Product>(
            m, std::min(panel, columns - j), (sources + depth - 1) / depth, rows,
            packed + j * kPassingK, MatrixTarget<typename Format::Sum>{c, c_row}, 0, jb + j,
            accumulate || pb > 0, [&](Share share) { return share.part == 0 ? ahead : Ahead{}; });
      }
    }
  }
}

// Bytes that multiply_passing() packs into.
template <class Format>
int64_t passing_bytes(int64_t m) {
  using Packed = typename Format::Packed;
  const int64_t rows = rounded_up<kRowsOf<Format>>(m);
  return (rows * (PackedRows<Packed, kBlockK>::kRowStride + Format::kStart) + kPassingBlock) *
         static_cast<int64_t>(sizeof(Packed));
}

}  // namespace tenon::cpu::TENON_CPU_ISA
