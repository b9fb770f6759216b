// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions: each filter reads one channel. Images are divided into bands of rows of
// one vector of channels, stored channels-last and padded. A pixel is then one register, whatever
// the kernel size, stride and width. NHWC images are read in place.
#pragma once

#include "conv/epilogue.hpp"
#include "conv/nchw16c_layout.hpp"
#include "conv/shapes.hpp"
#include "run_memory.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The division of images into bands; the last band may be shorter. A padded row is a whole row of
// the image between zeros; results begin at its pixel `skip`.
template <class T>
struct Bands {
  // Bytes of a band and its results, which stay in the cache.
  static constexpr int64_t kBytes = 160 * 1024;
  static constexpr int64_t kL2Bytes = 16 * 1024;  // Bytes of results if pixels are not copied.
  int64_t rows, count;    // Rows of results in a band, and bands in an image.
  int64_t left, skip;     // Zeros before a row, and pixels before the first one that a tap reads.
  int64_t image_row;      // Elements of a padded row.
  int64_t image, result;  // Elements of a padded band and of its results.

  explicit Bands(const ConvShapes& s, bool in_place = false)
      : left(std::max<int64_t>(0, s.padding[1])), skip(left - s.padding[1]) {
    const int64_t seen = (s.columns - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    image_row = std::max(left + s.width, skip + seen) * kWidth<T>;
    const int64_t result_row = s.columns * kWidth<T>;
    const int64_t first = rows_seen(s, 1) * image_row + result_row;
    const int64_t limit = kBytes / static_cast<int64_t>(sizeof(T));
    rows = std::clamp<int64_t>(1 + (limit - first) / (s.stride[0] * image_row + result_row), 1,
                               s.rows);
    if (in_place) rows = std::clamp<int64_t>(kL2Bytes / (result_row * sizeof(T)), 1, rows);
    count = (s.rows + rows - 1) / rows;
    image = rows_seen(s, rows) * image_row;
    result = rows * s.columns * kWidth<T>;
  }
  static int64_t rows_seen(const ConvShapes& s, int64_t rows) {
    return (rows - 1) * s.stride[0] + (s.kernel[0] - 1) * s.dilation[0] + 1;
  }
  // Offset in a band of the pixel under tap (u, v) for the first result.
  int64_t tap(const ConvShapes& s, int64_t u, int64_t v) const {
    return u * s.dilation[0] * image_row + (skip + v * s.dilation[1]) * kWidth<T>;
  }
  int64_t rows_of(const ConvShapes& s, int64_t band) const {
    return std::min(rows, s.rows - band * rows);
  }
};

// Copies the pixels under a band of results, padded with zeros.
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

// Computes W adjacent results over all taps.
template <class T, int W>
void depthwise_tile(int64_t taps, const int64_t* offsets, const T* x, int64_t step, const T* weight,
                    const T* bias, T* out, int64_t out_step) {
  using Vector = typename VectorOf<T>::type;
  constexpr int64_t width = kWidth<T>;
  const auto at = [](const T* from) {
    return Vector(*reinterpret_cast<const typename VectorOf<T>::unaligned*>(from));
  };
  Vector acc[W];
#pragma GCC unroll 8
  for (int q = 0; q < W; ++q) acc[q] = at(bias);
  for (int64_t t = 0; t < taps; ++t) {
    const T* from = x + offsets[t];
    const Vector w = at(weight + t * width);
#pragma GCC unroll 8
    for (int q = 0; q < W; ++q) acc[q] += w * at(from + q * step);
  }
#pragma GCC unroll 8
  for (int q = 0; q < W; ++q) {
    *reinterpret_cast<typename VectorOf<T>::unaligned*>(out + q * out_step) = acc[q];
  }
}

// Divides a row into tiles of W results; the last tile overlaps the one before.
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
                           to + at * kWidth<T>, kWidth<T>);
    }
  }
}

// A block of channels of an image in place: pixels are `pixel` elements apart, and tap t is
// offsets[t] behind the first tap.
template <class T>
struct PixelsInPlace {
  const T* first;
  int64_t pixel;
  const int64_t* offsets;
};

// The results of a row for which no column of taps is in the padding.
struct Whole {
  int64_t begin, end;
  explicit Whole(const ConvShapes& s) {
    const int64_t last = (s.kernel[1] - 1) * s.dilation[1] - s.padding[1];
    const Inside left(-s.padding[1], s.width, s.stride[1], s.columns);
    const Inside right(last, s.width, s.stride[1], s.columns);
    begin = std::min(std::max(left.begin, right.begin), s.columns);
    end = std::max(begin, std::min(left.end, right.end));
  }
};

