// SPDX-License-Identifier: Apache-2.0
// Winograd convolution F(2 x 2, 3 x 3) for 3 x 3 kernels with stride 1 (Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2016): a tile of 4 x 4 pixels gives 2 x 2 results
// with 16 products instead of 36. Its transforms only add, and halve weights, so it is as exact as
// the direct sum.
#pragma once

#include "conv/epilogue.hpp"
#include "conv/filter_shares.hpp"
#include "conv/shapes.hpp"
#include "gemm/blocked.hpp"
#include "gemm/micro_kernel.hpp"
#include "run_memory.hpp"
#include "simd/shuffle.hpp"
#include "simd/transpose.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int kPositions = 16;          // Positions of a tile after the transform.
inline constexpr int64_t kTilesTogether = 64;  // Tiles in one block; a multiple of every panel.

// Elements from one position to the next, for a block of tiles of `rows` channels or filters, and
// from the transformed weights of one filter to the next. They are not powers of two, so that
// positions use different sets of the cache.
template <class T>
int64_t position_stride(int64_t rows) {
  return rows * kTilesTogether + 3 * kWidth<T>;
}
template <class T>
int64_t weight_stride(int64_t channels) {
  return kPositions * channels + kWidth<T>;
}

// Adjacent tiles in one row of one image.
struct TileRun {
  int64_t image, row, column;  // Of the first tile.
  int64_t length, at;          // at: index in the block.
};

class WinogradTiles {
 public:
  explicit WinogradTiles(const ConvShapes& s)
      : across_((s.columns + 1) / 2), down_((s.rows + 1) / 2), count_(s.batch * across_ * down_) {}
  int64_t count() const { return count_; }
  int64_t across() const { return across_; }

  // Calls f(run) for the tiles of a block; runs have at most `limit` tiles and end at each multiple
  // of `panel` tiles.
  template <class F>
  void for_runs(int64_t first, int64_t count, int64_t limit, int64_t panel, F&& f) const {
    for (int64_t at = 0; at < count;) {
      const int64_t tile = first + at, column = tile % across_;
      const int64_t length = std::min({count - at, across_ - column, limit, panel - at % panel});
      f(TileRun{tile / (across_ * down_), tile / across_ % down_, column, length, at});
      at += length;
    }
  }

 private:
  int64_t across_, down_, count_;
};

template <class T>
using VectorT = typename VectorOf<T>::type;

// Computes B^T d B for a vector of tiles or of channels: pixels(i, d) reads row i of d, store(q, x)
// receives position q.
template <class T, class Pixels, class Store>
[[gnu::always_inline]] inline void transform_pixels(Pixels&& pixels, Store&& store) {
  VectorT<T> a[4][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    VectorT<T> d[4];
    pixels(i, d);
    a[i][0] = d[0] - d[2];
    a[i][1] = d[1] + d[2];
    a[i][2] = d[2] - d[1];
    a[i][3] = d[1] - d[3];
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    store(j, a[0][j] - a[2][j]), store(4 + j, a[1][j] + a[2][j]);
    store(8 + j, a[2][j] - a[1][j]), store(12 + j, a[1][j] - a[3][j]);
  }
}

// The same from memory to memory, with the given distances of rows and columns.
template <class T>
[[gnu::always_inline]] inline void transform_pixels(const T* from, int64_t row, int64_t column,
                                                    T* to, int64_t position) {
  transform_pixels<T>(
      [&](int i, VectorT<T>(&d)[4]) {
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) d[j] = VecMask<T>::load_all(from + i * row + j * column);
      },
      [&](int q, VectorT<T> x) { *reinterpret_cast<VectorT<T>*>(to + q * position) = x; });
}

