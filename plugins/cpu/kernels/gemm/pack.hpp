// SPDX-License-Identifier: Apache-2.0
// Packing: copies operands of a GEMM into the order in which the micro-kernel reads them.
#pragma once

#include "gemm/gemm.hpp"
#include "gemm/micro_kernel.hpp"
#include "simd/transpose.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {

// Combines two 16-bit sources into one packed element.
inline uint32_t pair_of(uint16_t first, uint16_t second) {
  return first | static_cast<uint32_t>(second) << 16;
}

#ifdef __AVX512F__
// A permutation of the 16-bit elements of two vectors: element l of the result is element of(l) of
// the pair.
struct Order {
  alignas(64) uint16_t of[32];
  template <class F>
  static constexpr Order from(F of) {
    Order order{};
    for (int l = 0; l < 32; ++l) order.of[l] = static_cast<uint16_t>(of(l));
    return order;
  }
  __m512i operator()(__m512i low, __m512i high) const {
    return _mm512_permutex2var_epi16(low, _mm512_load_si512(of), high);
  }
};

// Transposes up to 16 rows of 64 bytes, `from_stride` bytes apart, to up to 16 rows of 16 elements:
// two rounds of shuffles within 128-bit lanes and two of whole lanes. Missing elements read as
// zeros; `flip` is XORed into the bits.
inline void transpose_16(const void* from, int64_t from_stride, int64_t rows, int64_t bytes,
                         uint32_t* to, int64_t to_stride, uint32_t flip) {
  __m512i row[16], next[16];
  const auto* first = static_cast<const char*>(from);
  if (rows >= 16 && bytes >= 64) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) row[i] = _mm512_loadu_si512(first + i * from_stride);
  } else {
    const auto some = VecMask<uint8_t>::below(bytes);
#pragma GCC unroll 16
    // Missing rows are zeros without a masked load, because suppressed faults are slow.
    for (int i = 0; i < 16; ++i) {
      row[i] = __m512i{};
      if (i < rows) row[i] = _mm512_maskz_loadu_epi8(some, first + i * from_stride);
    }
  }
  if (flip) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) row[i] = __m512i(VectorOf<uint32_t>::type(row[i]) ^ flip);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    next[i] = _mm512_maskz_unpacklo_epi32(0xffff, row[i], row[i + 1]);
    next[i + 1] = _mm512_maskz_unpackhi_epi32(0xffff, row[i], row[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      row[i + 2 * h] = _mm512_maskz_unpacklo_epi64(0xff, next[i + h], next[i + 2 + h]);
      row[i + 2 * h + 1] = _mm512_maskz_unpackhi_epi64(0xff, next[i + h], next[i + 2 + h]);
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {  // Lane l of row[4 g + q] belongs to column 4 l + q.
    const __m512i even0 = _mm512_maskz_shuffle_i32x4(0xffff, row[q], row[4 + q], 0x88),
                  odd0 = _mm512_maskz_shuffle_i32x4(0xffff, row[q], row[4 + q], 0xdd),
                  even1 = _mm512_maskz_shuffle_i32x4(0xffff, row[8 + q], row[12 + q], 0x88),
                  odd1 = _mm512_maskz_shuffle_i32x4(0xffff, row[8 + q], row[12 + q], 0xdd);
    next[q] = _mm512_maskz_shuffle_i32x4(0xffff, even0, even1, 0x88);
    next[4 + q] = _mm512_maskz_shuffle_i32x4(0xffff, odd0, odd1, 0x88);
    next[8 + q] = _mm512_maskz_shuffle_i32x4(0xffff, even0, even1, 0xdd);
    next[12 + q] = _mm512_maskz_shuffle_i32x4(0xffff, odd0, odd1, 0xdd);
  }
  const int64_t count = (bytes + 3) / 4;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if (i >= count) break;
    _mm512_storeu_si512(to + i * to_stride, next[i]);
  }
}
#endif

