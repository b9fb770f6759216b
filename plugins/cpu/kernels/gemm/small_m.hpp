// SPDX-License-Identifier: Apache-2.0
// GEMM of few rows of A. Reading B dominates the time, so B is read once and in order.
#pragma once

#include "gemm/gemm.hpp"
#include "gemm/micro_kernel.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

// Adds up the elements of a vector by halving it.
template <class T>
T sum_of(typename VectorOf<T>::type vector) {
  alignas(kVectorBytes) T mask[kWidth<T>];
  std::memcpy(mask, &vector, sizeof mask);
#pragma GCC unroll 6
  for (int half = kWidth<T> / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) mask[l] = static_cast<T>(mask[l] + mask[l + half]);
  }
  return mask[0];
}

// M rows of A times Q columns of B, all dense along k: M x Q dot products, unrolled U times so that
// enough independent accumulators hide the latency.
template <class Format, int M, int Q, int U>
void dot_tile(int64_t k, const typename Format::Left* a, int64_t a_row,
              const typename Format::Right* const* columns, typename Format::Accumulator* c,
              int64_t c_row, int64_t c_columns, bool accumulate) {
  using Accumulator = typename Format::Accumulator;
  using Operand = typename Format::Operand;
  constexpr int64_t width = Format::kOperand;
  typename VectorOf<Accumulator>::type acc[U][M][Q] = {};
  // The contribution of a column of shifted zeros, for formats that shift B.
  [[maybe_unused]] typename VectorOf<Accumulator>::type moved[M] = {};
  int64_t p = 0;
  for (; p + U * width <= k; p += U * width) {
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      Operand column[Q];
#pragma GCC unroll 4
      for (int q = 0; q < Q; ++q) column[q] = Format::operand(columns[q] + p + u * width);
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        const Operand x = Format::operand(a + i * a_row + p + u * width);
#pragma GCC unroll 4
        for (int q = 0; q < Q; ++q) Format::dot(acc[u][i][q], x, column[q]);
        if constexpr (Format::kStart) Format::dot(moved[i], x, Operand{});
      }
    }
  }
  if constexpr (VecMask<Accumulator>::kMasked) {
    for (; p < k; p += width) {
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        const Operand x = Format::operand(a + i * a_row + p, k - p);
#pragma GCC unroll 4
        for (int q = 0; q < Q; ++q)
          Format::dot(acc[0][i][q], x, Format::operand(columns[q] + p, k - p));
        if constexpr (Format::kStart) Format::dot(moved[i], x, Operand{});
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) {
      if (q >= c_columns) break;
      auto vector = acc[0][i][q];
      for (int u = 1; u < U; ++u) vector += acc[u][i][q];
      if constexpr (Format::kStart) vector -= moved[i];
      Accumulator total = sum_of<Accumulator>(vector);
      for (int64_t r = p; r < k; ++r) {
        total = static_cast<Accumulator>(total + Format::value(a[i * a_row + r]) *
                                                     Format::value(columns[q][r]));
      }
      Accumulator& to = c[i * c_row + q];
      to = accumulate ? static_cast<Accumulator>(to + total) : total;
    }
  }
}

// Rows of A per call, limited by the number of registers.
inline constexpr int kRowsTogether = kVectorBytes == 64 ? 4 : 2;

// Few rows or columns of C: A is dense along its rows and B along its columns. Each part of the
// longer operand is read once.
template <class Format>
void multiply_dots(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                   Matrix<typename Format::Right> b, typename Format::Accumulator* c, int64_t c_row,
                   bool accumulate) {
  constexpr int together = kRowsTogether;
  const auto tile = [&]<int M, int U>(int64_t i, int64_t j) {
    // The last column also stands in for columns past the end.
    const typename Format::Right* columns[4];
    for (int q = 0; q < 4; ++q) columns[q] = b.data + std::min<int64_t>(j + q, n - 1) * b.column;
    dot_tile<Format, M, 4, U>(k, a.data + i * a.row, a.row, columns, c + i * c_row + j, c_row,
                              std::min<int64_t>(4, n - j), accumulate);
  };
  // Computes columns [first, last).
  const auto rows = [&](int64_t first, int64_t last) {
    const auto across = [&]<int M, int U>(int64_t i) {
      for (int64_t j = first; j < last; j += 4) tile.template operator()<M, U>(i, j);
    };
    int64_t i = 0;
    for (; i + together <= m; i += together) across.template operator()<together, 1>(i);
    for (; i < m; ++i) across.template operator()<1, 2>(i);
  };
  if (m > n) return rows(0, n);
  for (int64_t j = 0; j < n; j += 4) rows(j, std::min(j + 4, n));
}