// Computes A^T m A plus the bias: y[i][j] is result (i, j) of a vector of tiles or of filters.
// load(q) reads position q. `*doubt` becomes NaN if there is an infinity or NaN.
template <class T, class Load>
[[gnu::always_inline]] inline void transform_results(Load&& load, VectorT<T> bias,
                                                     VectorT<T> (&y)[2][2], VectorT<T>* doubt) {
  VectorT<T> a[2][4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const VectorT<T> m[] = {load(j), load(4 + j), load(8 + j), load(12 + j)};
    a[0][j] = m[0] + m[1] + m[2];
    a[1][j] = m[1] - m[2] - m[3];
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    y[i][0] = a[i][0] + a[i][1] + a[i][2] + bias;
    y[i][1] = a[i][1] - a[i][2] - a[i][3] + bias;
    *doubt += (y[i][0] - y[i][0]) + (y[i][1] - y[i][1]);
  }
}
template <class T>
bool is_finite(VectorT<T> doubt) {
  T acc = 0;
  for (int l = 0; l < kWidth<T>; ++l) acc += doubt[l];
  return acc == 0;
}

// Where tile `at` of a block is stored in panels.
template <class T>
int64_t in_panels(int64_t at, int64_t panel_size) {
  return at / kNR<T> * panel_size + at % kNR<T>;
}

// Planes are too far apart for the hardware prefetcher: this many are prefetched ahead.
inline constexpr int64_t kPrefetchPlanes = 4;

// A run fills part of a cache line at each position. This many channels or filters at a time stay
// in the L1 cache until all runs of a block are complete.
inline constexpr int64_t kPlanesTogether = 8;

// Transforms a run of `channels` channels, at most one vector of tiles; this needs masked loads.
template <class T>
void transform_run(const ConvShapes& s, const T* planes, int64_t channels, const TileRun& run,
                   T* to, int64_t position) {
  constexpr int64_t width = kWidth<T>;
  static constexpr T kOutside[2 * width + 2] = {};
  const int64_t x = 2 * run.column - s.padding[1], count = 2 * run.length + 2;
  const int64_t begin = std::max<int64_t>(0, -x), end = std::min(count, s.width - x);
  const VecMask<T> tiles(run.length), low(begin, end), high(begin - width, end - width),
      low2(begin - 2, end - 2), high2(begin - width - 2, end - width - 2);
  const T* rows[4];
  int64_t step[4];
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t y = 2 * run.row + i - s.padding[0];
    const bool outside = y < 0 || y >= s.height;
    rows[i] = outside ? kOutside : planes + y * s.width + x;
    step[i] = outside ? 0 : s.pixels();
  }
  for (int64_t c = 0; c < channels; ++c, to += kNR<T>) {
    transform_pixels<T>(
        [&](int i, VectorT<T>(&d)[4]) {
          const T* from = rows[i] + c * step[i];
          if (i >= 2) {  // The first two rows are the last two of the tiles above.
            for (int64_t j = 0; j < 2 * width; j += width) {
              __builtin_prefetch(from + kPrefetchPlanes * step[i] + j);
            }
          }
          const auto a = low.load(from), b = high.load(from + width);
          const auto a2 = low2.load(from + 2), b2 = high2.load(from + width + 2);
          d[0] = even_elements(a, b);
          d[1] = odd_elements(a, b);
          d[2] = even_elements(a2, b2);
          d[3] = odd_elements(a2, b2);
        },
        [&](int q, VectorT<T> value) { tiles.store(to + q * position, value); });
  }
}

// Loads one channel of a run, d[4 i + j][tile]: pixel (i, j) of each tile, zeros outside of the
// image.
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
    if constexpr (VecMask<T>::kMasked) {  // Runs are at most one vector long.
      const VecMask<T> tiles(run.length);
      const auto part = [&](int64_t first) {
        return VecMask<T>(begin - first, end - first).load(from + first);
      };
      const auto low = part(0), high = part(width), low2 = part(2), high2 = part(width + 2);
      tiles.store(to, even_elements(low, high));
      tiles.store(to + kTilesTogether, odd_elements(low, high));
      tiles.store(to + 2 * kTilesTogether, even_elements(low2, high2));
      tiles.store(to + 3 * kTilesTogether, odd_elements(low2, high2));
      continue;
    }
    for (int64_t j = 0; j < 4; ++j) {
      for (int64_t t = 0; t < run.length; ++t) {
        const int64_t at = 2 * t + j;
        to[j * kTilesTogether + t] = at >= begin && at < end ? from[at] : T(0);
      }
    }
  }
}