// Packs a panel of 32-bit elements from n columns that are dense along k, `stride` bytes apart and
// `bytes` bytes long. Without masks, `bytes` counts whole elements.
template <class Packed = uint32_t>
void transpose_panel(const void* from, int64_t stride, int64_t bytes, int64_t n, uint32_t* to,
                     [[maybe_unused]] uint32_t flip = 0) {
  constexpr int64_t panel = kNR<Packed>;
#ifdef __AVX512F__
  for (int64_t q = 0; q < bytes; q += 64) {
    for (int64_t j = 0; j < panel; j += 16) {
      transpose_16(static_cast<const char*>(from) + j * stride + q, stride, n - j, bytes - q,
                   to + q / 4 * panel + j, panel, flip);
    }
  }
#else
  transpose_block<uint32_t>(static_cast<const uint32_t*>(from), stride / 4, to, panel, n,
                            bytes / 4);
#endif
}

// Packs a panel of B: k x n sources become dense rows of kNR packed elements, padded with zeros.
template <class T>
void pack_panel(Plain<T>, Matrix<T> b, int64_t k, int64_t n, T* to) {
  constexpr int64_t panel = kNR<T>;
  if (n < panel) std::fill_n(to, k * panel, T(0));
  if (b.column == 1 && n == panel) {
    const VecMask<T> all(kWidth<T>);
    for (int64_t p = 0; p < k; ++p) {
      for (int v = 0; v < kNRVectors<T>; ++v) {
        all.store(to + p * panel + v * kWidth<T>, all.load(b.data + p * b.row + v * kWidth<T>));
      }
    }
  } else if (b.column == 1) {
    for (int64_t p = 0; p < k; ++p) std::copy_n(b.data + p * b.row, n, to + p * panel);
  } else if (b.row == 1) {
    if constexpr (sizeof(T) == 4) {
      transpose_panel<T>(b.data, 4 * b.column, 4 * k, n, reinterpret_cast<uint32_t*>(to));
    } else if constexpr (sizeof(T) == 8) {
      transpose_block<uint64_t>(reinterpret_cast<const uint64_t*>(b.data), b.column,
                                reinterpret_cast<uint64_t*>(to), panel, n, k);
    } else {
      transpose_block<T>(b.data, b.column, to, panel, n, k);
    }
  } else {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) to[p * panel + j] = b.data[p * b.row + j * b.column];
    }
  }
}

// Packs a panel of B whose columns are dense along k: read(j, p, count, to) writes `count` packed
// elements of column j, starting with the p-th.
template <class Packed, class Read>
void pack_columns(int64_t k, int64_t n, Packed* to, Read&& read) {
  constexpr int64_t panel = kNR<Packed>, limit = 64, stride = limit + 64 / sizeof(Packed);
  alignas(64) Packed columns[panel * stride];
  for (int64_t p = 0; p < k; p += limit) {
    const int64_t count = std::min(limit, k - p);
    for (int64_t j = 0; j < n; ++j) read(j, p, count, columns + j * stride);
    transpose_panel<Packed>(columns, 4 * stride, 4 * count, n,
                            reinterpret_cast<uint32_t*>(to + p * panel));
  }
}

// Converts n sources, `stride` apart, to float32.
template <class T16>
void widen_row(const T16* from, int64_t stride, int64_t n, float* to) {
  using Format = Widened<T16>;
  int64_t i = 0;
  for (; stride == 1 && i + Format::kOperand <= n; i += Format::kOperand) {
    VecMask<float>(Format::kOperand).store(to + i, Format::operand(from + i));
  }
  for (; i < n; ++i) to[i] = from[i * stride];
}

template <class T16>
void pack_panel(Widened<T16>, Matrix<T16> b, int64_t k, int64_t n, float* to) {
  constexpr int64_t panel = kNR<float>;
  if (n < panel) std::fill_n(to, k * panel, 0.0f);
  if (b.row == 1 && b.column != 1) {
    pack_columns<float>(k, n, to, [&](int64_t j, int64_t p, int64_t count, float* column) {
      widen_row(b.data + j * b.column + p, 1, count, column);
    });
  } else {
    for (int64_t p = 0; p < k; ++p) widen_row(b.data + p * b.row, b.column, n, to + p * panel);
  }
}

