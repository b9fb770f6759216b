// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 x 3 and stride 1 by minimal filtering, F(2 x 2, 3 x 3) (Lavin and Gray, 2016,
// "Fast Algorithms for Convolutional Neural Networks"): tiles of 4 x 4 pixels give 2 x 2 results by
// 16 products where the sums have 36. Its transforms only add, and halve weights: no less exact
// than the plain sum.
#pragma once

#include "conv_shapes.hpp"
#include "gemm_blocked.hpp"
#include "parallel_memory.hpp"
#include "shuffles.hpp"
#include "transpose.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int kPositions = 16;          // of a tile, after the transform
inline constexpr int64_t kTilesTogether = 64;  // in one block; a multiple of every panel

// Elements from one position to the next, for a block of tiles of `rows` channels or filters; and
// from one filter's transformed weights to the next. Not powers of two: else all would meet in one
// set of the cache.
template <class T>
int64_t position_stride(int64_t rows) {
  return rows * kTilesTogether + 3 * kWidth<T>;
}
template <class T>
int64_t weight_stride(int64_t channels) {
  return kPositions * channels + kWidth<T>;
}

// Tiles side by side in one row of one image.
struct TileRun {
  int64_t image, row, column;  // of the first tile
  int64_t length, at;          // at: place in the block
};

class WinogradTiles {
 public:
  explicit WinogradTiles(const ConvShapes& s)
      : across_((s.columns + 1) / 2), down_((s.rows + 1) / 2), count_(s.batch * across_ * down_) {}
  int64_t count() const { return count_; }

  // f(run) for the tiles of a block; runs are no longer than `most`.
  template <class F>
  void for_runs(int64_t first, int64_t count, int64_t most, F&& f) const {
    for (int64_t at = 0; at < count;) {
      const int64_t tile = first + at, column = tile % across_;
      const int64_t length = std::min({count - at, across_ - column, most});
      f(TileRun{tile / (across_ * down_), tile / across_ % down_, column, length, at});
      at += length;
    }
  }

 private:
  int64_t across_, down_, count_;
};

// One channel of a run, d[4 i + j][tile]: pixel (i, j) of every tile, zeros outside of the image.
template <class T>
void load_tiles(const ConvShapes& s, const T* plane, const TileRun& run, T (*d)[kTilesTogether]) {
  constexpr int64_t width = kWidth<T>;
  const int64_t x = 2 * run.column - s.padding[1], count = 2 * run.length + 2;
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t y = 2 * run.row + i - s.padding[0];
    const bool outside = y < 0 || y >= s.height;
    const T* from = plane + y * s.width + x;
    const int64_t begin = outside ? count : std::min(count, std::max<int64_t>(0, -x));
    const int64_t end = outside ? 0 : std::min(count, s.width - x);
    T* to = d[4 * i] + run.at;
    // The same pixels of a later channel: a plane away, where the processor does not look ahead.
    for (int64_t j = 0; j < count; j += kWidth<T>) __builtin_prefetch(from + 2 * s.pixels() + j);
    if constexpr (Lanes<T>::kMasked) {  // runs are at most one vector long
      const Lanes<T> tiles(run.length);
      const auto part = [&](int64_t first) {
        return Lanes<T>(begin - first, end - first).load(from + first);
      };
      const auto low = part(0), high = part(width), low2 = part(2), high2 = part(width + 2);
      tiles.store(to, Halves<T>::even(low, high));
      tiles.store(to + kTilesTogether, Halves<T>::odd(low, high));
      tiles.store(to + 2 * kTilesTogether, Halves<T>::even(low2, high2));
      tiles.store(to + 3 * kTilesTogether, Halves<T>::odd(low2, high2));
    } else {
      for (int64_t j = 0; j < 4; ++j) {
        for (int64_t t = 0; t < run.length; ++t) {
          const int64_t at = 2 * t + j;
          to[j * kTilesTogether + t] = at >= begin && at < end ? from[at] : T(0);
        }
      }
    }
  }
}

// B^T d B of one channel, to its row in the panels of every position.
template <class T>
void transform_tiles(const T (*d)[kTilesTogether], int64_t panel_size, int64_t position, T* to) {
  constexpr int64_t panel = kPanel<T>;
  for (int64_t p = 0; p < kTilesTogether / panel; ++p) {
    T* row = to + p * panel_size;
#pragma GCC ivdep
    for (int64_t t = 0; t < panel; ++t) {
      T a[4][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const T d0 = d[j][p * panel + t], d1 = d[4 + j][p * panel + t],
                d2 = d[8 + j][p * panel + t], d3 = d[12 + j][p * panel + t];
        a[0][j] = d0 - d2, a[1][j] = d1 + d2, a[2][j] = d2 - d1, a[3][j] = d1 - d3;
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        row[(4 * i) * position + t] = a[i][0] - a[i][2];
        row[(4 * i + 1) * position + t] = a[i][1] + a[i][2];
        row[(4 * i + 2) * position + t] = a[i][2] - a[i][1];
        row[(4 * i + 3) * position + t] = a[i][1] - a[i][3];
      }
    }
  }
}