// Computes G g G^T for the weights of one filter: [position][channel]. Kernels of channels are
// `step` apart, positions `position_step`; `transposed` reverses the taps.
template <class T>
void transform_weight(const T* weight, int64_t step, bool transposed, int64_t channels, T* to,
                      int64_t position_step) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  alignas(64) T taps[9 * width] = {};
  for (int64_t c = 0; c < channels; c += width) {
    const int64_t count = std::min(width, channels - c);
    transpose_elements(sizeof(T), reinterpret_cast<const char*>(weight + c * step),
                       step * static_cast<int64_t>(sizeof(T)), reinterpret_cast<char*>(taps),
                       width * static_cast<int64_t>(sizeof(T)), count, 9);
    const auto tap = [&](int t) {
      return *reinterpret_cast<const Vector*>(taps + (transposed ? 8 - t : t) * width);
    };
    const auto store_run = [&](int position, Vector value) {
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
      a[0][j] = g0;
      a[3][j] = g2;
      a[1][j] = (g0 + g1 + g2) * T(0.5);
      a[2][j] = (g0 - g1 + g2) * T(0.5);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      store_run(4 * i, a[i][0]), store_run(4 * i + 3, a[i][2]);
      store_run(4 * i + 1, (a[i][0] + a[i][1] + a[i][2]) * T(0.5));
      store_run(4 * i + 2, (a[i][0] - a[i][1] + a[i][2]) * T(0.5));
    }
  }
}

// Stores the results of a vector of tiles to a plane, `columns` of them adjacent.
template <class T>
[[gnu::always_inline]] inline void store_results(const ConvShapes& s, const VectorT<T> (&y)[2][2],
                                                 int64_t rows, int64_t columns, T* to) {
  constexpr int64_t width = kWidth<T>;
  for (int64_t i = 0; i < rows; ++i, to += s.columns) {
    const auto low = interleave_low(y[i][0], y[i][1]), high = interleave_high(y[i][0], y[i][1]);
    if constexpr (VecMask<T>::kMasked) {
      VecMask<T>(columns).store(to, low);
      VecMask<T>(columns - width).store(to + width, high);
    } else if (columns == 2 * width) {
      VecMask<T>(width).store(to, low);
      VecMask<T>(width).store(to + width, high);
    } else {
      for (int64_t j = 0; j < columns; ++j) to[j] = j < width ? low[j] : high[j - width];
    }
  }
}

// Computes A^T m A for a run of `filters` filters, at most one vector of tiles, and stores it to
// the planes of the image. Returns whether all are finite.
template <class T>
bool transform_results_of_run(const ConvShapes& s, int64_t filters, const TileRun& run, const T* m,
                              int64_t position, const T* bias, T* out) {
  constexpr int64_t width = kWidth<T>;
  const VecMask<T> tiles(run.length);
  const int64_t rows = std::min<int64_t>(2, s.rows - 2 * run.row);
  const int64_t columns = std::min(2 * run.length, s.columns - 2 * run.column);
  T* to = out + 2 * run.row * s.columns + 2 * run.column;
  VectorT<T> doubt = {};
  using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));
  Indices index{};
  for (int l = 0; l < width; ++l) index[l] = l;
  const auto behind = index >= static_cast<Index>(run.length);
  // Without masks, elements behind the run are not results and are ignored.
  const auto of_run = [&](VectorT<T> x) {
    return VecMask<T>::kMasked ? x : behind ? VectorT<T>{} : x;
  };
  for (int64_t f = 0; f < filters; ++f, m += kNR<T>, to += s.results()) {
    if constexpr (VecMask<T>::kMasked) {
      for (int64_t j = 0; j < 2 * width; j += width) {
        __builtin_prefetch(to + kPrefetchPlanes * s.results() + j, 1);
        __builtin_prefetch(to + kPrefetchPlanes * s.results() + s.columns + j, 1);
      }
    }
    VectorT<T> y[2][2];
    transform_results<T>([&](int q) { return of_run(tiles.load(m + q * position)); },
                         (bias ? bias[f] : T(0)) - VectorT<T>{}, y, &doubt);
    store_results<T>(s, y, rows, columns, to);
  }
  return is_finite<T>(doubt);
}

