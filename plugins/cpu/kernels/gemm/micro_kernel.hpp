// SPDX-License-Identifier: Apache-2.0
// GEMM micro-kernel: an M x V register tile of C, V counted in vectors, accumulated along k. The
// code uses the compiler's vector types, so that one source serves every instruction set and
// element type.
#pragma once

#include "gemm/formats.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// MR, the rows of the register tile. The accumulators, the vectors of B and one broadcast element
// of A fill the registers. With AVX-512, a tile of floats is wide and has few rows: each step then
// needs the fewest loads and starts two multiplications per cycle. Narrower tiles have more rows.
inline constexpr int kMR = kVectorBytes == 64 ? 12 : 6;
template <class Packed>
inline constexpr int kNRVectors = kVectorBytes == 64 && std::is_floating_point_v<Packed> ? 4 : 2;

// A plan of prefetches that the micro-kernel issues between multiplications. Spread out, the
// prefetches find free line fill buffers; a loop of prefetches would wait for them. The memory
// consists of segments of `length` bytes, `across` bytes apart; the next prefetch is at `offset` of
// the segment at `at`. Every `steps` steps along k, `lines` cache lines are prefetched.
struct PrefetchPlan {
  const char* at = nullptr;
  int64_t offset = 0, length = 0, across = 0, lines = 0, steps = INT64_MAX;

  void issue() {
    for (int64_t l = 0; l < lines; ++l) {
      __builtin_prefetch(at + offset);
      offset += 64;
      if (offset >= length) {
        offset -= length;
        at += across;
      }
    }
  }
};
// Prefetch distance for rows of a panel of B, in steps along k. The panel comes from the L2 cache,
// whose full rate needs more outstanding requests than out-of-order execution issues.
inline constexpr int64_t kPrefetchRows = 8;
// Smallest interval between prefetches, in steps along k: an interruption of the multiplications
// costs as much as one step.
inline constexpr int64_t kPrefetchSteps = 16;

// Elements of M rows at one index along k. Each group of four rows has one pointer, and two
// distances serve all groups; a pointer for each row would exceed the registers.
template <class T, int M>
class RowElements {
 public:
  RowElements(const T* a, int64_t row, int64_t column)
      : row_(row * size), three_(3 * row * size), column_(column * size) {
    for (int g = 0; g < groups; ++g) {
      group_[g] = reinterpret_cast<const char*>(a + 4 * g * row);
      asm("" : "+r"(group_[g]));  // Without this the compiler recognises a common base and spills.
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

// Computes C[0..M) x [0..V vectors) = A B, plus the rows at `addend` if there are any. The last vector has `last`
// columns where the instruction set has masks. If V is 1, a row of B is also read up to `last`
// columns only; otherwise it has room for whole vectors. k and strides count packed elements, c_row
// counts elements of C; rows of B are dense. `starts` has an entry for each row if the format has
// starts.
template <class Format, int M, int V, class Element>
[[gnu::noinline]] void micro_kernel(int64_t k, const typename Format::Packed* a, int64_t a_row,
                                    int64_t a_column, const typename Format::Packed* b,
                                    int64_t b_row, Element* c, int64_t c_row, int64_t last,
                                    const Element* addend, int64_t addend_row,
                                    const PrefetchPlan& prefetch,
                                    [[maybe_unused]] const int32_t* starts) {
  using Packed = typename Format::Packed;
  using Accumulator = typename Format::Accumulator;
  using Vector = typename VectorOf<Accumulator>::type;
  constexpr int width = kWidth<Packed>;
  static_assert(sizeof(Packed) == sizeof(Accumulator));
  const VecMask<Packed> read(last);
  Vector acc[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(c + i * c_row + v * width, 1);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      acc[i][v] = Vector{};
      if constexpr (Format::kStart) acc[i][v] += starts[i];
    }
  }
  RowElements<Packed, M> elements(a, a_row, a_column);
  PrefetchPlan next = prefetch;
  const int64_t turn = std::max<int64_t>(0, k - kPrefetchRows);
  int64_t soon = kPrefetchRows * b_row;
  for (int64_t p = 0, next_prefetch = 0; p < k;) {
    if (p == next_prefetch) {
      next.issue();
      next_prefetch = k - p < next.steps ? k : p + next.steps;
    }
    // The next rows of A start again with the first rows of the panel.
    if (p == turn) soon = -turn * b_row;
    for (const int64_t end = p < turn ? std::min(next_prefetch, turn) : next_prefetch; p < end;
         ++p) {
      typename VectorOf<Packed>::type row[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        row[v] = V == 1 ? read.load(b) : VecMask<Packed>::load_all(b + v * width);
        if (V == kNRVectors<Packed> && v * kVectorBytes % 64 == 0) {
          __builtin_prefetch(b + v * width + soon);
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const auto element = Format::broadcast(elements.at(i));
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) Format::add(acc[i][v], element, row[v]);
      }
      elements.next();
      b += b_row;
    }
  }
  asm("" : "+r"(c_row));  // Without this the compiler keeps the addresses of all rows and spills.
  const VecMask<Accumulator> all_mask(width), tail_mask(last);
  const auto store = [&](bool add) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        store_accumulators(v + 1 < V ? all_mask : tail_mask, c + i * c_row + v * width, acc[i][v],
                           add ? addend + i * addend_row + v * width : nullptr);
      }
    }
  };
  addend ? store(true) : store(false);
}

// The kernels for one number of columns, for every number of rows that a register tile can have.
template <class Format, class Element>
struct Micro {
  using Packed = typename Format::Packed;
  void (*run)(int64_t, const Packed*, int64_t, int64_t, const Packed*, int64_t, Element*, int64_t,
              int64_t, const Element*, int64_t, const PrefetchPlan&, const int32_t*);
  int rows;
};

// Returns the largest kernel of at most `rows` rows.
template <class Format, int V, class Element>
Micro<Format, Element> choose_micro(int64_t rows) {
  constexpr int limit = V > 2 ? kMR / 2 : kMR;
  if (rows >= limit) return {micro_kernel<Format, limit, V, Element>, limit};
  if constexpr (limit > 8) {
    if (rows >= 8) return {micro_kernel<Format, 8, V, Element>, 8};
  }
  if (rows >= 4) return {micro_kernel<Format, 4, V, Element>, 4};
  if (rows >= 2) return {micro_kernel<Format, 2, V, Element>, 2};
  return {micro_kernel<Format, 1, V, Element>, 1};
}

// NR, the columns of one panel of B.
template <class Packed>
inline constexpr int64_t kNR = kNRVectors<Packed>* kWidth<Packed>;

}  // namespace tenon::cpu::TENON_CPU_ISA