// G g G^T of the weights of one filter: [position][channel]. Kernels of channels lie `step` apart,
// positions `position_step`; `turned`: with their taps in reverse.
template <class T>
void transform_weight(const T* weight, int64_t step, bool turned, int64_t channels, T* to,
                      int64_t position_step) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  alignas(64) T taps[9 * width] = {};
  for (int64_t c = 0; c < channels; c += width) {
    const int64_t count = std::min(width, channels - c);
    transpose_bytes(sizeof(T), reinterpret_cast<const char*>(weight + c * step),
                    step * static_cast<int64_t>(sizeof(T)), reinterpret_cast<char*>(taps),
                    width * static_cast<int64_t>(sizeof(T)), count, 9);
    const auto tap = [&](int t) {
      return *reinterpret_cast<const Vector*>(taps + (turned ? 8 - t : t) * width);
    };
    const auto put = [&](int position, Vector value) {
      T* row = to + position * position_step + c;
      if (count == width) {
        *reinterpret_cast<Unaligned*>(row) = value;
      } else {
        std::copy_n(reinterpret_cast<const T*>(&value), count, row);
      }
    };
    Vector a[4][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      const Vector g0 = tap(j), g1 = tap(3 + j), g2 = tap(6 + j);
      a[0][j] = g0, a[3][j] = g2;
      a[1][j] = (g0 + g1 + g2) * T(0.5), a[2][j] = (g0 - g1 + g2) * T(0.5);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      put(4 * i, a[i][0]), put(4 * i + 3, a[i][2]);
      put(4 * i + 1, (a[i][0] + a[i][1] + a[i][2]) * T(0.5));
      put(4 * i + 2, (a[i][0] - a[i][1] + a[i][2]) * T(0.5));
    }
  }
}

// A^T m A of one filter, y[2 i + j][tile]: result (i, j) of every tile. Returns whether all are
// finite.
template <class T>
bool transform_results(const T* m, int64_t panel_size, int64_t position, T bias,
                       T (*y)[kTilesTogether]) {
  constexpr int64_t panel = kPanel<T>;
  T doubt = 0;  // NaN once there is an infinity or a NaN
  for (int64_t p = 0; p < kTilesTogether / panel; ++p) {
    const T* row = m + p * panel_size;
    T doubts[panel] = {};
#pragma GCC ivdep
    for (int64_t t = 0; t < panel; ++t) {
      T a[2][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const T m0 = row[j * position + t], m1 = row[(4 + j) * position + t],
                m2 = row[(8 + j) * position + t], m3 = row[(12 + j) * position + t];
        a[0][j] = m0 + m1 + m2, a[1][j] = m1 - m2 - m3;
      }
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const T even = a[i][0] + a[i][1] + a[i][2] + bias;
        const T odd = a[i][1] - a[i][2] - a[i][3] + bias;
        y[2 * i][p * panel + t] = even;
        y[2 * i + 1][p * panel + t] = odd;
        doubts[t] += (even - even) + (odd - odd);
      }
    }
    for (int64_t t = 0; t < panel; ++t) doubt += doubts[t];
  }
  return doubt == 0;
}

// The results of a run to their places in one filter's plane.
template <class T>
void store_tiles(const ConvShapes& s, const T (*y)[kTilesTogether], const TileRun& run, T* plane) {
  constexpr int64_t width = kWidth<T>;
  const int64_t count = std::min(2 * run.length, s.columns - 2 * run.column);
  for (int64_t i = 0; i < 2 && 2 * run.row + i < s.rows; ++i) {
    T* to = plane + (2 * run.row + i) * s.columns + 2 * run.column;
    const T *even = y[2 * i] + run.at, *odd = y[2 * i + 1] + run.at;
    if constexpr (Lanes<T>::kMasked) {
      const Lanes<T> tiles(run.length);
      const auto a = tiles.load(even), b = tiles.load(odd);
      Lanes<T>(count).store(to, Halves<T>::low(a, b));
      Lanes<T>(count - width).store(to + width, Halves<T>::high(a, b));
    } else {
      for (int64_t t = 0; t < count; ++t) to[t] = (t % 2 ? odd : even)[t / 2];
    }
  }
}

