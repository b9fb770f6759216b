// SPDX-License-Identifier: Apache-2.0
// Winograd weight gradients F(3 x 3, 2 x 2) of 3 x 3 convolutions (Lavin and Gray, "Fast Algorithms
// for Convolutional Neural Networks", 2016): a tile of 2 x 2 results contributes to 3 x 3 taps with
// 16 products instead of 36, from the same transformed pixels as the convolution. The sums over
// tiles are GEMMs, one for each of the 16 positions; images and gradients are transformed channels-
// last.
#pragma once

#include "conv/nchw16c_layout.hpp"
#include "conv/winograd.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The order of the tiles: a block is some rows of tiles of an image, or some whole images. For each
// position it becomes two matrices, pixels in panels [panel][tile][kNR channels] and gradients in
// vectors [vector][tile][kWidth filters].
template <class T>
struct GradTiles {
  int64_t across, down;         // Tiles of an image.
  int64_t rows, bands;          // Rows of tiles in a band; bands in an image.
  int64_t images, blocks;       // Images in a block; number of blocks.
  int64_t panels, vectors;      // Panels of channels; vectors of filters.
  int64_t channels;             // Rounded up to whole vectors.
  int64_t image_row, image;     // Elements of a padded row and of a band of pixels.
  int64_t pixels_at, grads_at;  // Elements from one position to the next.

  explicit GradTiles(const ConvShapes& s) : across((s.columns + 1) / 2), down((s.rows + 1) / 2) {
    constexpr int64_t width = kWidth<T>;
    // A block is larger if the matrices of accumulators are large, so that they are read and
    // written less often.
    const int64_t limit = s.group_channels() * s.group_filters() >= 128 * 128 ? 256 : 128;
    rows = std::clamp<int64_t>(limit / across, 1, down);
    bands = (down + rows - 1) / rows;
    images = std::clamp<int64_t>(limit / (across * down), 1, s.batch);
    blocks = bands > 1 ? s.batch * bands : (s.batch + images - 1) / images;
    panels = (s.group_channels() + kNR<T> - 1) / kNR<T>;
    vectors = (s.group_filters() + width - 1) / width;
    channels = (s.group_channels() + width - 1) / width * width;
    image_row = (2 * across + 2) * width;
    image = (2 * rows + 2) * image_row;
    // Not powers of two, so that positions use different sets of the cache.
    pixels_at = panels * tiles() * kNR<T> + 3 * width;
    grads_at = vectors * tiles() * width + 3 * width;
  }
  int64_t tiles() const { return images * rows * across; }
  // Accumulators of one position.
  int64_t accumulators() const { return vectors * kWidth<T> * channels; }
  T* pixels(T* to, int64_t vector) const {
    constexpr int64_t together = kNRVectors<T>;
    return to + vector / together * tiles() * kNR<T> + vector % together * kWidth<T>;
  }
};

// Copies rows [first, first + rows) of a vector of channels, `length` vectors each from column
// `left` on, with zeros outside of the image.
template <class T>
void read_window(const ChannelReader<T>& x, int64_t offset, int64_t channels, int64_t height,
                 int64_t width, int64_t first, int64_t rows, int64_t left, int64_t length, T* to,
                 T* buffer) {
  const int64_t row = length * kWidth<T>;
  const int64_t begin = std::clamp<int64_t>(-first, 0, rows);
  const int64_t end = std::clamp<int64_t>(height - first, begin, rows);
  const int64_t before = std::clamp<int64_t>(-left, 0, length);
  const int64_t after = std::clamp<int64_t>(width - left, before, length);
  clear(to, to + begin * row);
  clear(to + end * row, to + rows * row);
  for (int64_t y = begin; y < end; ++y) {
    clear(to + y * row, to + y * row + before * kWidth<T>);
    clear(to + y * row + after * kWidth<T>, to + (y + 1) * row);
    x.read(offset + x.at(0, 0, (first + y) * width + left + before), channels, 1, after - before,
           to + y * row + before * kWidth<T>, row, buffer);
  }
}

