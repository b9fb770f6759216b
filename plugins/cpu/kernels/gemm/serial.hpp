// SPDX-License-Identifier: Apache-2.0
// One product on one thread: the way that suits its shape.
#pragma once

#include "gemm/blocked.hpp"
#include "gemm/small_m.hpp"
#include "gemm/streaming_b.hpp"
#include "gemm/transposed.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Up to this many rows, B is read once and not worth rearranging.
inline constexpr int64_t kFewRows = 8;
inline constexpr int64_t kDirectVectors = kVectorBytes == 64 ? 64 : 8;

// With fewer steps than this writing C takes longest: B is packed as a whole, which then stays in
// the second-level cache, so that rows of C are written as they lie.
inline constexpr int64_t kShallow = 64;
inline constexpr int64_t kShallowBytes = kDirectBytes / 4;

// Columns of a product that A passes by once, which costs most.
template <class Packed>
inline constexpr int64_t kNarrow = 2 * kWidth<Packed>;

// Fewer columns leave lanes of a vector idle: dot products, which fill them, are faster once they
// are long beside adding up their lanes, even if B is to be transposed for them.
template <class T>
bool wants_dots(int64_t n, int64_t k, Matrix<T> b) {
  constexpr int64_t width = kWidth<T>;
  return std::is_floating_point_v<T> && (n <= width / 2 || (b.row == 1 && n <= width * 3 / 4)) &&
         k >= 8 * width;
}

// Passes over k of such a product: so much of B stays in the second-level cache.
inline constexpr int64_t kNarrowK = 4096;

// Can a B with n columns be used where it lies?
template <class T>
bool reads_rows(int64_t n, Matrix<T> b) {
  return b.column == 1 && n <= kDirectVectors * kWidth<T> &&
         (Lanes<T>::kMasked || n % kWidth<T> == 0);
}

enum class Way { kTurned, kDots, kStreams, kNarrow, kDirect, kPassing, kBlocked };
inline const char* name_of(Way way) {
  constexpr const char* names[] = {"transposed", "dot products",  "rows of B", "narrow C",
                                   "unpacked",   "few rows of A", "blocked"};
  return names[static_cast<int>(way)];
}

// Are packed elements those that lie in memory?
template <class Format>
inline constexpr bool reads_in_place =
    std::is_same_v<typename Format::Left, typename Format::Packed>&&
        std::is_same_v<typename Format::Right, typename Format::Packed>;

template <class Format>
Way way_of(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
           Matrix<typename Format::Right> b) {
  using Packed = typename Format::Packed;
  if (suits_turned<Format>(m, n, k, b)) return Way::kTurned;
  const bool small = k * n * static_cast<int64_t>(sizeof(typename Format::Right)) < kDirectBytes;
  // Twice as many, if dot products are long beside adding up their lanes.
  const bool few = m <= kFewRows || (kVectorBytes == 64 && m <= 2 * kFewRows &&
                                     k >= 16 * static_cast<int64_t>(Format::kOperand));
  if (few && b.row == 1 && (a.column == 1 || k == 1)) return Way::kDots;
  if (m <= (small ? 2 : Format::kStreamRows) && b.column == 1) return Way::kStreams;
  if (reads_in_place<Format> && n <= kNarrow<Packed> && a.column == 1) return Way::kNarrow;
  if constexpr (reads_in_place<Format>) {
    // Columns of an A that is not near either are better packed: each step needs another line.
    const int64_t column = k * std::abs(a.column) * int64_t{sizeof(Packed)};
    const bool far = a.column != 1 && column >= kDirectBytes;
    if (small && reads_rows(n, b) && !far) return Way::kDirect;
    if (k <= kShallow && m > 64) return Way::kDirect;
  }
  // What it spans counts: it may be a share of wider rows.
  const int64_t span = k * std::abs(b.row) * static_cast<int64_t>(sizeof(typename Format::Right));
  if (m <= kPassingRows && b.column == 1 && span >= kDirectBytes) return Way::kPassing;
  return Way::kBlocked;
}

// The next rows of A, which one of the tiles beside them asks for.
template <class T>
Ahead rows_ahead(Matrix<T> a, int64_t i, int64_t rows, int64_t k, Share share) {
  return ahead_of<1>(Matrix<T>{a.data + i * a.row, a.column, a.row}, k, rows, share);
}

// Columns of a shallow B that are packed together.
template <class T>
int64_t shallow_columns(int64_t n, int64_t k) {
  constexpr int64_t panel = kPanel<T>, size = sizeof(T);
  return std::min((n + panel - 1) / panel,
                  std::max(int64_t{1}, kShallowBytes / (std::max(int64_t{1}, k) * panel * size))) *
         panel;
}

