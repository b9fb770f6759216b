// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of stride 1 over wide images: a vector of results of one row at a time,
// straight from planes with padding. Rows of results stay in registers while the rows of pixels
// pass by, so that a pixel is read once for each column of taps.
#pragma once

#include "channel_blocks.hpp"
#include "padded_planes.hpp"
#include "parallel_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// R rows of results, a vector wide, of K x K taps.
template <class T, int K, int R>
void depthwise_rows_tile(const T* pixels, int64_t row, const T* weight, T bias, T* out,
                         int64_t out_row, int64_t columns) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  Vector sum[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r] = bias - Vector{};
#pragma GCC unroll 16
  for (int y = 0; y < R + K - 1; ++y) {
#pragma GCC unroll 8
    for (int v = 0; v < K; ++v) {
      const Vector x = *reinterpret_cast<const Unaligned*>(pixels + y * row + v);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        if (r <= y && y < r + K) sum[r] += weight[(y - r) * K + v] * x;
      }
    }
  }
  const Lanes<T> lanes(columns);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) lanes.store(out + r * out_row, sum[r]);
}

// What the next plane reads and writes, to be asked for meanwhile: tiles leave no time to look
// ahead. Every tile asks for some lines.
struct PlaneAhead {
  const char *from, *to;
  int64_t from_lines, to_lines;

  void ask() {
    for (int64_t l = 0; l < from_lines; ++l, from += 64) __builtin_prefetch(from, 0, 2);
    for (int64_t l = 0; l < to_lines; ++l, to += 64) __builtin_prefetch(to, 1, 2);
  }
};

template <class T, int K>
void depthwise_rows_plane(const ConvShapes& s, int64_t row, const T* pixels, const T* weight,
                          T bias, T* out, PlaneAhead ahead) {
  constexpr int most = kVectorBytes == 64 ? 8 : 4;
  for (int64_t j = 0; j < s.columns; j += kWidth<T>) {
    // The last tile of a row or column overlaps the one before.
    const int64_t at = std::max<int64_t>(0, std::min<int64_t>(j, s.columns - kWidth<T>));
    const auto tiles = [&]<int R>() {
      for (int64_t i = 0; i < s.rows; i += R) {
        const int64_t down = std::min(i, s.rows - R);
        ahead.ask();
        depthwise_rows_tile<T, K, R>(pixels + down * row + at, row, weight, bias,
                                     out + down * s.columns + at, s.columns, s.columns - at);
      }
    };
    if (s.rows % most == 0 || s.rows >= 4 * most) {
      tiles.template operator()<most>();
    } else if (s.rows >= 4) {
      tiles.template operator()<4>();
    } else {
      tiles.template operator()<1>();
    }
  }
}

// Where rows fill their vectors well, and planes are large enough to be worth padding one by one.
template <class T>
bool suits_depthwise_rows(const ConvShapes& s, const Images& x) {
  const int64_t vectors = (s.columns + kWidth<T> - 1) / kWidth<T>;
  return x.pixel == 1 && s.results() >= 128 &&
         (Lanes<T>::kMasked || s.columns >= kWidth<T>)&&5 * s.columns >= 4 * vectors * kWidth<T> &&
         s.kernel[0] == s.kernel[1] && (s.kernel[0] == 3 || s.kernel[0] == 5 || s.kernel[0] == 7) &&
         s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 && s.dilation[1] == 1;
}

// `out` is dense, in the dtype of x.
template <class T>
tenon_status run_depthwise_rows(tenon_ctx* ctx, const ConvShapes& s, const Images& x,
                                const T* weight, const T* bias, void* out, tenon_err* err) {
  const PaddedPlanes<T> padded(s);
  const auto plane = s.kernel[0] == 3   ? depthwise_rows_plane<T, 3>
                     : s.kernel[0] == 5 ? depthwise_rows_plane<T, 5>
                                        : depthwise_rows_plane<T, 7>;
  // Some planes at a time, whose zeros are written once.
  const int64_t pad = padded.count(1), planes = s.batch * s.channels;
  const int64_t together = std::clamp<int64_t>(planes / (8 * host->thread_count()), 1, 32);
  const int64_t filters = s.group_filters(), size = kDtypeSize[x.dtype];
  const int64_t tiles = (s.rows + 7) / 8 * ((s.columns + kWidth<T> - 1) / kWidth<T>);
  const auto lines = [&](int64_t pixels_of) { return (pixels_of * size / 64 + tiles) / tiles; };
  const int64_t from_lines = (lines(s.pixels()) + filters - 1) / filters;
  const int64_t to_lines = lines(s.results());
  const bool reduced = is_reduced_float(x.dtype);
  const int64_t staged = reduced ? std::max(s.pixels(), s.results()) : 0;
  return parallel_with_memory(
      ctx, (planes + together - 1) / together,
      together * filters * s.taps() * s.results() / kWidth<T>,
      (pad + staged) * static_cast<int64_t>(sizeof(T)), err, [&](int64_t item, void* memory) {
        T *pixels = static_cast<T*>(memory), *stage = pixels + pad;
        padded.clear(1, pixels);
        for (int64_t p = item * together; p < std::min(planes, (item + 1) * together); ++p) {
          const int64_t offset = p / s.channels * x.image + p % s.channels * x.channel;
          const char* from = static_cast<const char*>(x.data) + offset * size;
          if constexpr (std::is_same_v<T, float>) {
            if (reduced) widen(x.dtype, from, size, stage, s.pixels());
          }
          padded.fill(reduced ? stage : reinterpret_cast<const T*>(from), 1, pixels);
          for (int64_t f = p * filters; f < (p + 1) * filters; ++f) {
            char* to = static_cast<char*>(out) + f * s.results() * size;
            const int64_t filter = f % s.filters;
            plane(s, padded.row(), pixels, weight + filter * s.taps(), bias ? bias[filter] : T(0),
                  reduced ? stage : reinterpret_cast<T*>(to),
                  {from + s.pixels() * size, to + s.results() * size, from_lines, to_lines});
            if constexpr (std::is_same_v<T, float>) {
              if (reduced) narrow(x.dtype, stage, to, size, s.results());
            }
          }
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
