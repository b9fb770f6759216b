// SPDX-License-Identifier: Apache-2.0
// GEMM of few rows of A with a large B that has dense rows. B is streamed once, in memory order.
// Reading it panel by panel would touch a different page for each row.
#pragma once

#include "gemm/blocked.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Up to this many rows of A, reading B takes longer than the repeated passes over C.
inline constexpr int64_t kMaxStreamBlocksRows = 16;

// Steps along k of a packed block of B. The block and the prefetched next block stay in the L2
// cache together.
inline constexpr int64_t kStreamKC = kVectorBytes == 64 ? 128 : 32;

// Packed elements of the block of B; the packed rows of A follow it.
inline constexpr int64_t kStreamBlock = kBlockColumns * kStreamKC;

// Computes C = A B or C += A B. `memory` has stream_blocks_bytes() bytes.
template <class Format>
void multiply_stream_blocks(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                            Matrix<typename Format::Right> b, typename Format::Accumulator* c,
                            int64_t c_row, bool accumulate, void* memory) {
  using Packed = typename Format::Packed;
  using Product = typename Format::Product;
  [[maybe_unused]] const ProcessorState<Product> state;
  constexpr int64_t panel = kNR<Packed>, depth = Format::kDepth, step = kStreamKC * depth;
  constexpr int64_t together =
      kPrefetchSteps * depth;  // Rows of B that are packed across all panels.
  const MatrixPanels<Format> panels{b};
  Packed* packed = static_cast<Packed*>(memory);
  for (int64_t jb = 0; jb < n; jb += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, n - jb);
    for (int64_t pb = 0; pb < k; pb += step) {
      const int64_t sources = std::min(step, k - pb);
      const auto rows =
          MatrixRows<Format>{a}.pack(0, m, pb, sources, packed + kStreamBlock, columns);
      for (int64_t p = 0; p < sources; p += together) {
        for (int64_t j = 0; j < columns; j += panel) {
          panels.pack(pb + p, std::min(together, sources - p), jb + j, std::min(panel, columns - j),
                      packed + j * kStreamKC + p / depth * panel);
        }
      }
      const bool last = pb + step >= k;
      const int64_t next_k = last ? 0 : pb + step, next_n = last ? jb + kBlockColumns : jb;
      for (int64_t j = 0; j < columns; j += panel) {
        PrefetchPlan prefetch;
        if (next_n < n) {
          prefetch = panels.prefetch(next_k, std::min(step, k - next_k), next_n,
                                     std::min(kBlockColumns, n - next_n),
                                     {j / panel, (columns + panel - 1) / panel});
        }
        multiply_panel<Product>(
            m, std::min(panel, columns - j), (sources + depth - 1) / depth, rows,
            packed + j * kStreamKC, MatrixEpilogue<typename Format::Accumulator>{c, c_row}, 0,
            jb + j, accumulate || pb > 0,
            [&](Chunk chunk) { return chunk.part == 0 ? prefetch : PrefetchPlan{}; });
      }
    }
  }
}

// Bytes that multiply_stream_blocks() needs for packing.
template <class Format>
int64_t stream_blocks_bytes(int64_t m) {
  using Packed = typename Format::Packed;
  const int64_t rows = rounded_up<kRowsOf<Format>>(m);
  return (rows * (PackedRows<Packed, kKC>::kRowStride + Format::kStart) + kStreamBlock) *
         static_cast<int64_t>(sizeof(Packed));
}

}  // namespace tenon::cpu::TENON_CPU_ISA