// Computes G g G^T for the 2 x 2 gradients at `from`.
template <class T>
[[gnu::always_inline]] inline void transform_grads(const T* from, int64_t row, T* to,
                                                   int64_t position) {
  VectorT<T> a[4][2];
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    const auto g0 = *reinterpret_cast<const VectorT<T>*>(from + j * kWidth<T>);
    const auto g1 = *reinterpret_cast<const VectorT<T>*>(from + row + j * kWidth<T>);
    a[0][j] = g0;
    a[1][j] = (g0 + g1) * T(0.5);
    a[2][j] = (g0 - g1) * T(0.5);
    a[3][j] = g1;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto store = [&](int j, VectorT<T> x) {
      *reinterpret_cast<VectorT<T>*>(to + (4 * i + j) * position) = x;
    };
    store(0, a[i][0]), store(1, (a[i][0] + a[i][1]) * T(0.5));
    store(2, (a[i][0] - a[i][1]) * T(0.5)), store(3, a[i][1]);
  }
}

// Transforms the tiles of one block for a vector of channels: pixels or, if `Grads`, output
// gradients.
template <class T, bool Grads>
void transform_block(const ConvShapes& s, const GradTiles<T>& tiles, int64_t block,
                     const ChannelReader<T>& x, int64_t channel, int64_t channels, T* to,
                     T* memory) {
  constexpr int64_t side = Grads ? 2 : 4, step = Grads ? kWidth<T> : kNR<T>;
  const int64_t length = 2 * tiles.across + side - 2, row = length * kWidth<T>;
  const int64_t band = block % tiles.bands;
  const int64_t first = tiles.bands > 1 ? block / tiles.bands : block * tiles.images;
  for (int64_t n = 0; n < tiles.images; ++n, to += tiles.rows * tiles.across * step) {
    const int64_t top = 2 * band * tiles.rows, rows = 2 * tiles.rows + side - 2;
    if (first + n >= s.batch) {
      for (int64_t q = 0; q < kPositions; ++q) {
        for (int64_t t = 0; t < tiles.rows * tiles.across; ++t) {
          T* at = to + q * (Grads ? tiles.grads_at : tiles.pixels_at) + t * step;
          clear(at, at + kWidth<T>);
        }
      }
      continue;
    }
    read_window(x, x.at(first + n, channel, 0), channels, Grads ? s.rows : s.height,
                Grads ? s.columns : s.width, top - (Grads ? 0 : s.padding[0]), rows,
                Grads ? 0 : -s.padding[1], length, memory, memory + tiles.image);
    for (int64_t i = 0; i < tiles.rows; ++i) {
      for (int64_t j = 0; j < tiles.across; ++j) {
        const T* from = memory + 2 * i * row + 2 * j * kWidth<T>;
        T* at = to + (i * tiles.across + j) * step;
        if constexpr (Grads) {
          transform_grads(from, row, at, tiles.grads_at);
        } else {
          transform_pixels(from, row, kWidth<T>, at, tiles.pixels_at);
        }
      }
    }
  }
}

// One panel of channels at one position: accumulators += grads^T * pixels.
template <class T>
void multiply_position(const GradTiles<T>& tiles, int64_t panel, const T* pixels, const T* grads,
                       T* accumulators, bool accumulate) {
  constexpr int64_t width = kWidth<T>;
  constexpr int64_t some = std::min<int64_t>(width, kVectorBytes == 64 ? 8 : 4);
  const int64_t columns = std::min<int64_t>(kNR<T>, tiles.channels - panel * kNR<T>);
  const T* b = pixels + panel * tiles.tiles() * kNR<T>;
  const MatrixEpilogue<T> epilogue{accumulators, tiles.channels};
  for (int64_t f = 0; f < tiles.vectors * width; f += some) {
    const T* a = grads + f / width * tiles.tiles() * width + f % width;
    run_tile<Plain<T>>(some, columns, tiles.tiles(), a, 1, width, b, kNR<T>, epilogue, f,
                       panel * kNR<T>, accumulate);
  }
}

