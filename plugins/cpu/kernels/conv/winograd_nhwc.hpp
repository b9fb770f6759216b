// SPDX-License-Identifier: Apache-2.0
// Winograd convolution of NHWC images to NHWC results: the transforms take a vector of channels at
// a time in place, and the GEMMs multiply tiles by filters.
#pragma once

#include "conv/winograd_grad.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Layout of a block of tiles: pixels are [position][tile][channel], results
// [position][tile][filter], and the weights of all blocks are panels,
// [position][panel][channel][kNR filters]. No step is a power of two, so that positions use
// different sets of the cache.
template <class T>
struct FilteredBlocks {
  int64_t channels, filters;      // Elements of a tile.
  int64_t pixels_at, results_at;  // Elements of a position.
  int64_t panel, weights_at;      // Elements of a panel, and of the weights of a position.
  int64_t panels;

  explicit FilteredBlocks(const ConvShapes& s)
      : channels(whole(s.group_channels()) + kWidth<T>),
        filters(whole(s.group_filters()) + kWidth<T>),
        pixels_at(kTilesTogether * channels + 3 * kWidth<T>),
        results_at(kTilesTogether * filters + 3 * kWidth<T>),
        panel(s.group_channels() * kNR<T>),
        panels((s.group_filters() + kNR<T> - 1) / kNR<T>) {
    weights_at = panels * panel + 3 * kWidth<T>;
  }
  static int64_t whole(int64_t n) { return (n + kWidth<T> - 1) / kWidth<T> * kWidth<T>; }
  int64_t bytes() const {
    return kPositions * (pixels_at + results_at) * static_cast<int64_t>(sizeof(T));
  }
};

// Elements from one pixel to the next, of images and of results.
struct PixelSteps {
  int64_t pixel, result;
};

// Computes B^T d B for the tiles of a block. `x` is the first channel of the group.
template <class T>
void transform_tiles_last(const ConvShapes& s, const FilteredBlocks<T>& blocks,
                          const WinogradTiles& tiles, int64_t first, int64_t count, const T* x,
                          int64_t pixel, T* to) {
  constexpr int64_t width = kWidth<T>;
  const int64_t channels = s.group_channels(), row = s.width * pixel;
  tiles.for_runs(first, count, kTilesTogether, kTilesTogether, [&](const TileRun& run) {
    const int64_t top = 2 * run.row - s.padding[0];
    for (int64_t t = 0; t < run.length; ++t) {
      const int64_t left = 2 * (run.column + t) - s.padding[1];
      const T* from = x + run.image * s.pixels() * pixel + top * row + left * pixel;
      T* at = to + (run.at + t) * blocks.channels;
      const bool inside = top >= 0 && top + 4 <= s.height && left >= 0 && left + 4 <= s.width;
      const int64_t whole = inside ? channels / width * width : 0;
      for (int64_t c = 0; c < whole; c += width) {
        transform_pixels(from + c, row, pixel, at + c, blocks.pixels_at);
      }
      for (int64_t c = whole; c < channels; c += width) {
        alignas(64) T patch[16 * width] = {};
        for (int64_t i = 0; i < 4; ++i) {
          for (int64_t j = 0; j < 4; ++j) {
            const int64_t y = top + i, z = left + j;
            if (y < 0 || y >= s.height || z < 0 || z >= s.width) continue;
            copy_every(from + i * row + j * pixel + c, 1, patch + (4 * i + j) * width,
                       std::min(width, channels - c));
          }
        }
        transform_pixels<T>(patch, 4 * width, width, at + c, blocks.pixels_at);
      }
    }
  });
}

// Computes A^T m A for the tiles of a block, plus the bias, for the filters [begin, end). Returns
// whether all are finite. `out` is the first filter of the group. Calls done(first, pixels) for each
// run of complete pixels.
template <class T, class Done>
bool transform_results_last(const ConvShapes& s, const FilteredBlocks<T>& blocks,
                            const WinogradTiles& tiles, int64_t first, int64_t count, int64_t begin,
                            int64_t end, const T* from, const T* bias, T* out, int64_t result,
                            Done&& done) {
  using Vector = VectorT<T>;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  Vector doubt = {};  // Becomes NaN if there is an infinity or NaN.
  tiles.for_runs(first, count, kTilesTogether, kTilesTogether, [&](const TileRun& run) {
    const int64_t y = 2 * run.row, at = (run.image * s.rows + y) * s.columns + 2 * run.column;
    for (int64_t f = begin; f < end; f += width) {
      const int64_t some = std::min(width, end - f);
      alignas(64) T shift[width] = {};
      if (bias) std::copy_n(bias + f, some, shift);
      const Vector offset = *reinterpret_cast<const Vector*>(shift);
      for (int64_t t = 0; t < run.length; ++t) {
        const T* m = from + (run.at + t) * blocks.filters + f;
        const int64_t x = 2 * (run.column + t);
        T* to = out + (at + 2 * t) * result + f;
        Vector results[2][2];
        transform_results<T>([&](int q) { return VecMask<T>::load_all(m + q * blocks.results_at); },
                             offset, results, &doubt);
        for (int64_t i = 0; i < 2 && y + i < s.rows; ++i) {
          for (int64_t j = 0; j < 2 && x + j < s.columns; ++j) {
            T* index = to + (i * s.columns + j) * result;
            if (some == width) {
              *reinterpret_cast<Unaligned*>(index) = results[i][j];
            } else {
              std::copy_n(reinterpret_cast<const T*>(&results[i][j]), some, index);
            }
          }
        }
      }
    }
    const int64_t pixels = std::min(2 * run.length, s.columns - 2 * run.column);
    for (int64_t i = 0; i < 2 && y + i < s.rows; ++i) done(at + i * s.columns, pixels);
  });
  return is_finite<T>(doubt);
}

