// SPDX-License-Identifier: Apache-2.0
// Products of few rows of A: what they cost is reading B, once and in order.
#pragma once

#include "gemm.hpp"
#include "gemm_micro.hpp"

#include <algorithm>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {

// The lanes added up, halves at a time.
template <class T>
T sum_of(typename VectorOf<T>::type vector) {
  alignas(kVectorBytes) T lanes[kWidth<T>];
  std::memcpy(lanes, &vector, sizeof lanes);
#pragma GCC unroll 6
  for (int half = kWidth<T> / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = static_cast<T>(lanes[l] + lanes[l + half]);
  }
  return lanes[0];
}

// M rows of A against Q columns of B, all dense along k: M x Q dot products. Unrolled U times, so
// that enough sums are under way.
template <class Format, int M, int Q, int U>
void dot_tile(int64_t k, const typename Format::Source* a, int64_t a_row,
              const typename Format::Source* const* columns, typename Format::Sum* c, int64_t c_row,
              int64_t c_columns, bool accumulate) {
  using Source = typename Format::Source;
  using Sum = typename Format::Sum;
  using Packed = typename Format::Packed;
  constexpr int64_t width = kWidth<Source>;
  using Operand = typename VectorOf<Packed>::type;
  const Lanes<Source> all(width);
  typename VectorOf<Sum>::type sum[U][M][Q] = {};
  int64_t p = 0;
  for (; p + U * width <= k; p += U * width) {
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      Operand column[Q];
#pragma GCC unroll 4
      for (int q = 0; q < Q; ++q) column[q] = Operand(all.load(columns[q] + p + u * width));
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        const auto x = Operand(all.load(a + i * a_row + p + u * width));
#pragma GCC unroll 4
        for (int q = 0; q < Q; ++q) Format::add(sum[u][i][q], x, column[q]);
      }
    }
  }
  if constexpr (Lanes<Source>::kMasked) {
    for (; p < k; p += width) {
      const Lanes<Source> some(k - p);
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        const auto x = Operand(some.load(a + i * a_row + p));
#pragma GCC unroll 4
        for (int q = 0; q < Q; ++q)
          Format::add(sum[0][i][q], x, Operand(some.load(columns[q] + p)));
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) {
      if (q >= c_columns) break;
      auto vector = sum[0][i][q];
      for (int u = 1; u < U; ++u) vector += sum[u][i][q];
      Sum total = sum_of<Sum>(vector);
      for (int64_t r = p; r < k; ++r) {
        total = static_cast<Sum>(total +
                                 Format::value(a[i * a_row + r]) * Format::value(columns[q][r]));
      }
      Sum& to = c[i * c_row + q];
      to = accumulate ? static_cast<Sum>(to + total) : total;
    }
  }
}

// Few rows of A, dense, against a B that is dense along k.
template <class Format>
void multiply_dots(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Source> a,
                   Matrix<typename Format::Source> b, typename Format::Sum* c, int64_t c_row,
                   bool accumulate) {
  for (int64_t j = 0; j < n; j += 4) {
    const int64_t some = std::min<int64_t>(4, n - j);
    // Past the end, the last column stands in.
    const typename Format::Source* columns[4];
    for (int q = 0; q < 4; ++q) columns[q] = b.data + std::min<int64_t>(j + q, n - 1) * b.column;
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
      dot_tile<Format, 4, 4, 1>(k, a.data + i * a.row, a.row, columns, c + i * c_row + j, c_row,
                                some, accumulate);
    }
    for (; i < m; ++i) {
      dot_tile<Format, 1, 4, 2>(k, a.data + i * a.row, a.row, columns, c + i * c_row + j, c_row,
                                some, accumulate);
    }
  }
}

// Few rows of A against a B with dense rows: four rows of B at a time are added to C.
template <class Format>
void multiply_streams(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Source> a,
                      Matrix<typename Format::Source> b, typename Format::Sum* c, int64_t c_row,
                      bool accumulate) {
  using Source = typename Format::Source;
  using Sum = typename Format::Sum;
  // Of the rows of C: they stay in the first-level cache, while rows of B are long enough for the
  // processor to see where they go on.
  const int64_t block = std::max<int64_t>(1024 / sizeof(Sum), 16384 / sizeof(Sum) / m);
  for (int64_t jb = 0; jb < n; jb += block) {
    const int64_t columns = std::min(block, n - jb);
    for (int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * c_row + jb, columns, Sum(0));
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const Source* r0 = b.data + p * b.row + jb;
      const Source *r1 = r0 + b.row, *r2 = r1 + b.row, *r3 = r2 + b.row;
      for (int64_t i = 0; i < m; ++i) {
        const Source* x = a.data + i * a.row + p * a.column;
        const Sum x0 = Format::value(x[0]), x1 = Format::value(x[a.column]),
                  x2 = Format::value(x[2 * a.column]), x3 = Format::value(x[3 * a.column]);
        Sum* __restrict to = c + i * c_row + jb;
        for (int64_t j = 0; j < columns; ++j) {
          to[j] = static_cast<Sum>(to[j] + (x0 * Format::value(r0[j]) + x1 * Format::value(r1[j])) +
                                   (x2 * Format::value(r2[j]) + x3 * Format::value(r3[j])));
        }
      }
    }
    for (; p < k; ++p) {
      const Source* r = b.data + p * b.row + jb;
      for (int64_t i = 0; i < m; ++i) {
        const Sum x = Format::value(a.data[i * a.row + p * a.column]);
        Sum* __restrict to = c + i * c_row + jb;
        for (int64_t j = 0; j < columns; ++j) {
          to[j] = static_cast<Sum>(to[j] + x * Format::value(r[j]));
        }
      }
    }
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
