// SPDX-License-Identifier: Apache-2.0
// One product on one thread: the way that suits its shape.
#pragma once

#include "gemm_blocked.hpp"
#include "gemm_few_rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Up to this many rows, B is read once and not worth rearranging.
inline constexpr int64_t kFewRows = 8;
// A smaller B is used where it lies: it fits a second-level cache, and packing it would cost more
// than its rows being apart. AVX-512 comes with larger caches.
inline constexpr int64_t kDirectBytes = (kVectorBytes == 64 ? 1024 : 192) * 1024;
inline constexpr int64_t kDirectPanels = kVectorBytes == 64 ? 32 : 4;

enum class Way { kDots, kStreams, kDirect, kBlocked };

// Are packed elements those that lie in memory?
template <class Format>
inline constexpr bool reads_in_place =
    std::is_same_v<typename Format::Left, typename Format::Packed>&&
        std::is_same_v<typename Format::Right, typename Format::Packed>;

template <class Format>
Way way_of(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
           Matrix<typename Format::Right> b) {
  using Packed = typename Format::Packed;
  const bool small = k * n * static_cast<int64_t>(sizeof(typename Format::Right)) < kDirectBytes;
  // Twice as many, if dot products are long beside adding up their lanes.
  const bool few = m <= kFewRows || (kVectorBytes == 64 && m <= 2 * kFewRows &&
                                     k >= 16 * static_cast<int64_t>(Format::kOperand));
  if (few && b.row == 1 && (a.column == 1 || k == 1)) return Way::kDots;
  if (m <= (small ? 2 : Format::kStreamRows) && b.column == 1) return Way::kStreams;
  const bool ragged = n % kWidth<Packed> != 0;
  if (reads_in_place<Format> && small && b.column == 1 && n <= kDirectPanels * kPanel<Packed> &&
      (Lanes<Packed>::kMasked || !ragged)) {
    return Way::kDirect;
  }
  return Way::kBlocked;
}

// B used where it lies.
template <class T>
void multiply_direct(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                     bool accumulate) {
  for (int64_t j = 0; j < n; j += kPanel<T>) {
    run_tile<Plain<T>>(m, std::min(kPanel<T>, n - j), k, a.data, a.row, a.column, b.data + j, b.row,
                       MatrixTarget<T>{c, c_row}, 0, j, accumulate);
  }
}

// C = A B, or C += A B. `memory` has blocked_bytes() bytes; kBlocked alone uses it.
template <class Format>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
              Matrix<typename Format::Right> b, typename Format::Sum* c, int64_t c_row,
              bool accumulate, void* memory) {
  using Sum = typename Format::Sum;
  if (k == 0) {
    for (int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * c_row, n, Sum(0));
    return;
  }
  if (n == 1 && m > 1 && c_row == 1) {  // the same as a row times the transpose
    return multiply<typename Format::Swapped>(1, m, k, {b.data, b.column, b.row},
                                              {a.data, a.column, a.row}, c, m, accumulate, memory);
  }
  switch (way_of<Format>(m, n, k, a, b)) {
    case Way::kDots:
      return multiply_dots<Format>(m, n, k, a, b, c, c_row, accumulate);
    case Way::kStreams:
      return multiply_streams<Format>(m, n, k, a, b, c, c_row, accumulate);
    case Way::kDirect:
      if constexpr (reads_in_place<Format>) multiply_direct(m, n, k, a, b, c, c_row, accumulate);
      return;
    case Way::kBlocked:
      return multiply_blocked<typename Format::Product>(
          m, n, k, MatrixRows<Format>{a}, MatrixPanels<Format>{b}, MatrixTarget<Sum>{c, c_row},
          accumulate, memory);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
