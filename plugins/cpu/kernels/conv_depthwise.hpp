// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions: every filter sees one channel. Images are cut into bands of rows of a
// vector's worth of channels, which lie side by side, with padding: a pixel is a register, whatever
// the kernel, stride and width.
#pragma once

#include "channel_blocks.hpp"
#include "conv_shapes.hpp"
#include "parallel_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// How images are cut into bands; the last one may be shorter. A padded row is a whole row of the
// image between zeros; results begin at its pixel `skip`.
template <class T>
struct Bands {
  static constexpr int64_t kBytes = 160 * 1024;  // of a band and its results: they stay in cache
  int64_t rows, count;                           // rows of results in a band; bands in an image
  int64_t left, skip;     // zeros before a row; pixels before the first that a tap sees
  int64_t image_row;      // elements of a padded row
  int64_t image, result;  // elements of a padded band and of its results

  explicit Bands(const ConvShapes& s)
      : left(std::max<int64_t>(0, s.padding[1])), skip(left - s.padding[1]) {
    const int64_t seen = (s.columns - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    image_row = std::max(left + s.width, skip + seen) * kWidth<T>;
    const int64_t result_row = s.columns * kWidth<T>;
    const int64_t first = rows_seen(s, 1) * image_row + result_row;
    const int64_t most = kBytes / static_cast<int64_t>(sizeof(T));
    rows =
        std::clamp<int64_t>(1 + (most - first) / (s.stride[0] * image_row + result_row), 1, s.rows);
    count = (s.rows + rows - 1) / rows;
    image = rows_seen(s, rows) * image_row;
    result = rows * s.columns * kWidth<T>;
  }
  static int64_t rows_seen(const ConvShapes& s, int64_t rows) {
    return (rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
  }
  // Where tap (u, v) of the first result lies in a band.
  int64_t tap(const ConvShapes& s, int64_t u, int64_t v) const {
    return u * s.dilation[0] * image_row + (skip + v * s.dilation[1]) * kWidth<T>;
  }
  int64_t rows_of(const ConvShapes& s, int64_t band) const {
    return std::min(rows, s.rows - band * rows);
  }
};

// The pixels that a band of results sees, with zeros around.
template <class T>
void read_band(const ConvShapes& s, const Bands<T>& bands, const ChannelReader<T>& x, int64_t image,
               int64_t channel, int64_t channels, int64_t band, T* to, T* buffer) {
  const int64_t seen = Bands<T>::rows_seen(s, bands.rows_of(s, band));
  const int64_t top = band * bands.rows * s.stride[0] - s.padding[0];
  const int64_t begin = std::clamp<int64_t>(-top, 0, seen);
  const int64_t end = std::clamp<int64_t>(s.height - top, begin, seen);
  const int64_t first = bands.left * kWidth<T>, last = first + s.width * kWidth<T>;
  clear(to, to + begin * bands.image_row);
  clear(to + end * bands.image_row, to + seen * bands.image_row);
  for (T* row = to + begin * bands.image_row; row < to + end * bands.image_row;
       row += bands.image_row) {
    clear(row, row + first);
    clear(row + last, row + bands.image_row);
  }
  x.read(x.at(image, channel, (top + begin) * s.width), channels, end - begin, s.width,
         to + begin * bands.image_row + first, bands.image_row, buffer);
}

// W results side by side: the sums of all taps.
template <class T, int W>
void depthwise_tile(int64_t taps, const int64_t* offsets, const T* x, int64_t step, const T* weight,
                    const T* bias, T* out) {
  using Vector = typename VectorOf<T>::type;
  constexpr int64_t width = kWidth<T>;
  const auto at = [](const T* from) { return *reinterpret_cast<const Vector*>(from); };
  Vector sum[W];
#pragma GCC unroll 8
  for (int q = 0; q < W; ++q) sum[q] = at(bias);
  for (int64_t t = 0; t < taps; ++t) {
    const T* from = x + offsets[t];
    const Vector w = at(weight + t * width);
#pragma GCC unroll 8
    for (int q = 0; q < W; ++q) sum[q] += w * at(from + q * step);
  }
#pragma GCC unroll 8
  for (int q = 0; q < W; ++q) *reinterpret_cast<Vector*>(out + q * width) = sum[q];
}

// Tiles of W results; the last one of a row overlaps the one before.
template <class T, int W>
void depthwise_band(const ConvShapes& s, const Bands<T>& bands, const int64_t* offsets,
                    int64_t rows, const T* x, const T* weight, const T* bias, T* out) {
  const int64_t step = s.stride[1] * kWidth<T>;
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = x + i * s.stride[0] * bands.image_row;
    T* to = out + i * s.columns * kWidth<T>;
    for (int64_t j = 0; j < s.columns; j += W) {
      const int64_t at = std::min(j, s.columns - W);
      depthwise_tile<T, W>(s.taps(), offsets, from + at * step, step, weight, bias,
                           to + at * kWidth<T>);
    }
  }
}

// The weights and biases of all filters, channels side by side. For each block of channels and each
// filter of a channel: a vector for every tap, then one of biases.
template <class T>
void turn_filters(const ConvShapes& s, const T* weight, const T* bias, T* to) {
  constexpr int64_t width = kWidth<T>;
  const int64_t taps = s.taps(), filters = s.group_filters();
  for (int64_t first = 0; first < s.channels; first += width) {
    const int64_t channels = std::min(width, s.channels - first);
    for (int64_t m = 0; m < filters; ++m, to += (taps + 1) * width) {
      clear(to, to + (taps + 1) * width);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t f = (first + c) * filters + m;
        for (int64_t t = 0; t < taps; ++t) to[t * width + c] = weight[f * taps + t];
        if (bias) to[taps * width + c] = bias[f];
      }
    }
  }
}

