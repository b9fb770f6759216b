// SPDX-License-Identifier: Apache-2.0
// Reductions of NHWC values of regions over pixels: means, and pooling. Their bits are those of the
// kernels for NCHW images.
#pragma once

#include "conv/nhwc_conv.hpp"
#include "pool/vectors.hpp"
#include "pool/window.hpp"
#include "reduce/rows.hpp"

#include <tenon/parallel.hpp>

namespace tenon::cpu::TENON_CPU_ISA {

// A vector of channels of one pixel.
using Channels = VectorOf<float>::type;
using UnalignedChannels = VectorOf<float>::unaligned;

// The sum of n pixels of a vector of channels, in the order of reduce_row() (reduce/rows.hpp).
template <int kAccumulators>
Channels sum_of_pixels(const float* x, int64_t row, int64_t n) {
  const auto value = [&](int64_t i) {
    return Channels(*reinterpret_cast<const UnalignedChannels*>(x + i * row));
  };
  const auto add = [](Channels a, Channels b) { return a + b; };
  Channels acc[kAccumulators];
  for (int l = 0; l < kAccumulators; ++l) acc[l] = value(l);
  const int64_t end = run_two_streams<kAccumulators, kLongRow<kAccumulators, float>>(
      kAccumulators, n, [&](int64_t i) {
        for (int l = 0; l < kAccumulators; ++l) acc[l] += value(i + l);
      });
  reduce_tail<kAccumulators / 2>(acc, end, n, value, add);
  return reduce_pairwise<kAccumulators>(acc, add);
}

inline Channels sum_of_pixels(const float* x, int64_t row, int64_t n) {
  constexpr int wide = kRowAccumulators<float>, narrow = std::max(wide / 4, 4);
  if (n >= 12 * wide) return sum_of_pixels<wide>(x, row, n);
  if (n >= narrow) return sum_of_pixels<narrow>(x, row, n);
  Channels sum = *reinterpret_cast<const UnalignedChannels*>(x);
  for (int64_t i = 1; i < n; ++i) sum += *reinterpret_cast<const UnalignedChannels*>(x + i * row);
  return sum;
}

inline void mean_of_pixels(const float* x, int64_t row, int64_t channels, int64_t pixels,
                           float* to) {
  constexpr int64_t width = kWidth<float>;
  constexpr int64_t kBlock = 4096;  // Of a plane that is added up in parts (reduce/reduction.cpp).
  parallel((channels + width - 1) / width, pixels, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin * width; c < end * width; c += width) {
      Channels sum = sum_of_pixels(x + c, row, std::min(kBlock, pixels));
      for (int64_t i = kBlock; i < pixels; i += kBlock) {
        sum += sum_of_pixels(x + i * row + c, row, std::min(kBlock, pixels - i));
      }
      *reinterpret_cast<UnalignedChannels*>(to + c) = sum / static_cast<float>(pixels);
    }
  });
}

// Calls f(i, j, x, out) for each window (i, j): `x` is its image, `out` its result.
template <class F>
void for_windows(const NhwcPool& pool, const Window& w, F&& f) {
  parallel(pool.images * w.rows, w.columns * pool.channels * w.kernel[0] * w.kernel[1] / 8,
           [&](int64_t begin, int64_t end) {
             for (int64_t item = begin; item < end; ++item) {
               const int64_t i = item % w.rows;
               const float* x = pool.x + item / w.rows * w.height * w.width * pool.x_row;
               for (int64_t j = 0; j < w.columns; ++j) {
                 f(i, j, x, pool.out + (item * w.columns + j) * pool.out_row);
               }
             }
           });
}

inline Window window_of(const PoolDescription& d) {
  return {d.image[0],
          d.image[1],
          d.result[0],
          d.result[1],
          {d.kernel[0], d.kernel[1]},
          {d.stride[0], d.stride[1]},
          {d.padding[0], d.padding[1]},
          {d.dilation[0], d.dilation[1]}};
}

inline void maximum_of_windows(const NhwcPool& pool) {
  const Window w = window_of(pool.description);
  for_windows(pool, w, [&](int64_t i, int64_t j, const float* x, float* out) {
    const Span down(w, 0, i), across(w, 1, j);
    for (int64_t c = 0; c < pool.channels; c += kWidth<float>) {
      Channels maximum = lowest<float>() - Channels{};
      for (int64_t y = down.first; y < down.end; y += w.dilation[0]) {
        const float* row = x + y * w.width * pool.x_row + c;
        for (int64_t z = across.first; z < across.end; z += w.dilation[1]) {
          maximum = max_or_nan(
              maximum, Channels(*reinterpret_cast<const UnalignedChannels*>(row + z * pool.x_row)));
        }
      }
      *reinterpret_cast<UnalignedChannels*>(out + c) = maximum;
    }
  });
}

// Each column of a window is added up, then the columns: those outside of the image are zeros.
inline void average_of_windows(const NhwcPool& pool) {
  const Window w = window_of(pool.description);
  for_windows(pool, w, [&](int64_t i, int64_t j, const float* x, float* out) {
    const Span down(w, 0, i);
    const int64_t left = j * w.stride[1] - w.padding[1];
    const int64_t count = counted(w, 0, i, pool.description.counts_padding) *
                          counted(w, 1, j, pool.description.counts_padding);
    const float inverse_count = 1.0f / static_cast<float>(std::max<int64_t>(1, count));
    for (int64_t c = 0; c < pool.channels; c += kWidth<float>) {
      const auto column = [&](int64_t z) {
        if (z < 0 || z >= w.width || down.count == 0) return Channels{};
        const float* first = x + (down.first * w.width + z) * pool.x_row + c;
        Channels sum = *reinterpret_cast<const UnalignedChannels*>(first);
        for (int64_t u = 1; u < down.count; ++u) {
          sum += *reinterpret_cast<const UnalignedChannels*>(first + u * w.width * pool.x_row);
        }
        return sum;
      };
      Channels sum = column(left);
      for (int64_t v = 1; v < w.kernel[1]; ++v) sum += column(left + v);
      *reinterpret_cast<UnalignedChannels*>(out + c) = sum * inverse_count;
    }
  });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