// Applies the epilogue to some filters of the results of a block.
template <class T>
void finish_block(const ConvShapes& s, const WinogradTiles& tiles, int64_t first, int64_t count,
                  const ConvEpilogue<T>& epilogue, int64_t filter, int64_t filters, T* out) {
  tiles.for_runs(first, count, count, count, [&](const TileRun& run) {
    const int64_t rows = std::min<int64_t>(2, s.rows - 2 * run.row);
    const int64_t columns = std::min(2 * run.length, s.columns - 2 * run.column);
    T* to = out + run.image * s.filters * s.results() + 2 * run.row * s.columns + 2 * run.column;
    epilogue.on_filters(filter, to, {filters, s.results(), rows, s.columns, columns});
  });
}

// Computes `filters` filters of one group for one block of tiles; `weights`, which are transformed,
// `bias` and `out` begin with the first of them, `first_filter` among all filters. `memory` has
// winograd_bytes(). Returns whether all results are finite, before the epilogue, if there is one.
template <class T>
bool winograd_block(const ConvShapes& s, const WinogradTiles& tiles, int64_t first, const T* x,
                    const T* weights, const T* bias, T* out, void* memory,
                    const ConvEpilogue<T>* epilogue, int64_t first_filter, int64_t filters) {
  constexpr int64_t panel = kNR<T>, width = kWidth<T>;
  const int64_t channels = s.group_channels();
  const int64_t position_in = position_stride<T>(channels), row = weight_stride<T>(channels);
  const int64_t position_out = position_stride<T>(filters);
  const int64_t count = std::min(kTilesTogether, tiles.count() - first);
  T* panels_in = static_cast<T*>(memory);
  T* panels_out = panels_in + kPositions * position_in;
  const bool by_runs = VecMask<T>::kMasked && 4 * tiles.across() > width;
  if constexpr (VecMask<T>::kMasked) {
    // The results of missing tiles are not read, but their inputs are initialised.
    if (by_runs && count < kTilesTogether) std::fill_n(panels_in, kPositions * position_in, T(0));
    for (int64_t c = 0; by_runs && c < channels; c += kPlanesTogether) {
      tiles.for_runs(first, count, width, panel, [&](const TileRun& run) {
        transform_run(s, x + (run.image * s.channels + c) * s.pixels(),
                      std::min(kPlanesTogether, channels - c), run,
                      panels_in + in_panels<T>(run.at, channels * panel) + c * panel, position_in);
      });
    }
  }
  if (!by_runs) {  // Vectors of tiles of several rows.
    constexpr int64_t limit = VecMask<T>::kMasked ? width : kTilesTogether;
    alignas(64) T buffer[kPositions][kTilesTogether] = {};
    for (int64_t c = 0; c < channels; ++c) {
      tiles.for_runs(first, count, limit, kTilesTogether, [&](const TileRun& run) {
        load_tiles(s, x + (run.image * s.channels + c) * s.pixels(), run, buffer);
      });
      for (int64_t t = 0; t < kTilesTogether; t += width) {
        transform_pixels<T>(buffer[0] + t, 4 * kTilesTogether, kTilesTogether,
                            panels_in + in_panels<T>(t, channels * panel) + c * panel, position_in);
      }
    }
  }
  for (int64_t q = 0; q < kPositions; ++q) {
    for (int64_t p = 0; p * panel < count; ++p) {
      T* to = panels_out + q * position_out + p * filters * panel;
      const int64_t vectors = std::min(panel, (count - p * panel + width - 1) / width * width);
      run_tile<Plain<T>>(filters, vectors, channels, weights + q * channels, row, 1,
                         panels_in + q * position_in + p * channels * panel, panel,
                         MatrixEpilogue<T>{to, panel}, 0, 0, false);
    }
  }
  bool finite = true;
  for (int64_t f = 0; f < filters; f += kPlanesTogether) {
    tiles.for_runs(first, count, width, panel, [&](const TileRun& run) {
      finite &= transform_results_of_run(
          s, std::min(kPlanesTogether, filters - f), run,
          panels_out + in_panels<T>(run.at, filters * panel) + f * panel, position_out,
          bias ? bias + f : nullptr, out + (run.image * s.filters + f) * s.results());
    });
    if (epilogue) {
      finish_block(s, tiles, first, count, *epilogue, first_filter + f,
                   std::min(kPlanesTogether, filters - f), out + f * s.results());
    }
  }
  return finite;
}