// What all threads read: turned filters, and where every tap lies in a band.
template <class T>
struct DepthwiseTables {
  T* filters;
  int64_t* offsets;

  tenon_status make(tenon_ctx* ctx, const ConvShapes& s, const Bands<T>& bands, const T* weight,
                    const T* bias, tenon_err* err) {
    const int64_t blocks = (s.channels + kWidth<T> - 1) / kWidth<T>;
    const int64_t numel = blocks * s.group_filters() * (s.taps() + 1) * kWidth<T>;
    const auto bytes = static_cast<uint64_t>(numel) * sizeof(T);
    void* memory = nullptr;
    const tenon_status status =
        host->scratch(ctx, bytes + static_cast<uint64_t>(s.taps()) * sizeof(int64_t), &memory, err);
    if (status != TENON_OK) return status;
    filters = static_cast<T*>(memory);
    offsets = reinterpret_cast<int64_t*>(static_cast<char*>(memory) + bytes);
    turn_filters(s, weight, bias, filters);
    int64_t* to = offsets;
    for (int64_t u = 0; u < s.kernel[0]; ++u) {
      for (int64_t v = 0; v < s.kernel[1]; ++v) *to++ = bands.tap(s, u, v);
    }
    return TENON_OK;
  }
};

template <class T>
tenon_status run_depthwise(tenon_ctx* ctx, const ConvShapes& s, const ChannelReader<T>& x,
                           const T* weight, const T* bias, const ChannelWriter<T>& out,
                           tenon_err* err) {
  constexpr int64_t width = kWidth<T>;
  const Bands<T> bands(s);
  DepthwiseTables<T> tables;
  tenon_status status = tables.make(ctx, s, bands, weight, bias, err);
  if (status != TENON_OK) return status;
  const auto run = s.columns >= 8 && s.columns % 8 == 0 ? depthwise_band<T, 8>
                   : s.columns >= 7                     ? depthwise_band<T, 7>
                   : s.columns >= 4                     ? depthwise_band<T, 4>
                                                        : depthwise_band<T, 1>;
  const int64_t blocks = (s.channels + width - 1) / width, filters = s.group_filters();
  const int64_t turned = (s.taps() + 1) * width;
  const int64_t in = x.buffer(bands.image / width), back = out.buffer(bands.rows * s.columns);
  return parallel_with_memory(
      ctx, s.batch * blocks * bands.count, filters * (s.taps() + 8) * bands.rows * s.columns,
      (bands.image + bands.result + in + back) * static_cast<int64_t>(sizeof(T)), err,
      [&](int64_t item, void* memory) {
        T* image = static_cast<T*>(memory);
        T *results = image + bands.image, *own = results + bands.result;
        // Blocks of one band after each other: their channels may share cache lines and pages.
        const int64_t first = item % blocks * width, band = item / blocks % bands.count;
        const int64_t n = item / blocks / bands.count, rows = bands.rows_of(s, band);
        const int64_t channels = std::min(width, s.channels - first);
        read_band(s, bands, x, n, first, channels, band, image, own);
        for (int64_t m = 0; m < filters; ++m) {
          const T* weights = tables.filters + (first / width * filters + m) * turned;
          run(s, bands, tables.offsets, rows, image, weights, weights + s.taps() * width, results);
          out.write(results, channels, n * s.filters + first * filters + m, filters,
                    band * bands.rows * s.columns, rows * s.columns, own + in);
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