// Computes C += A B for M rows of A and K rows of B, `columns` long. A converted element of B
// serves all M rows.
template <class Format, int M, int K>
void stream_tile(int64_t columns, Matrix<typename Format::Left> a, const typename Format::Right* b,
                 int64_t b_row, typename Format::Accumulator* c, int64_t c_row) {
  using Accumulator = typename Format::Accumulator;
  using Vector = typename VectorOf<Accumulator>::type;
  constexpr int64_t width = kWidth<Accumulator>;
  Accumulator x[M][K];
  for (int i = 0; i < M; ++i) {
    for (int p = 0; p < K; ++p) x[i][p] = Format::value(a.data[i * a.row + p * a.column]);
  }
  int64_t j = 0;
  const auto step = [&](const VecMask<Accumulator>& mask, int64_t count) {
    Vector row[K];
#pragma GCC unroll 8
    for (int p = 0; p < K; ++p) row[p] = Format::elements(b + p * b_row + j, count);
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
      Vector acc = mask.load(c + i * c_row + j), next = {};
#pragma GCC unroll 8
      for (int p = 0; p < K; ++p) (p % 2 ? next : acc) += x[i][p] * row[p];
      mask.store(c + i * c_row + j, acc + next);
    }
  };
  for (; j + width <= columns; j += width) step(VecMask<Accumulator>(width), width);
  if constexpr (VecMask<Accumulator>::kMasked) {
    if (j < columns) step(VecMask<Accumulator>(columns - j), columns - j);
  } else {
    for (; j < columns; ++j) {
      for (int i = 0; i < M; ++i) {
        Accumulator acc = c[i * c_row + j];
        for (int p = 0; p < K; ++p) {
          acc = static_cast<Accumulator>(acc + x[i][p] * Format::value(b[p * b_row + j]));
        }
        c[i * c_row + j] = acc;
      }
    }
  }
}

// Few rows of A times a B with dense rows: four rows of B at a time are added to C, or eight if C
// has one row.
template <class Format>
void multiply_stream_b(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                       Matrix<typename Format::Right> b, typename Format::Accumulator* c,
                       int64_t c_row, bool accumulate) {
  using Accumulator = typename Format::Accumulator;
  constexpr int together = kRowsTogether;
  // Length of a block of the rows of C. The block stays in the L1 cache, while rows of B remain
  // long enough for the hardware prefetcher. Whole vectors, so that the columns which are added one by one, in
  // another order, are the last ones of the product in every partition.
  const int64_t block = rounded_up<kWidth<Accumulator>>(
      std::max<int64_t>(1024 / sizeof(Accumulator), 16384 / sizeof(Accumulator) / m));
  for (int64_t jb = 0; jb < n; jb += block) {
    const int64_t columns = std::min(block, n - jb);
    for (int64_t i = 0; i < m && !accumulate; ++i)
      std::fill_n(c + i * c_row + jb, columns, Accumulator(0));
    const auto rows = [&]<int K>(std::integral_constant<int, K>, int64_t p) {
      int64_t i = 0;
      const auto tile = [&]<int M>(std::integral_constant<int, M>) {
        stream_tile<Format, M, K>(columns, {a.data + i * a.row + p * a.column, a.row, a.column},
                                  b.data + p * b.row + jb, b.row, c + i * c_row + jb, c_row);
        i += M;
      };
      while (i + together <= m) tile(std::integral_constant<int, together>());
      while (i < m) tile(std::integral_constant<int, 1>());
    };
    int64_t p = 0;
    for (; m == 1 && p + 8 <= k; p += 8) rows(std::integral_constant<int, 8>(), p);
    for (; p + 4 <= k; p += 4) rows(std::integral_constant<int, 4>(), p);
    for (; p < k; ++p) rows(std::integral_constant<int, 1>(), p);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
