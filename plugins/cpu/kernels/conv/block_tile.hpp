// SPDX-License-Identifier: Apache-2.0
// The register tile of direct convolutions: some pixels, or some channels, times one or two vectors of
// filters.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// Rows of a register tile: the accumulators, two vectors of filters and one broadcast pixel fill
// the registers.
inline constexpr int kBlockRows = kVectorBytes == 64 ? 14 : 6;
inline constexpr int kBlockVectors = 2;

// Steps by which filters are prefetched. Those of a block and the pixels of a tile fill the L1 cache,
// so that filters come from the L2 cache again and again.
inline constexpr int64_t kFilterPrefetch = 16;

// Segments of a sum whose left operands are at different addresses, with `length` products each.
struct Segments {
  const int64_t* offsets;
  int64_t count, length;
};

// results = start + the products of rows of `left` with rows of adjacent vectors of `right` + added.
// It is one structure, as arguments by value are copied to the stack in wide pieces, and such a copy
// waits until all results of the tile before are written. Distances count elements.
template <class T>
struct BlockTile {
  Segments parts;
  int64_t left_row, left_step;  // From one row to the next, and at each step of a segment.
  int64_t left_half;            // To the rows of the second half, if there are two.
  const T* left;
  const T* right;
  const T* start;  // With a row of start_row 0 all rows begin alike.
  int64_t start_row, start_vector;
  const T* added;  // Vectors, added to each row behind the products, or NULL.
  T* results;
  int64_t result_row, result_vector, result_half;
};

// M rows in each half, V vectors.
template <class T, int Halves, int M, int V>
[[gnu::noinline]] void run_block_tile(const BlockTile<T>& tile) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int width = kWidth<T>, of_half = (M + 2) / 3;
  const int64_t row = tile.left_row, step = tile.left_step;
  const T* b = tile.right;
  Vector acc[Halves * M][V];
#pragma GCC unroll 2
  for (int h = 0; h < Halves; ++h) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        acc[h * M + m][v] = *reinterpret_cast<const Unaligned*>(
            tile.start + (h * M + m) * tile.start_row + v * tile.start_vector);
      }
    }
  }
  for (int64_t s = 0; s < tile.parts.count; ++s) {
    // An address can express up to two row steps, so every third row has a pointer.
    const T* base[Halves][of_half];
#pragma GCC unroll 2
    for (int h = 0; h < Halves; ++h) {
#pragma GCC unroll 16
      for (int i = 0; i < of_half; ++i) {
        base[h][i] = tile.left + tile.parts.offsets[s] + h * tile.left_half + 3 * i * row;
      }
    }
    for (int64_t p = tile.parts.length; p > 0; --p, b += V * width) {
      Vector filters[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        filters[v] = *reinterpret_cast<const Vector*>(b + v * width);
        __builtin_prefetch(b + (kFilterPrefetch * V + v) * width);
      }
#pragma GCC unroll 2
      for (int h = 0; h < Halves; ++h) {
#pragma GCC unroll 16
        for (int m = 0; m < M; ++m) {
          const T element = base[h][m / 3][m % 3 * row];
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) acc[h * M + m][v] += element * filters[v];
        }
#pragma GCC unroll 16
        for (int i = 0; i < of_half; ++i) base[h][i] += step;
      }
    }
  }
  if (tile.added) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const Vector added = *reinterpret_cast<const Unaligned*>(tile.added + v * width);
#pragma GCC unroll 16
      for (int m = 0; m < Halves * M; ++m) acc[m][v] += added;
    }
  }
#pragma GCC unroll 2
  for (int h = 0; h < Halves; ++h) {
    T* to = tile.results + h * tile.result_half;
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m, to += tile.result_row) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        *reinterpret_cast<Unaligned*>(to + v * tile.result_vector) = acc[h * M + m][v];
      }
    }
  }
}

template <class T>
using RunBlockTile = void (*)(const BlockTile<T>&);

// The functions for 1 to M rows in each half, by vectors and rows.
template <class T, int Halves, int M>
struct BlockTiles {
  RunBlockTile<T> of[kBlockVectors][M];
};
template <class T, int Halves, int... M>
constexpr BlockTiles<T, Halves, sizeof...(M)> block_tiles(std::integer_sequence<int, M...>) {
  return {{{run_block_tile<T, Halves, M + 1, 1>...}, {run_block_tile<T, Halves, M + 1, 2>...}}};
}

// Returns the function for `rows` rows, at most kBlockRows, and one or two vectors.
template <class T>
RunBlockTile<T> choose_block_tile(int64_t rows, int64_t vectors) {
  static constexpr auto tiles = block_tiles<T, 1>(std::make_integer_sequence<int, kBlockRows>());
  return tiles.of[vectors - 1][rows - 1];
}

// The same for two halves of `rows` rows, at most half of kBlockRows.
template <class T>
RunBlockTile<T> choose_tile_of_halves(int64_t rows, int64_t vectors) {
  static constexpr auto tiles =
      block_tiles<T, 2>(std::make_integer_sequence<int, kBlockRows / 2>());
  return tiles.of[vectors - 1][rows - 1];
}

// Calls f(first, rows) for `n` rows in tiles of similar size.
template <class F>
void for_tiles(int64_t n, F&& f) {
  const int64_t tiles = (n + kBlockRows - 1) / kBlockRows;
  for (int64_t i = 0; i < tiles; ++i) f(n * i / tiles, n * (i + 1) / tiles - n * i / tiles);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
