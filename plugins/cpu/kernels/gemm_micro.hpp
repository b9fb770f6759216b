// SPDX-License-Identifier: Apache-2.0
// The innermost loop of matrix products: an M x V tile of C, V in vectors, kept in registers while it
// runs along k. Written with the compiler's vector types, so that one source serves every instruction
// set and every element type that vectors exist for.
#pragma once

#include "isa.hpp"

#include <cstdint>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {

// Elements of T in one vector.
template <class T>
inline constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));

// The register tile: accumulators, two vectors of B and one of A fill the registers.
inline constexpr int kTileRows = kVectorBytes == 64 ? 12 : 6;
inline constexpr int kTileVectors = 2;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), may_alias));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// C[0..M) x [0..V vectors) = A * B, plus C where `accumulate`. Strides are in elements; rows of B are
// dense.
template <class T, int M, int V>
[[gnu::noinline]] void micro_kernel(int64_t k, const T* a, int64_t a_row, int64_t a_column,
                                    const T* b, int64_t b_row, T* c, int64_t c_row,
                                    bool accumulate) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  Vector sum[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = Vector{};
  }
  for (int64_t p = 0; p < k; ++p) {
    Vector row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = *reinterpret_cast<const Unaligned*>(b + v * kWidth<T>);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const T element = a[i * a_row];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] += element * row[v];
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      auto* to = reinterpret_cast<Unaligned*>(c + i * c_row + v * kWidth<T>);
      *to = accumulate ? *to + sum[i][v] : sum[i][v];
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
