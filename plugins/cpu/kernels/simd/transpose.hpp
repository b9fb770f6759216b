// SPDX-License-Identifier: Apache-2.0
// Transposes blocks of a matrix in registers.
#pragma once

#include "dtypes.hpp"
#include "simd/shuffle.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// Which side of a transposition is prefetched because it lies beyond the second-level cache: none,
// the source, or both; or the destination is written by non-temporal stores of whole cache lines.
// Few lines of each row are touched at a time, so the hardware prefetcher does not detect the
// pattern.
enum class Prefetch { none, source, both, non_temporal };

// A tile: as many rows as elements fit into a register of kBytes, and 16 bytes of each row. Loads
// combine 16-byte pieces of rows that are kColumns apart; log2(kColumns) rounds of interleaving
// pairs of registers complete the transposition.
template <class T, int kBytes>
struct Tile {
  static constexpr int kPiece = 16;
  static constexpr int kRows = kBytes / sizeof(T), kColumns = kPiece / sizeof(T);
  typedef T Row __attribute__((vector_size(kBytes)));

  // Prefetches the tile below the one at column j of `from`. Tiles that share a cache line of
  // `from` prefetch different rows. The function is inlined, because compilers otherwise remove it
  // as a function without effect.
  template <Prefetch kPrefetch>
  [[gnu::always_inline]] static void prefetch_below(const T* from, int64_t from_stride, int64_t j,
                                                    T* to, int64_t to_stride) {
    constexpr int share = 64 / kPiece, rows = std::max(1, kRows / share);
    const T* const below = from + (kRows + j / kColumns % share * rows) * from_stride + j;
    for (int i = 0; kPrefetch != Prefetch::none && i < rows; ++i)
      __builtin_prefetch(below + i * from_stride);
    for (int i = 0; kPrefetch == Prefetch::both && i < kColumns; ++i)
      __builtin_prefetch(to + i * to_stride + kRows, 1);
  }

  template <bool kNonTemporal>
  static void transpose(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
    Row rows[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i)
      rows[i] = load(from + i * from_stride, kColumns * from_stride);
#pragma GCC unroll 4
    for (int round = 1; round < kColumns; round *= 2) {
      Row next[kColumns];
#pragma GCC unroll 8
      for (int i = 0; i < kColumns / 2; ++i) {
        const Row a = rows[i], b = rows[i + kColumns / 2];
        next[2 * i] = shuffle(a, b, [](int l) { return interleaved(l, 0); });
        next[2 * i + 1] = shuffle(a, b, [](int l) { return interleaved(l, kColumns / 2); });
      }
#pragma GCC unroll 16
      for (int i = 0; i < kColumns; ++i) rows[i] = next[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kColumns; ++i) {
      T* row = to + i * to_stride;
#if defined(__AVX512F__)
      if constexpr (kNonTemporal && kBytes == 64) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(row), reinterpret_cast<__m512i>(rows[i]));
        continue;
      }
#endif
      std::memcpy(row, &rows[i], sizeof(Row));
    }
  }

 private:
  // Combines pieces that are `step` elements apart. Masked broadcasts are cheaper than insertions,
  // which compete with the shuffles for one port.
  static Row load(const T* from, [[maybe_unused]] int64_t step) {
    Row result;
#if defined(__AVX512F__)
    if constexpr (kBytes == 64) {
      __m512i pieces = _mm512_castsi128_si512(piece(from));
      pieces = _mm512_mask_broadcast_i32x4(pieces, 0x00f0, piece(from + step));
      pieces = _mm512_mask_broadcast_i32x4(pieces, 0x0f00, piece(from + 2 * step));
      pieces = _mm512_mask_broadcast_i32x4(pieces, 0xf000, piece(from + 3 * step));
      return reinterpret_cast<Row>(pieces);
    }
#endif
#if defined(__AVX2__)
    if constexpr (kBytes == 32) {
      const __m256i first = _mm256_castsi128_si256(piece(from));
      return reinterpret_cast<Row>(_mm256_inserti128_si256(first, piece(from + step), 1));
    }
#endif
    std::memcpy(&result, from, sizeof result);
    return result;
  }
#if defined(__AVX2__)
  static __m128i piece(const T* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  }
#endif

  // The index that interleaves two rows within each piece, from the piece's element `first` on.
  static constexpr int interleaved(int l, int first) {
    return l / kColumns * kColumns + first + l % kColumns / 2 + l % 2 * kRows;
  }
};