// Computes A^T m A for one filter, from accumulators [position][channel] to [channel][3][3].
// Returns whether all are finite.
template <class T>
bool transform_weight_grad(const GradTiles<T>& tiles, const T* accumulators, int64_t channels,
                           T* to) {
  VectorT<T> doubt = {};  // Becomes NaN if there is an infinity or NaN.
  for (int64_t c = 0; c < channels; c += kWidth<T>) {
    VectorT<T> a[3][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      VectorT<T> m[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        m[i] = *reinterpret_cast<const VectorT<T>*>(accumulators +
                                                    (4 * i + j) * tiles.accumulators() + c);
      }
      a[0][j] = m[0] + m[1] + m[2];
      a[1][j] = m[1] - m[2];
      a[2][j] = m[1] + m[2] - m[3];
    }
    alignas(64) T taps[9][kWidth<T>];
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      const VectorT<T> y[3] = {a[i][0] + a[i][1] + a[i][2], a[i][1] - a[i][2],
                               a[i][1] + a[i][2] - a[i][3]};
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        doubt += y[j] - y[j];
        *reinterpret_cast<VectorT<T>*>(taps[3 * i + j]) = y[j];
      }
    }
    for (int64_t l = 0; l < std::min<int64_t>(kWidth<T>, channels - c); ++l) {
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) *to++ = taps[t][l];
    }
  }
  return is_finite<T>(doubt);
}

// Computes the weight gradient of group g and returns whether all of it is finite. `memory` holds
// accumulators, then pixels, then gradients; `own` has `stride` bytes for each thread.
template <class T>
bool winograd_grad_group(const ConvShapes& s, const GradTiles<T>& tiles, int64_t g,
                         const ChannelReader<T>& grad, const ChannelReader<T>& x, T* weight,
                         T* memory, void* own, int64_t stride) {
  constexpr int64_t width = kWidth<T>;
  const int64_t channels = s.group_channels(), filters = s.group_filters();
  T *accumulators = memory, *pixels = accumulators + kPositions * tiles.accumulators();
  T* grads = pixels + kPositions * tiles.pixels_at;
  for (int64_t block = 0; block < tiles.blocks; ++block) {
    const int64_t of_pixels = tiles.channels / width;
    parallel_for_in_slots(
        own, stride, of_pixels + tiles.vectors, tiles.tiles() * 64, [&](int64_t i, void* own) {
          T* to = static_cast<T*>(own);
          if (i < of_pixels) {
            transform_block<T, false>(s, tiles, block, x, g * channels + i * width,
                                      std::min(width, channels - i * width),
                                      tiles.pixels(pixels, i), to);
          } else {
            i -= of_pixels;
            transform_block<T, true>(s, tiles, block, grad, g * filters + i * width,
                                     std::min(width, filters - i * width),
                                     grads + i * tiles.tiles() * width, to);
          }
        });
    parallel(kPositions * tiles.panels, tiles.tiles() * filters * 2,
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t q = i / tiles.panels;
                 multiply_position(tiles, i % tiles.panels, pixels + q * tiles.pixels_at,
                                   grads + q * tiles.grads_at,
                                   accumulators + q * tiles.accumulators(), block > 0);
               }
             });
  }
  std::atomic<bool> all_finite = true;
  parallel(filters, channels * 2, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      T* to = weight + (g * filters + f) * channels * 9;
      if (!transform_weight_grad(tiles, accumulators + f * tiles.channels, channels, to)) {
        all_finite.store(false, std::memory_order_relaxed);
      }
    }
  });
  return all_finite.load(std::memory_order_relaxed);
}

// `*finite` tells whether the results are valid, as for run_winograd().
template <class T>
tenon_status run_winograd_grad(tenon_ctx* ctx, const ConvShapes& s, const ChannelReader<T>& grad,
                               const ChannelReader<T>& x, T* weight, bool* finite, tenon_err* err) {
  const GradTiles<T> tiles(s);
  const int64_t shared = kPositions * (tiles.accumulators() + tiles.pixels_at + tiles.grads_at);
  const int64_t own = tiles.image + std::max(x.buffer(s.width), grad.buffer(s.columns));
  const int64_t stride = (own * static_cast<int64_t>(sizeof(T)) + 63) & ~int64_t{63};
  void *memory = nullptr, *buffers = nullptr;
  const tenon_status status =
      host->scratch(ctx, static_cast<uint64_t>(shared) * sizeof(T), &memory, err);
  if (status != TENON_OK) return status;
  if (const tenon_status each =
          host->scratch(ctx, static_cast<uint64_t>(stride * host->thread_count()), &buffers, err);
      each != TENON_OK) {
    return each;
  }
  *finite = true;
  for (int64_t g = 0; g < s.groups && *finite; ++g) {
    *finite =
        winograd_grad_group(s, tiles, g, grad, x, weight, static_cast<T*>(memory), buffers, stride);
  }
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
