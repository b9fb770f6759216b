// SPDX-License-Identifier: Apache-2.0
// The innermost loop of matrix products: an M x V tile of C, V in vectors, kept in registers while
// it runs along k. Written with the compiler's vector types, so that one source serves every
// instruction set and every element type that vectors exist for.
#pragma once

#include "gemm_formats.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The register tile: accumulators, two vectors of B and one of A fill the registers.
inline constexpr int kTileRows = kVectorBytes == 64 ? 12 : 6;
inline constexpr int kTileVectors = 2;

// Memory that will be needed next, asked for while a tile is multiplied: requests that are spread
// over the multiplications find room in the queue of misses, where a loop of requests waits for it.
// At each kAheadSteps steps along k they are `count` stretches of `lines` lines, `across` bytes
// apart, and then `along` bytes further.
struct Ahead {
  const char* at = nullptr;
  int64_t count = 0, lines = 0, across = 0, along = 0;
};
inline constexpr int64_t kAheadSteps = 16;

// C[0..M) x [0..V vectors) = A * B, plus C where `accumulate`; of the last vector only the first
// `last` columns, where the instruction set has masks. k and strides are in packed elements, c_row
// in elements of C; rows of B are dense. Where a format has starts, there is one for each row.
template <class Format, int M, int V, class Element>
[[gnu::noinline]] void micro_kernel(int64_t k, const typename Format::Packed* a, int64_t a_row,
                                    int64_t a_column, const typename Format::Packed* b,
                                    int64_t b_row, Element* c, int64_t c_row, int64_t last,
                                    bool accumulate, const Ahead& ahead,
                                    [[maybe_unused]] const int32_t* starts) {
  using Packed = typename Format::Packed;
  using Sum = typename Format::Sum;
  using Vector = typename VectorOf<Sum>::type;
  constexpr int width = kWidth<Packed>;
  static_assert(sizeof(Packed) == sizeof(Sum));
  const Lanes<Packed> all(width), some(last);
  const Lanes<Sum> all_sums(width), some_sums(last);
  Vector sum[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(c + i * c_row + v * width, 1);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      sum[i][v] = Vector{};
      if constexpr (Format::kStart) sum[i][v] += starts[i];
    }
  }
  const char* next = ahead.at;
  for (int64_t p = 0; p < k; ++p) {
    if (p % kAheadSteps == 0) {
      for (int64_t s = 0; s < ahead.count; ++s) {
        for (int64_t l = 0; l < ahead.lines; ++l) {
          __builtin_prefetch(next + s * ahead.across + 64 * l);
        }
      }
      next += ahead.along;
    }
    typename VectorOf<Packed>::type row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = (v + 1 < V ? all : some).load(b + v * width);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const auto element = Format::spread(a + i * a_row);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) Format::add(sum[i][v], element, row[v]);
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      store_sums(v + 1 < V ? all_sums : some_sums, c + i * c_row + v * width, sum[i][v],
                 accumulate);
    }
  }
}

// The kernels of one column count, for every number of rows that a tile may have.
template <class Format, class Element>
struct Micro {
  using Packed = typename Format::Packed;
  void (*run)(int64_t, const Packed*, int64_t, int64_t, const Packed*, int64_t, Element*, int64_t,
              int64_t, bool, const Ahead&, const int32_t*);
  int rows;
};

// The largest kernel of at most `rows` rows.
template <class Format, int V, class Element>
Micro<Format, Element> choose_micro(int64_t rows) {
  if (rows >= kTileRows) return {micro_kernel<Format, kTileRows, V, Element>, kTileRows};
  if constexpr (kTileRows > 8) {
    if (rows >= 8) return {micro_kernel<Format, 8, V, Element>, 8};
  }
  if (rows >= 4) return {micro_kernel<Format, 4, V, Element>, 4};
  if (rows >= 2) return {micro_kernel<Format, 2, V, Element>, 2};
  return {micro_kernel<Format, 1, V, Element>, 1};
}

// Columns of one panel of B.
template <class Packed>
inline constexpr int64_t kPanel = kTileVectors* kWidth<Packed>;

}  // namespace tenon::cpu::TENON_CPU_ISA