// True if reading pixels in place pays off. In short rows most results are at an end, where taps
// are in the padding.
template <class T>
bool reads_in_place(const ConvShapes& s, const ChannelReader<T>& x, int64_t least) {
  const Whole whole(s);
  return x.in_place() && whole.end - whole.begin >= least;
}

// Computes row i of the results, `out_step` elements apart, for `blocks` adjacent blocks of
// channels. Taps in the padding are left out: rows of taps, and single taps for results at either
// end. Calls `issue(j)` for each result, to prefetch.
template <class T, class Issue>
void depthwise_row_in_place(const ConvShapes& s, const PixelsInPlace<T>& x, int64_t i,
                            int64_t blocks, const T* weight, T* out, int64_t out_step,
                            Issue&& issue) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  const int64_t y = i * s.stride[0] - s.padding[0], taps = s.kernel[1];
  const int64_t step = s.stride[1] * x.pixel;
  const Inside down(y, s.height, s.dilation[0], s.kernel[0]);
  const auto [begin, end] = Whole(s);
  const T* row = x.first + (y * s.width - s.padding[1]) * x.pixel;
  const int64_t bias = s.taps() * width, transposed = bias + width;
  const auto at_end = [&](int64_t j) {
    issue(j);
    const Inside across(j * s.stride[1] - s.padding[1], s.width, s.dilation[1], taps);
    for (int64_t b = 0; b < blocks; ++b) {
      const T *weights = weight + b * transposed, *from = row + j * step + b * width;
      Vector acc = *reinterpret_cast<const Vector*>(weights + bias);
      for (int64_t u = down.begin; u < down.end; ++u) {
        for (int64_t t = u * taps + across.begin; t < u * taps + across.end; ++t) {
          acc += *reinterpret_cast<const Vector*>(weights + t * width) *
                 *reinterpret_cast<const Unaligned*>(from + x.offsets[t]);
        }
      }
      *reinterpret_cast<Unaligned*>(out + j * out_step + b * width) = acc;
    }
  };
  // Prefetches the pixels that the next row of results is the first to read; the hardware
  // prefetcher does not follow them.
  const int64_t next = ((s.kernel[0] - 1) * s.dilation[0] + 1) * s.width * x.pixel;
  const auto tiles = [&]<int W>(int64_t first, int64_t last) {
    for (int64_t j = first; j < last; j += W) {
      const int64_t at = std::min(j, last - W);
      for (int64_t q = at; q < at + W; ++q) issue(q);
      for (int64_t block = 0; block < blocks; ++block) {
        const T *from = row + at * step + block * width, *weights = weight + block * transposed;
        for (int64_t a = 0; a < s.stride[0]; ++a) {
          for (int64_t b = 0; b < W * s.stride[1]; ++b) {
            __builtin_prefetch(from + next + (a * s.width + b) * x.pixel, 0, 2);
          }
        }
        depthwise_tile<T, W>((down.end - down.begin) * taps, x.offsets + down.begin * taps, from,
                             step, weights + down.begin * taps * width, weights + bias,
                             out + at * out_step + block * width, out_step);
      }
    }
  };
  for (int64_t j = 0; j < begin; ++j) at_end(j);
  const int64_t n = end - begin;
  if (n < 4) {  // Too few for a tile.
    for (int64_t j = begin; j < end; ++j) at_end(j);
  } else if (n < 6) {
    tiles.template operator()<4>(begin, end);
  } else if (n >= 8 && (n + 7) / 8 * 8 <= (n + 5) / 6 * 6) {
    tiles.template operator()<8>(begin, end);
  } else {
    tiles.template operator()<6>(begin, end);
  }
  for (int64_t j = end; j < s.columns; ++j) at_end(j);
}