// B used where it lies, or packed before A is read.
template <class T>
void multiply_direct(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c, int64_t c_row,
                     bool accumulate, void* memory) {
  constexpr int64_t panel = kPanel<T>;
  const bool near = m * k * static_cast<int64_t>(sizeof(T)) < kDirectBytes;  // is A
  // Where C is near as well, a shallow panel stays in the first-level cache while A passes by.
  const bool by_panels =
      near && k <= kShallow && m * n * static_cast<int64_t>(sizeof(T)) <= kDirectBytes;
  const bool packs = !reads_rows(n, b);
  const int64_t block = packs ? shallow_columns<T>(n, k) : n;
  T* packed = static_cast<T*>(memory);
  for (int64_t jb = 0; jb < n; jb += block) {
    const int64_t end = std::min(n, jb + block), panels = (end - jb + panel - 1) / panel;
    for (int64_t j = jb; packs && j < end; j += panel) {
      pack_panel(Plain<T>(), {b.data + j * b.column, b.row, b.column}, k, std::min(panel, end - j),
                 packed + (j - jb) * k);
    }
    const auto tile = [&](int64_t i, int64_t rows, int64_t j, Ahead next) {
      run_tile<Plain<T>>(rows, std::min(panel, end - j), k, a.data + i * a.row, a.row, a.column,
                         packs ? packed + (j - jb) * k : b.data + j, packs ? panel : b.row,
                         MatrixTarget<T>{c, c_row}, i, j, accumulate, next, nullptr, packs);
    };
    for (int64_t j = jb; by_panels && j < end; j += panel) tile(0, m, j, {});
    for (int64_t i = 0; !by_panels && i < m; i += kTileRows) {
      for (int64_t j = jb; j < end; j += panel) {
        Ahead next;
        if (!near) next = rows_ahead(a, i + kTileRows, kTileRows, k, {(j - jb) / panel, panels});
        tile(i, std::min<int64_t>(kTileRows, m - i), j, next);
      }
    }
  }
}

// n columns made dense along k. They are not a power of two apart: the sets of the cache differ.
template <class T>
Matrix<T> transposed_columns(Matrix<T> b, int64_t k, int64_t n, T* to) {
  const int64_t column = k + kWidth<T>;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) to[j * column + p] = b.data[p * b.row + j * b.column];
  }
  return {to, 1, column};
}

// C of few columns: A, of which each element is read once, is used where it lies. If it comes from
// afar in tiles of eight rows: the processor follows as many at once, and as many that are a
// multiple of 4 KiB apart have room in the first-level cache.
template <class Format>
void multiply_narrow(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                     Matrix<typename Format::Right> b, typename Format::Sum* c, int64_t c_row,
                     bool accumulate, void* memory) {
  using T = typename Format::Packed;
  const bool near = m * k * static_cast<int64_t>(sizeof(T)) < kDirectBytes;
  const int64_t rows = near ? kTileRows : std::min(8, kTileRows);
  const bool whole = Lanes<T>::kMasked || n % kWidth<T> == 0;
  const bool packs = b.column != 1 || !whole, dots = wants_dots(n, k, b);
  const bool collide = a.row * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
  for (int64_t p = 0; p < k; p += kNarrowK) {
    const int64_t length = std::min(kNarrowK, k - p);
    const Matrix<T> left{a.data + p * a.column, a.row, a.column};
    Matrix<T> right{b.data + p * b.row, b.row, b.column};
    if (dots) {
      if (b.row != 1) right = transposed_columns(right, length, n, static_cast<T*>(memory));
      multiply_dots<Format>(m, n, length, left, right, c, c_row, accumulate || p > 0);
      continue;
    }
    if (packs) pack_panel(Format(), right, length, n, static_cast<T*>(memory));
    Ahead next;
    if (!collide) next = rows_ahead(left, rows, rows, length, {0, 1});
    for (int64_t i = 0; i < m;
         i += rows, next.at += rows * a.row * static_cast<int64_t>(sizeof(T))) {
      run_tile<Format>(std::min(rows, m - i), n, length, left.data + i * a.row, a.row, a.column,
                       packs ? static_cast<const T*>(memory) : right.data,
                       packs ? kPanel<T> : b.row, MatrixTarget<T>{c, c_row}, i, 0,
                       accumulate || p > 0, next, nullptr, packs);
    }
  }
}

// Bytes that multiply() packs into, for any m rows and n columns of a product or fewer: the last of
// its tiles may go a way of its own.
template <class Format>
int64_t scratch_bytes(int64_t m, int64_t n, int64_t k) {
  using Packed = typename Format::Packed;
  int64_t elements = 0;
  if constexpr (reads_in_place<Format>) {
    const int64_t narrow = (std::min(k, kNarrowK) + kWidth<Packed>)*kPanel<Packed>;
    elements = k <= kShallow ? std::max(narrow, shallow_columns<Packed>(n, k) * k) : narrow;
  }
  return std::max({elements * int64_t{sizeof(Packed)}, blocked_bytes<Format>(m, n),
                   passing_bytes<Format>(std::min(m, kPassingRows)), turned_bytes<Format>(m, k)});
}

// C = A B, or C += A B. `memory` has scratch_bytes() bytes.
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
    case Way::kTurned:
      if constexpr (turns<Format>) {
        multiply_turned<Format>(m, n, k, a, b, c, c_row, accumulate, memory);
      }
      return;
    case Way::kDots:
      return multiply_dots<Format>(m, n, k, a, b, c, c_row, accumulate);
    case Way::kStreams:
      return multiply_streams<Format>(m, n, k, a, b, c, c_row, accumulate);
    case Way::kNarrow:
      if constexpr (reads_in_place<Format>) {
        multiply_narrow<Format>(m, n, k, a, b, c, c_row, accumulate, memory);
      }
      return;
    case Way::kDirect:
      if constexpr (reads_in_place<Format>)
        multiply_direct(m, n, k, a, b, c, c_row, accumulate, memory);
      return;
    case Way::kPassing:
      return multiply_passing<Format>(m, n, k, a, b, c, c_row, accumulate, memory);
    case Way::kBlocked:
      return multiply_blocked<typename Format::Product>(
          m, n, k, MatrixRows<Format>{a}, MatrixPanels<Format>{b}, MatrixTarget<Sum>{c, c_row},
          accumulate, memory);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