// to[j][i] = from[i][j] for a block of rows x columns; strides in elements. Loop order: bands of
// tile rows, then tiles along the columns. The last columns use a tile that overlaps the one
// before, and so do the last rows, unless whole lines are written or a narrower register fits the
// remaining rows.
template <class T, Prefetch kPrefetch = Prefetch::none, int kBytes = kVectorBytes>
void transpose_block(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                     int64_t columns) {
  using Tile = Tile<T, std::max(kBytes, 16)>;
  if (kBytes < 16 || columns < Tile::kColumns) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
    }
  } else if constexpr (kBytes >= 16) {
    const auto transpose_rows = [=](int64_t i) {
      const auto transpose = [=](int64_t j) {
        T* const tile = to + j * to_stride + i;
        Tile::template prefetch_below<kPrefetch>(from + i * from_stride, from_stride, j, tile,
                                                 to_stride);
        Tile::template transpose<kPrefetch == Prefetch::non_temporal>(from + i * from_stride + j,
                                                                      from_stride, tile, to_stride);
      };
      int64_t j = 0;
      for (; j + Tile::kColumns <= columns; j += Tile::kColumns) transpose(j);
      if (j < columns) transpose(columns - Tile::kColumns);
    };
    int64_t i = 0;
    for (; i + Tile::kRows <= rows; i += Tile::kRows) transpose_rows(i);
    const int64_t left = rows - i;
    if (left == 0) return;
    if (kPrefetch != Prefetch::non_temporal && i > 0 && left * sizeof(T) % 16 != 0)
      return transpose_rows(rows - Tile::kRows);
    transpose_block<T, Prefetch::none, kBytes / 2>(from + i * from_stride, from_stride, to + i,
                                                   to_stride, left, columns);
  }
}

// The same where the rows of `to` fall into few sets of the first-level cache: cache lines that
// take several registers are assembled in a buffer before they are written.
template <class T>
void transpose_by_lines(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows,
                        int64_t columns) {
  using Tile = Tile<T, kVectorBytes>;
  constexpr int line = 64 / sizeof(T), width = Tile::kColumns;
  int64_t i = 0;
  for (; i + line <= rows; i += line) {
    int64_t j = 0;
    for (; j + width <= columns; j += width) {
      alignas(64) T lines[width * line];
      for (int k = 0; k < line; k += Tile::kRows) {
        Tile::template transpose<false>(from + (i + k) * from_stride + j, from_stride, lines + k,
                                        line);
      }
      for (int k = 0; k < width; ++k)
        std::memcpy(to + (j + k) * to_stride + i, lines + k * line, 64);
    }
    transpose_block(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride,
                    line, columns - j);
  }
  transpose_block(from + i * from_stride, from_stride, to + i, to_stride, rows - i, columns);
}

// Whether a transposition to `to` can use non-temporal stores: a register has to be a whole,
// aligned cache line.
inline bool can_transpose_non_temporal(const char* to, int64_t to_stride) {
  return kVectorBytes == 64 && (reinterpret_cast<intptr_t>(to) | to_stride) % 64 == 0;
}

// The same for elements of `size` bytes, up to 8, and strides in bytes.
template <Prefetch kPrefetch = Prefetch::none>
inline void transpose_elements(int size, const char* from, int64_t from_stride, char* to,
                               int64_t to_stride, int64_t rows, int64_t columns) {
  const auto run = [&]<class T>(Type<T>) {
    const bool by_lines = kVectorBytes < 64 && to_stride % 1024 == 0;
    // Rows that far apart meet in one set of the first-level cache, which holds eight of them.
    // Where those of `to` do as well, whole lines count for more.
    const bool narrow = kVectorBytes == 64 && kPrefetch != Prefetch::non_temporal &&
                        from_stride % 4096 == 0 && to_stride % 4096 != 0;
    const auto transpose = by_lines ? transpose_by_lines<T>
                           : narrow ? transpose_block<T, kPrefetch, 32>
                                    : transpose_block<T, kPrefetch>;
    transpose(reinterpret_cast<const T*>(from), from_stride / size, reinterpret_cast<T*>(to),
              to_stride / size, rows, columns);
  };
  switch (size) {
    case 1:
      return run(Type<uint8_t>{});
    case 2:
      return run(Type<uint16_t>{});
    case 4:
      return run(Type<uint32_t>{});
    default:
      return run(Type<uint64_t>{});
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
