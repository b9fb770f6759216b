// SPDX-License-Identifier: Apache-2.0
// One GEMM on one thread, with the algorithm that suits its shape.
#pragma once

#include "gemm/blocked.hpp"
#include "gemm/small_m.hpp"
#include "gemm/streaming_b.hpp"
#include "gemm/transposed.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Up to this many rows of A, B is read once and packing it does not pay off.
inline constexpr int64_t kSmallM = 8;
inline constexpr int64_t kUnpackedVectors = kVectorBytes == 64 ? 64 : 8;

// For a smaller k, writing C takes longest. B is packed whole and stays in the L2 cache, so that C
// is written row by row.
inline constexpr int64_t kSmallK = 64;
inline constexpr int64_t kSmallKBytes = kUnpackedBytes / 4;

// Up to this many columns of C, A is read once, which dominates the time.
template <class Packed>
inline constexpr int64_t kSmallN = 2 * kWidth<Packed>;

// Fewer columns leave elements of a vector idle. Dot products along k use whole vectors and are
// faster once k is large compared with the final horizontal addition, even if B must be transposed
// for them.
template <class T>
bool suits_dots(int64_t n, int64_t k, Matrix<T> b) {
  constexpr int64_t width = kWidth<T>;
  return std::is_floating_point_v<T> && (n <= width / 2 || (b.row == 1 && n <= width * 3 / 4)) &&
         k >= 8 * width;
}

// Length of a pass over k for small n: this much of B stays in the L2 cache.
inline constexpr int64_t kSmallNKC = 4096;

// True if a B of n columns can be used in place.
template <class T>
bool reads_rows(int64_t n, Matrix<T> b) {
  return b.column == 1 && n <= kUnpackedVectors * kWidth<T> &&
         (VecMask<T>::kMasked || n % kWidth<T> == 0);
}

enum class Algorithm { kTransposed, kDots, kStreamB, kSmallN, kDirect, kStreamBlocks, kBlocked };
inline const char* name_of(Algorithm algorithm) {
  constexpr const char* names[] = {"transposed",       "dot products", "streamed B",
                                   "few columns of C", "unpacked",     "streamed blocks of B",
                                   "blocked"};
  return names[static_cast<int>(algorithm)];
}

// True if packed elements are those in memory.
template <class Format>
inline constexpr bool reads_in_place =
    std::is_same_v<typename Format::Left, typename Format::Packed>&&
        std::is_same_v<typename Format::Right, typename Format::Packed>;

template <class Format>
Algorithm choose_algorithm(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                           Matrix<typename Format::Right> b) {
  using Packed = typename Format::Packed;
  if (suits_transposed<Format>(m, n, k, b)) return Algorithm::kTransposed;
  const bool small = k * n * static_cast<int64_t>(sizeof(typename Format::Right)) < kUnpackedBytes;
  // The limit doubles where dot products are long compared with their horizontal addition.
  const bool few = m <= kSmallM || (kVectorBytes == 64 && m <= 2 * kSmallM &&
                                    k >= 16 * static_cast<int64_t>(Format::kOperand));
  if (few && b.row == 1 && (a.column == 1 || k == 1)) return Algorithm::kDots;
  if (m <= (small ? 2 : Format::kMaxStreamRows) && b.column == 1) return Algorithm::kStreamB;
  if (reads_in_place<Format> && n <= kSmallN<Packed> && a.column == 1) return Algorithm::kSmallN;
  if constexpr (reads_in_place<Format>) {
    // An A whose columns exceed the L2 cache is packed: each step along k would read another cache
    // line.
    const int64_t column = k * std::abs(a.column) * int64_t{sizeof(Packed)};
    const bool far = a.column != 1 && column >= kUnpackedBytes;
    if (small && reads_rows(n, b) && !far) return Algorithm::kDirect;
    if (k <= kSmallK && m > 64) return Algorithm::kDirect;
  }
  // The distance between the first and last row counts, because B may be a slice of wider rows.
  const int64_t span = k * std::abs(b.row) * static_cast<int64_t>(sizeof(typename Format::Right));
  if (m <= kMaxStreamBlocksRows && b.column == 1 && span >= kUnpackedBytes)
    return Algorithm::kStreamBlocks;
  return Algorithm::kBlocked;
}

