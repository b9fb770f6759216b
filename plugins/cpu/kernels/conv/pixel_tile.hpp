// SPDX-License-Identifier: Apache-2.0
// The register tile of convolutions between NHWC values: some pixels times one or two vectors of
// filters. It is the tile of nchw16c.hpp with its arguments in one structure: those passed by value are
// copied to the stack in wide pieces, and such a copy waits until all results of the tile before are
// written.
#pragma once

#include "conv/nchw16c.hpp"

#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

struct PixelTile {
  Segments parts;  // Of the channels under the taps.
  const float* pixels;
  int64_t pixel;  // Elements from one pixel to the next.
  const float* filters;
  const float* start;  // Vectors with which all pixels begin.
  const float* added;  // And what is added behind the products, or NULL.
  float* results;
  int64_t result;  // Elements from the results of one pixel to the next.
};

// M pixels and V vectors of filters.
template <int M, int V>
[[gnu::noinline]] void run_pixel_tile(const PixelTile& tile) {
  using Vector = VectorOf<float>::type;
  using Unaligned = VectorOf<float>::unaligned;
  constexpr int width = kWidth<float>, bases = (M + 2) / 3;
  const int64_t step = tile.pixel, count = tile.parts.count, length = tile.parts.length;
  const float* b = tile.filters;
  Vector acc[M][V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const Vector start = *reinterpret_cast<const Unaligned*>(tile.start + v * width);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) acc[m][v] = start;
  }
  for (int64_t s = 0; s < count; ++s) {
    // An address can express up to two steps, so every third pixel has a pointer.
    const float* base[bases];
#pragma GCC unroll 16
    for (int i = 0; i < bases; ++i) base[i] = tile.pixels + tile.parts.offsets[s] + 3 * i * step;
    for (int64_t p = 0; p < length; ++p, b += V * width) {
      Vector row[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) row[v] = *reinterpret_cast<const Vector*>(b + v * width);
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) {
        const float element = base[m / 3][m % 3 * step];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) acc[m][v] += element * row[v];
      }
#pragma GCC unroll 16
      for (int i = 0; i < bases; ++i) ++base[i];
    }
  }
  if (tile.added) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const Vector added = *reinterpret_cast<const Unaligned*>(tile.added + v * width);
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) acc[m][v] += added;
    }
  }
  float* to = tile.results;
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m, to += tile.result) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) *reinterpret_cast<Unaligned*>(to + v * width) = acc[m][v];
  }
}

using RunPixelTile = void (*)(const PixelTile&);

// The function for `pixels` pixels, at most kBlockRows, and one or two vectors.
inline RunPixelTile choose_pixel_tile(int64_t pixels, int64_t vectors) {
  static constexpr auto of = []<int... M>(std::integer_sequence<int, M...>) {
    struct {
      RunPixelTile tiles[2][kBlockRows];
    } all = {{{run_pixel_tile<M + 1, 1>...}, {run_pixel_tile<M + 1, 2>...}}};
    return all;
  }
  (std::make_integer_sequence<int, kBlockRows>());
  return of.tiles[vectors - 1][pixels - 1];
}

}  // namespace tenon::cpu::TENON_CPU_ISA
