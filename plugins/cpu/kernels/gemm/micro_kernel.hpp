// SPDX-License-Identifier: Apache-2.0
// The innermost loop of matrix products: an M x V tile of C, V in vectors, kept in registers while
// it runs along k. Written with the compiler's vector types, so that one source serves every
// instruction set and every element type that vectors exist for.
#pragma once

#include "gemm/formats.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// The register tile: accumulators, the vectors of B and one of A fill the registers. Of AVX-512
// wide tiles of floats have few rows: each step then loads least, and two multiplications begin in
// every cycle. Narrower ones take more rows; rows come in strips of kTileRows.
inline constexpr int kTileRows = kVectorBytes == 64 ? 12 : 6;
template <class Packed>
inline constexpr int kTileVectors = kVectorBytes == 64 && std::is_floating_point_v<Packed> ? 4 : 2;

// Memory that will be needed next, asked for while a tile is multiplied: requests that are spread
// over the multiplications find room in the queue of misses, where a loop of requests waits for it.
// It lies in stretches of `length` bytes, `across` bytes apart; the next is at `offset` of the one
// at `at`. Every `steps` steps along k ask for `lines` lines.
struct Ahead {
  const char* at = nullptr;
  int64_t offset = 0, length = 0, across = 0, lines = 0, steps = INT64_MAX;

  void ask() {
    for (int64_t l = 0; l < lines; ++l) {
      __builtin_prefetch(at + offset);
      offset += 64;
      if (offset >= length) offset -= length, at += across;
    }
  }
};
// Steps along k by which rows of a panel of B are asked for before they are multiplied: they come
// from the second-level cache, whose rate the processor reaches only with more requests than it
// makes by itself.
inline constexpr int64_t kRowsAhead = 8;
// At least so many, for a break in the multiplications costs as much as one step.
inline constexpr int64_t kAheadSteps = 16;

// Elements of M rows at one place along them. Of every four rows one has a pointer and two
// distances serve all others: with a distance for each row they would not fit into registers.
template <class T, int M>
class RowElements {
 public:
  RowElements(const T* a, int64_t row, int64_t column)
      : row_(row * size), three_(3 * row * size), column_(column * size) {
    for (int g = 0; g < groups; ++g) {
      group_[g] = reinterpret_cast<const char*>(a + 4 * g * row);
      asm("" : "+r"(group_[g]));  // else the compiler sees what they have in common
    }
    asm("" : "+r"(row_), "+r"(three_));
  }
  [[gnu::always_inline]] const T* at(int i) const {
    const int64_t distance = i % 4 == 3 ? three_ : i % 4 * row_;
    return reinterpret_cast<const T*>(group_[i / 4] + distance);
  }
  [[gnu::always_inline]] void next() {
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) group_[g] += column_;
  }

 private:
  static constexpr int groups = (M + 3) / 4;
  static constexpr int64_t size = sizeof(T);
  const char* group_[groups];
  int64_t row_, three_, column_;
};

// C[0..M) x [0..V vectors) = A * B, plus C where `accumulate`; of the last vector only the first
// `last` columns, where the instruction set has masks. So many are also read of rows of B where V
// is 1, and whole vectors elsewhere. k and strides are in packed elements, c_row in elements of C;
// rows of B are dense. Where a format has starts, there is one for each row.
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
  const Lanes<Packed> read(last);
  Vector sum[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(c + i * c_row + v * width, 1);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sum[i][v] = Vector{};
      if constexpr (Format::kStart) sum[i][v] += starts[i];
    }
  }
  RowElements<Packed, M> elements(a, a_row, a_column);
  Ahead next = ahead;
  const int64_t turn = std::max<int64_t>(0, k - kRowsAhead);
  int64_t soon = kRowsAhead * b_row;
  for (int64_t p = 0, asks = 0; p < k;) {
    if (p == asks) {
      next.ask();
      asks = k - p < next.steps ? k : p + next.steps;
    }
    if (p == turn) soon = -turn * b_row;  // the first ones, which the next rows of A begin with
    for (const int64_t end = p < turn ? std::min(asks, turn) : asks; p < end; ++p) {
      typename VectorOf<Packed>::type row[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        row[v] = V == 1 ? read.load(b) : Lanes<Packed>::load_all(b + v * width);
        if (V == kTileVectors<Packed> && v * kVectorBytes % 64 == 0) {
          __builtin_prefetch(b + v * width + soon);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const auto element = Format::spread(elements.at(i));
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) Format::add(sum[i][v], element, row[v]);
      }
      elements.next();
      b += b_row;
    }
  }
  asm("" : "+r"(c_row));  // else addresses of rows are kept for so long, where registers lack
  const Lanes<Sum> all_sums(width), some_sums(last);
  const auto store = [&](bool add) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        store_sums(v + 1 < V ? all_sums : some_sums, c + i * c_row + v * width, sum[i][v], add);
      }
    }
  };
  accumulate ? store(true) : store(false);
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
  constexpr int most = V > 2 ? kTileRows / 2 : kTileRows;
  if (rows >= most) return {micro_kernel<Format, most, V, Element>, most};
  if constexpr (most > 8) {
    if (rows >= 8) return {micro_kernel<Format, 8, V, Element>, 8};
  }
  if (rows >= 4) return {micro_kernel<Format, 4, V, Element>, 4};
  if (rows >= 2) return {micro_kernel<Format, 2, V, Element>, 2};
  return {micro_kernel<Format, 1, V, Element>, 1};
}

// Columns of one panel of B.
template <class Packed>
inline constexpr int64_t kPanel = kTileVectors<Packed>* kWidth<Packed>;

}  // namespace tenon::cpu::TENON_CPU_ISA