// Plans the prefetch of the next rows of A; each tile of the current rows issues one chunk.
template <class T>
PrefetchPlan prefetch_rows(Matrix<T> a, int64_t i, int64_t rows, int64_t k, Chunk chunk) {
  return prefetch_of<1>(Matrix<T>{a.data + i * a.row, a.column, a.row}, k, rows, chunk);
}

// Columns that are packed in one block if k is small.
template <class T>
int64_t small_k_columns(int64_t n, int64_t k) {
  constexpr int64_t panel = kNR<T>, size = sizeof(T);
  return std::min((n + panel - 1) / panel,
                  std::max(int64_t{1}, kSmallKBytes / (std::max(int64_t{1}, k) * panel * size))) *
         panel;
}

// Uses B in place, or packs it before A is read.
template <class T>
void multiply_unpacked(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, T* c,
                       int64_t c_row, bool accumulate, Addend<T> addend, void* memory) {
  constexpr int64_t panel = kNR<T>;
  // True if A stays in the L2 cache.
  const bool near = m * k * static_cast<int64_t>(sizeof(T)) < kUnpackedBytes;
  // If C stays in the L2 cache as well, a panel with small k stays in L1 while all of A streams
  // past it.
  const bool by_panels =
      near && k <= kSmallK && m * n * static_cast<int64_t>(sizeof(T)) <= kUnpackedBytes;
  const bool packs = !reads_rows(n, b);
  const int64_t block = packs ? small_k_columns<T>(n, k) : n;
  T* packed = static_cast<T*>(memory);
  for (int64_t jb = 0; jb < n; jb += block) {
    const int64_t end = std::min(n, jb + block), panels = (end - jb + panel - 1) / panel;
    for (int64_t j = jb; packs && j < end; j += panel) {
      pack_panel(Plain<T>(), {b.data + j * b.column, b.row, b.column}, k, std::min(panel, end - j),
                 packed + (j - jb) * k);
    }
    const auto tile = [&](int64_t i, int64_t rows, int64_t j, PrefetchPlan next) {
      run_tile<Plain<T>>(rows, std::min(panel, end - j), k, a.data + i * a.row, a.row, a.column,
                         packs ? packed + (j - jb) * k : b.data + j, packs ? panel : b.row,
                         MatrixEpilogue<T>{c, c_row, addend}, i, j, accumulate, next, nullptr,
                         packs);
    };
    for (int64_t j = jb; by_panels && j < end; j += panel) tile(0, m, j, {});
    for (int64_t i = 0; !by_panels && i < m; i += kMR) {
      for (int64_t j = jb; j < end; j += panel) {
        PrefetchPlan next;
        if (!near) next = prefetch_rows(a, i + kMR, kMR, k, {(j - jb) / panel, panels});
        tile(i, std::min<int64_t>(kMR, m - i), j, next);
      }
    }
  }
}

// Copies n columns so that they are dense along k. Their distance is not a power of two, so that
// they use different sets of the cache.
template <class T>
Matrix<T> transposed_columns(Matrix<T> b, int64_t k, int64_t n, T* to) {
  const int64_t column = k + kWidth<T>;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) to[j * column + p] = b.data[p * b.row + j * b.column];
  }
  return {to, 1, column};
}

// C has few columns: each element of A is read once, in place. If A exceeds the L2 cache, tiles
// have eight rows: the hardware prefetcher follows as many streams, and eight rows at a multiple of
// 4 KiB fit the L1 cache.
template <class Format>
void multiply_small_n(int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
                      Matrix<typename Format::Right> b, typename Format::Accumulator* c,
                      int64_t c_row, bool accumulate, void* memory) {
  using T = typename Format::Packed;
  const bool near = m * k * static_cast<int64_t>(sizeof(T)) < kUnpackedBytes;
  const int64_t rows = near ? kMR : std::min(8, kMR);
  const bool whole = VecMask<T>::kMasked || n % kWidth<T> == 0;
  const bool packs = b.column != 1 || !whole, dots = suits_dots(n, k, b);
  const bool collide = a.row * static_cast<int64_t>(sizeof(T)) % 4096 == 0;
  for (int64_t p = 0; p < k; p += kSmallNKC) {
    const int64_t length = std::min(kSmallNKC, k - p);
    const Matrix<T> left{a.data + p * a.column, a.row, a.column};
    Matrix<T> right{b.data + p * b.row, b.row, b.column};
    if (dots) {
      if (b.row != 1) right = transposed_columns(right, length, n, static_cast<T*>(memory));
      multiply_dots<Format>(m, n, length, left, right, c, c_row, accumulate || p > 0);
      continue;
    }
    if (packs) pack_panel(Format(), right, length, n, static_cast<T*>(memory));
    PrefetchPlan next;
    if (!collide) next = prefetch_rows(left, rows, rows, length, {0, 1});
    for (int64_t i = 0; i < m;
         i += rows, next.at += rows * a.row * static_cast<int64_t>(sizeof(T))) {
      run_tile<Format>(std::min(rows, m - i), n, length, left.data + i * a.row, a.row, a.column,
                       packs ? static_cast<const T*>(memory) : right.data, packs ? kNR<T> : b.row,
                       MatrixEpilogue<T>{c, c_row}, i, 0, accumulate || p > 0, next, nullptr,
                       packs);
    }
  }
}