// Elements of the transformed weights of a group.
template <class T>
int64_t weight_elements_last(const FilteredBlocks<T>& blocks) {
  return kPositions * blocks.weights_at;
}

// Transforms the weights of all groups for multiply_winograd_last(). With `transposed` they are read
// with channels and filters exchanged and taps in reverse.
template <class T>
void transform_weights_last(const ConvShapes& s, const FilteredBlocks<T>& blocks, const T* weight,
                            bool transposed, T* weights) {
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const int64_t of_group = weight_elements_last(blocks);
  parallel(s.channels, filters * kPositions * 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / channels, c = i % channels;
      const int64_t step = transposed ? 9 : channels * 9;  // From one filter to the next.
      const T* from = weight + group * filters * channels * 9 + c * (transposed ? filters * 9 : 9);
      for (int64_t p = 0; p < blocks.panels; ++p) {
        const int64_t f = p * kNR<T>;
        transform_weight(from + f * step, step, transposed, std::min<int64_t>(kNR<T>, filters - f),
                         weights + group * of_group + p * blocks.panel + c * kNR<T>,
                         blocks.weights_at);
      }
    }
  });
}

// Convolves NHWC images with transformed weights; `finite` as for multiply_winograd(). Calls done(first,
// pixels, filter, filters) for parts that are complete.
template <class T, class Owner, class Done>
tenon_status multiply_winograd_last(Owner* owner, const ConvShapes& s,
                                    const FilteredBlocks<T>& blocks, PixelSteps steps, const T* x,
                                    const T* weights, const T* bias, T* out, bool* finite,
                                    tenon_err* err, Done&& done) {
  const int64_t filters = s.group_filters(), channels = s.group_channels();
  const int64_t of_group = weight_elements_last(blocks);
  const WinogradTiles tiles(s);
  const int64_t parts = (tiles.count() + kTilesTogether - 1) / kTilesTogether;
  const int64_t together = (tiles.count() + parts - 1) / parts, items = s.groups * parts;
  const bool divides = items % host->thread_count() != 0;
  const FilterShares shares(divides ? items : INT64_MAX, filters, kNR<T>);
  std::atomic<bool> all_finite = true;
  const tenon_status status = parallel_for_with_scratch(
      owner, shares.count() * items, shares.each() * channels * kTilesTogether, blocks.bytes(), err,
      [&](int64_t item, void* own) {
        const int64_t g = item % items / parts, first = item % parts * together;
        const int64_t some = std::min(together, tiles.count() - first);
        const int64_t begin = shares.begin(item / items), end = shares.end(item / items);
        T *pixels = static_cast<T*>(own), *results = pixels + kPositions * blocks.pixels_at;
        transform_tiles_last(s, blocks, tiles, first, some, x + g * channels, steps.pixel, pixels);
        if (filters % kWidth<T> != 0) {  // Elements for which there is no product.
          std::fill_n(results, kPositions * blocks.results_at, T(0));
        }
        for (int64_t q = 0; q < kPositions; ++q) {
          for (int64_t f = begin; f < end; f += kNR<T>) {
            run_tile<Plain<T>>(
                some, std::min<int64_t>(kNR<T>, end - f), channels, pixels + q * blocks.pixels_at,
                blocks.channels, 1,
                weights + g * of_group + q * blocks.weights_at + f / kNR<T> * blocks.panel, kNR<T>,
                MatrixEpilogue<T>{results + q * blocks.results_at + f, blocks.filters}, 0, 0,
                false);
          }
        }
        if (!transform_results_last(s, blocks, tiles, first, some, begin, end, results,
                                    bias ? bias + g * filters : nullptr, out + g * filters,
                                    steps.result, [&](int64_t pixel, int64_t count) {
                                      done(pixel, count, g * filters + begin, end - begin);
                                    })) {
          all_finite.store(false, std::memory_order_relaxed);
        }
      });
  *finite = all_finite.load(std::memory_order_relaxed);
  return status;
}

// run_winograd() for NHWC images and results.
template <class T>
tenon_status run_winograd_last(tenon_ctx* ctx, const ConvShapes& s, const T* x, const T* weight,
                               bool transposed, const T* bias, T* out, bool* finite,
                               tenon_err* err) {
  const FilteredBlocks<T> blocks(s);
  void* memory = nullptr;
  const auto bytes = static_cast<uint64_t>(s.groups * weight_elements_last(blocks)) * sizeof(T);
  if (const tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) {
    return status;
  }
  T* weights = static_cast<T*>(memory);
  transform_weights_last(s, blocks, weight, transposed, weights);
  return multiply_winograd_last<T>(ctx, s, blocks, {s.channels, s.filters}, x, weights, bias, out,
                                   finite, err, [](int64_t, int64_t, int64_t, int64_t) {});
}

}  // namespace tenon::cpu::TENON_CPU_ISA