template <class T>
int64_t winograd_bytes(int64_t channels, int64_t filters) {
  return kPositions * (position_stride<T>(channels) + position_stride<T>(filters)) *
         static_cast<int64_t>(sizeof(T));
}

// True if there are enough filters and channels to outweigh the transforms.
inline bool is_large_enough_for_winograd(const ConvShapes& s) {
  return s.kernel[0] == 3 && s.kernel[1] == 3 && s.group_channels() >= 32 &&
         s.group_filters() >= 32;
}
inline bool suits_winograd(const ConvShapes& s) {
  return is_large_enough_for_winograd(s) && s.stride[0] == 1 && s.stride[1] == 1 &&
         s.dilation[0] == 1 && s.dilation[1] == 1 && s.batch * s.results() >= kTilesTogether;
}

// Elements of the transformed weights of all groups.
template <class T>
int64_t winograd_weight_elements(const ConvShapes& s) {
  return s.filters * weight_stride<T>(s.group_channels());
}

// Transforms the weights of all groups. With `transposed` they are read with channels and filters
// exchanged and taps in reverse.
template <class T>
void transform_weights(const ConvShapes& s, const T* weight, bool transposed, T* weights) {
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const int64_t row = weight_stride<T>(channels);
  parallel(s.filters, channels * kPositions * 2, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const int64_t of_group = f % filters * (transposed ? 9 : channels * 9);
      transform_weight(weight + f / filters * filters * channels * 9 + of_group,
                       transposed ? filters * 9 : 9, transposed, channels, weights + f * row,
                       channels);
    }
  });
}

// Convolves with transformed weights. `*finite` tells whether the results are valid: an infinity
// or NaN spreads over its tile, where the direct sum keeps it in its window.
template <class T, class Owner>
tenon_status multiply_winograd(Owner* owner, const ConvShapes& s, const T* x, const T* weights,
                               const T* bias, const ConvEpilogue<T>* epilogue, T* out, bool* finite,
                               tenon_err* err) {
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const WinogradTiles tiles(s);
  const int64_t blocks = (tiles.count() + kTilesTogether - 1) / kTilesTogether;
  const int64_t items = s.groups * blocks;  // Of one share: neighbouring items read its weights.
  const FilterShares shares(items, filters, kPlanesTogether);
  std::atomic<bool> all_finite = true;
  const tenon_status status = parallel_for_with_scratch(
      owner, shares.count() * items, shares.each() * channels * kTilesTogether,
      winograd_bytes<T>(channels, shares.each()), err, [&](int64_t item, void* own) {
        const int64_t share = item / items, g = item % items / blocks;
        const int64_t filter = g * filters + shares.begin(share);
        if (!winograd_block<T>(s, tiles, item % blocks * kTilesTogether,
                               x + g * channels * s.pixels(),
                               weights + filter * weight_stride<T>(channels),
                               bias ? bias + filter : nullptr, out + filter * s.results(), own,
                               epilogue, filter, shares.end(share) - shares.begin(share))) {
          all_finite.store(false, std::memory_order_relaxed);
        }
      });
  *finite = all_finite.load(std::memory_order_relaxed);
  return status;
}

// Winograd convolution. With `transposed` it computes the input gradient: s has its filters as
// channels.
template <class T>
tenon_status run_winograd(tenon_ctx* ctx, const ConvShapes& s, const T* x, const T* weight,
                          bool transposed, const T* bias, T* out, bool* finite, tenon_err* err) {
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(winograd_weight_elements<T>(s)) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T* weights = static_cast<T*>(memory);
  transform_weights(s, weight, transposed, weights);
  return multiply_winograd<T>(ctx, s, x, weights, bias, nullptr, out, finite, err);
}

}  // namespace tenon::cpu::TENON_CPU_ISA