// Layout of a packed block of A: strips of kMR rows stored column by column if A is dense along
// columns, otherwise rows. The row stride is not a power of two, so that rows use different sets of
// the cache.
template <class Packed, int64_t KC>
struct PackedRows {
  static constexpr int64_t kRowStride = KC + 64 / static_cast<int64_t>(sizeof(Packed));
  const Packed* data;
  bool by_columns;
  int64_t stride = kRowStride;  // Stride of rows, which may be the rows of A itself.
  const int32_t* starts = nullptr;

  const Packed* from(int64_t i) const {  // i is a multiple of kMR.
    return data + i * (by_columns ? KC : stride);
  }
  int64_t row_stride() const { return by_columns ? 1 : stride; }
  int64_t column_stride() const { return by_columns ? kMR : 1; }
};

// True if rows of A can be read in place, with Depth sources as one packed element. They must not
// be farther apart than packed rows are.
template <int64_t KC, int64_t Depth, class T>
bool is_packed(Matrix<T> a, int64_t k) {
  return a.column == 1 && k % Depth == 0 && a.row % Depth == 0 && std::abs(a.row) <= Depth * KC &&
         reinterpret_cast<uintptr_t>(a.data) % (Depth * sizeof(T)) == 0;
}

template <int64_t KC, class T>
PackedRows<T, KC> pack_rows(Plain<T>, Matrix<T> a, int64_t m, int64_t k, T* to) {
  using Rows = PackedRows<T, KC>;
  if (is_packed<KC, 1>(a, k)) return {a.data, false, a.row};
  const bool by_columns = a.column != 1 && a.row == 1;
  if (by_columns) {
    // Strips that together span whole cache lines of A, because consecutive columns of A are far
    // apart.
    constexpr int64_t together = 48;
    static_assert(together % kMR == 0);
    for (int64_t i = 0; i < m; i += together) {
      const int64_t whole = std::min(together, m - i) / kMR * kMR;
      const int64_t rest = std::min(together, m - i) - whole;
      for (int64_t p = 0; p < k; ++p) {
        const T* from = a.data + i + p * a.column;
        T* tile = to + i * KC + p * kMR;
        for (int64_t r = 0; r < whole; r += kMR) {
          std::memcpy(tile + r * KC, from + r, kMR * sizeof(T));
        }
        if (rest > 0) std::copy_n(from + whole, rest, tile + whole * KC);
      }
    }
  } else if (a.column == 1) {
    for (int64_t i = 0; i < m; ++i) std::copy_n(a.data + i * a.row, k, to + i * Rows::kRowStride);
  } else {
    for (int64_t i = 0; i < m; ++i) {
      T* row = to + i * Rows::kRowStride;
      for (int64_t p = 0; p < k; ++p) row[p] = a.data[i * a.row + p * a.column];
    }
  }
  return {to, by_columns};
}

template <int64_t KC, class T16>
PackedRows<float, KC> pack_rows(Widened<T16>, Matrix<T16> a, int64_t m, int64_t k, float* to) {
  using Rows = PackedRows<float, KC>;
  const bool by_columns = a.column != 1 && a.row == 1;
  for (int64_t i = 0; by_columns && i < m; i += kMR) {
    const int64_t rows = std::min<int64_t>(kMR, m - i);
    for (int64_t p = 0; p < k; ++p) {
      widen_row(a.data + i + p * a.column, 1, rows, to + i * KC + p * kMR);
    }
  }
  for (int64_t i = 0; !by_columns && i < m; ++i) {
    widen_row(a.data + i * a.row, a.column, k, to + i * Rows::kRowStride);
  }
  return {to, by_columns};
}

}  // namespace tenon::cpu::TENON_CPU_ISA