// A matrix times a column equals a row times the transposed matrix, whose algorithms are faster.
inline bool is_column(int64_t m, int64_t n, int64_t c_row) { return n == 1 && m > 1 && c_row == 1; }

// Bytes that multiply() needs for packing with this algorithm, for products of at most m rows and n
// columns.
template <class Format>
int64_t scratch_bytes(Algorithm algorithm, int64_t m, int64_t n, int64_t k) {
  using Packed = typename Format::Packed;
  constexpr int64_t size = sizeof(Packed);
  switch (algorithm) {
    case Algorithm::kDots:
    case Algorithm::kStreamB:
      return 0;
    case Algorithm::kTransposed:
      return transposed_bytes<Format>(m, k);
    case Algorithm::kSmallN:
      return (std::min(k, kSmallNKC) + kWidth<Packed>)*kNR<Packed> * size;
    case Algorithm::kDirect:
      return k <= kSmallK ? small_k_columns<Packed>(n, k) * k * size : 0;
    case Algorithm::kStreamBlocks:
      return stream_blocks_bytes<Format>(std::min(m, kMaxStreamBlocksRows));
    case Algorithm::kBlocked:
      return blocked_bytes<Format>(m, n);
  }
  return 0;
}

// Computes C = A B, or C += A B or plus `addend` if `accumulate`. `memory` has scratch_bytes() bytes. The algorithm is chosen for the
// whole product of which this may be a tile, so that an element has the same result in every
// partition for threads.
template <class Format>
void multiply(Algorithm algorithm, int64_t m, int64_t n, int64_t k, Matrix<typename Format::Left> a,
              Matrix<typename Format::Right> b, typename Format::Accumulator* c, int64_t c_row,
              bool accumulate, Addend<typename Format::Accumulator> addend, void* memory) {
  using Accumulator = typename Format::Accumulator;
  const bool stores_sums = !uses_amx<typename Format::Product> && k > 0 &&
                           (algorithm == Algorithm::kTransposed ||
                            algorithm == Algorithm::kDirect || algorithm == Algorithm::kBlocked);
  if (addend.data && !stores_sums) {
    for (int64_t i = 0; i < m; ++i) std::copy_n(addend.data + i * addend.row, n, c + i * c_row);
    addend = {};
  }
  if (k == 0) {
    for (int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * c_row, n, Accumulator(0));
    return;
  }
  switch (algorithm) {
    case Algorithm::kTransposed:
      if constexpr (transposes<Format>) {
        multiply_transposed<Format>(m, n, k, a, b, c, c_row, accumulate, addend, memory);
      }
      return;
    case Algorithm::kDots:
      return multiply_dots<Format>(m, n, k, a, b, c, c_row, accumulate);
    case Algorithm::kStreamB:
      return multiply_stream_b<Format>(m, n, k, a, b, c, c_row, accumulate);
    case Algorithm::kSmallN:
      if constexpr (reads_in_place<Format>) {
        multiply_small_n<Format>(m, n, k, a, b, c, c_row, accumulate, memory);
      }
      return;
    case Algorithm::kDirect:
      if constexpr (reads_in_place<Format>)
        multiply_unpacked(m, n, k, a, b, c, c_row, accumulate, addend, memory);
      return;
    case Algorithm::kStreamBlocks:
      return multiply_stream_blocks<Format>(m, n, k, a, b, c, c_row, accumulate, memory);
    case Algorithm::kBlocked:
      return multiply_blocked<typename Format::Product>(
          m, n, k, MatrixRows<Format>{a}, MatrixPanels<Format>{b},
          MatrixEpilogue<Accumulator>{c, c_row, addend}, accumulate, memory);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