// Arranges the weights and biases of all filters channels-last. For each block of channels and each
// filter of a channel there is a vector for each tap, then a vector of biases.
template <class T>
void transpose_filters(const ConvShapes& s, const T* weight, const T* bias, T* to) {
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

// Read by all threads: the arranged filters, and the offset of each tap in a band and in an image.
template <class T>
struct DepthwiseTables {
  T* filters;
  int64_t *offsets, *in_place;

  template <class Owner>
  tenon_status make(Owner* owner, const ConvShapes& s, const Bands<T>& bands, int64_t pixel,
                    const T* weight, const T* bias, tenon_err* err) {
    const int64_t blocks = (s.channels + kWidth<T> - 1) / kWidth<T>;
    const int64_t numel = blocks * s.group_filters() * (s.taps() + 1) * kWidth<T>;
    const auto bytes = static_cast<uint64_t>(numel) * sizeof(T);
    void* memory = nullptr;
    const tenon_status status = allocate_scratch(
        owner, bytes + 2 * static_cast<uint64_t>(s.taps()) * sizeof(int64_t), &memory, err);
    if (status != TENON_OK) return status;
    filters = static_cast<T*>(memory);
    offsets = reinterpret_cast<int64_t*>(static_cast<char*>(memory) + bytes);
    transpose_filters(s, weight, bias, filters);
    in_place = offsets + s.taps();
    for (int64_t t = 0; t < s.taps(); ++t) {
      const int64_t u = t / s.kernel[1], v = t % s.kernel[1];
      offsets[t] = bands.tap(s, u, v);
      in_place[t] = (u * s.dilation[0] * s.width + v * s.dilation[1]) * pixel;
    }
    return TENON_OK;
  }
};

// An epilogue needs NCHW images of T.
template <class T, class Owner>
tenon_status run_depthwise(Owner* owner, const ConvShapes& s, const ChannelReader<T>& x,
                           const T* weight, const T* bias, const ConvEpilogue<T>* epilogue,
                           const ChannelWriter<T>& out, tenon_err* err) {
  constexpr int64_t width = kWidth<T>;
  // If a pixel of the results is whole vectors as well, many channels of a pixel are computed at a
  // time, in memory order; channels that do not fill a vector remain.
  const bool writes = out.in_place() && s.group_filters() == 1 && s.channels >= width;
  const bool reads = reads_in_place(s, x, writes ? 4 : 8), direct = reads && writes;
  const Bands<T> bands(s, reads);
  DepthwiseTables<T> tables;
  tenon_status status = tables.make(owner, s, bands, x.pixel(), weight, bias, err);
  if (status != TENON_OK) return status;
  const auto run = s.columns >= 8 && s.columns % 8 == 0 ? depthwise_band<T, 8>
                   : s.columns >= 7                     ? depthwise_band<T, 7>
                   : s.columns >= 4                     ? depthwise_band<T, 4>
                                                        : depthwise_band<T, 1>;
  const int64_t filters = s.group_filters(), transposed = (s.taps() + 1) * width;
  constexpr int64_t limit = 16 * width;
  const int64_t whole = direct ? s.channels / width * width : 0;
  const int64_t parts = (whole + limit - 1) / limit;
  const int64_t blocks = parts + (s.channels - whole + width - 1) / width;
  const int64_t in = x.buffer(bands.image / width), back = out.buffer(bands.rows * s.columns);
  return parallel_for_with_scratch(
      owner, s.batch * blocks * bands.count,
      filters * (s.taps() + 8) * bands.rows * s.columns * (direct ? 8 : 1),
      (bands.image + bands.result + in + back) * static_cast<int64_t>(sizeof(T)), err,
      [&](int64_t item, void* memory) {
        T* image = static_cast<T*>(memory);
        T *results = image + bands.image, *own = results + bands.result;
        // Consecutive items are blocks of one band, because their channels may share cache lines
        // and pages.
        const int64_t block = item % blocks, band = item / blocks % bands.count;
        const int64_t n = item / blocks / bands.count, rows = bands.rows_of(s, band);
        const int64_t first = block < parts ? block * limit : whole + (block - parts) * width;
        const int64_t channels = std::min(width, s.channels - first);
        const bool in_place = reads && channels == width;
        const PixelsInPlace<T> pixels{x.data() + x.at(n, first, 0), x.pixel(), tables.in_place};
        if (block < parts) {
          for (int64_t i = band * bands.rows; i < band * bands.rows + rows; ++i) {
            depthwise_row_in_place(s, pixels, i, std::min(limit, whole - first) / width,
                                   tables.filters + first / width * transposed,
                                   out.at(n, first, i * s.columns), out.pixel(), [](int64_t) {});
          }
          return;
        }
        if (!in_place) read_band(s, bands, x, n, first, channels, band, image, own);
        for (int64_t m = 0; m < filters; ++m) {
          const T* weights = tables.filters + (first / width * filters + m) * transposed;
          const T* biases = weights + s.taps() * width;
          const int64_t filter = first * filters + m, top = band * bands.rows;
          for (int64_t i = 0; in_place && i < rows; ++i) {
            depthwise_row_in_place(s, pixels, top + i, 1, weights, results + i * s.columns * width,
                                   width, [&](int64_t j) {
                                     if (out.pixel() != 1) return;
                                     out.issue(n, filter, filters, top * s.columns,
                                               i * s.columns + j);
                                   });
          }
          if (!in_place) run(s, bands, tables.offsets, rows, image, weights, biases, results);
          out.write(results, channels, n, filter, filters, top * s.columns, rows * s.columns,
                    own + in);
          for (int64_t c = 0; epilogue && c < channels; ++c) {
            const int64_t some = rows * s.columns, of = filter + c * filters;
            epilogue->on_filters(of, out.at(n, of, top * s.columns), {1, some, 1, some, some});
          }
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