// One block of tiles of one group: `weights` are transformed, `memory` has winograd_bytes().
// Returns whether all results are finite.
template <class T>
bool winograd_block(const ConvShapes& s, const WinogradTiles& tiles, int64_t first, const T* x,
                    const T* weights, const T* bias, T* out, void* memory) {
  constexpr int64_t panel = kPanel<T>;
  const int64_t channels = s.group_channels(), filters = s.group_filters();
  const int64_t position_in = position_stride<T>(channels), row = weight_stride<T>(channels);
  const int64_t position_out = position_stride<T>(filters);
  const int64_t count = std::min(kTilesTogether, tiles.count() - first);
  const int64_t most = Lanes<T>::kMasked ? kWidth<T> : kTilesTogether;
  alignas(64) T buffer[kPositions][kTilesTogether] = {};
  T* panels_in = static_cast<T*>(memory);
  T* panels_out = panels_in + kPositions * position_in;
  for (int64_t c = 0; c < channels; ++c) {
    tiles.for_runs(first, count, most, [&](const TileRun& run) {
      load_tiles(s, x + (run.image * s.channels + c) * s.pixels(), run, buffer);
    });
    transform_tiles<T>(buffer, channels * panel, position_in, panels_in + c * panel);
  }
  for (int64_t q = 0; q < kPositions; ++q) {
    for (int64_t p = 0; p * panel < count; ++p) {
      T* to = panels_out + q * position_out + p * filters * panel;
      run_tile<Plain<T>>(filters, panel, channels, weights + q * channels, row, 1,
                         panels_in + q * position_in + p * channels * panel, panel,
                         MatrixTarget<T>{to, panel}, 0, 0, false);
    }
  }
  bool finite = true;
  for (int64_t f = 0; f < filters; ++f) {
    finite &= transform_results<T>(panels_out + f * panel, filters * panel, position_out,
                                   bias ? bias[f] : T(0), buffer);
    tiles.for_runs(first, count, most, [&](const TileRun& run) {
      store_tiles(s, buffer, run, out + (run.image * s.filters + f) * s.results());
    });
  }
  return finite;
}

template <class T>
int64_t winograd_bytes(const ConvShapes& s) {
  return kPositions *
         (position_stride<T>(s.group_channels()) + position_stride<T>(s.group_filters())) *
         static_cast<int64_t>(sizeof(T));
}

// Where it pays: enough filters and channels to outweigh the transforms.
inline bool suits_filtering(const ConvShapes& s) {
  return s.kernel[0] == 3 && s.kernel[1] == 3 && s.group_channels() >= 32 &&
         s.group_filters() >= 32;
}
inline bool suits_winograd(const ConvShapes& s) {
  return suits_filtering(s) && s.stride[0] == 1 && s.stride[1] == 1 && s.dilation[0] == 1 &&
         s.dilation[1] == 1 && s.batch * s.results() >= kTilesTogether;
}

// By minimal filtering. With `turned` for the gradient of an input: s has its filters for channels,
// and the weight is read with both changed places and taps in reverse. `*finite` tells whether the
// results may stand: an infinity or a NaN spreads over its tile, where the plain sum keeps it in
// its window.
template <class T>
tenon_status run_winograd(tenon_ctx* ctx, const ConvShapes& s, const T* x, const T* weight,
                          bool turned, const T* bias, T* out, bool* finite, tenon_err* err) {
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const int64_t row = weight_stride<T>(channels), numel = filters * row;  // of one group
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(s.groups * numel) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T* weights = static_cast<T*>(memory);
  parallel(s.filters, channels * kPositions * 2, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const int64_t of_group = f % filters * (turned ? 9 : channels * 9);
      transform_weight(weight + f / filters * filters * channels * 9 + of_group,
                       turned ? filters * 9 : 9, turned, channels, weights + f * row, channels);
    }
  });
  const WinogradTiles tiles(s);
  const int64_t blocks = (tiles.count() + kTilesTogether - 1) / kTilesTogether;
  std::atomic<bool> all_finite = true;
  const tenon_status status = parallel_with_memory(
      ctx, s.groups * blocks, filters * channels * kTilesTogether, winograd_bytes<T>(s), err,
      [&](int64_t item, void* own) {
        const int64_t g = item / blocks;
        if (!winograd_block<T>(s, tiles, item % blocks * kTilesTogether,
                               x + g * channels * s.pixels(), weights + g * numel,
                               bias ? bias + g * filters : nullptr, out + g * filters * s.results(),
                               own)) {
          all_finite.store(false, std::memory_order_relaxed);
        }
      });
  *finite = all_finite.load(std::memory_order_relaxed);
  return status;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
