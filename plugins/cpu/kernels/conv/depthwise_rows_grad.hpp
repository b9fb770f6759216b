// SPDX-License-Identifier: Apache-2.0
// Weight gradients of depthwise convolutions of stride 1 over wide images: reads a vector of
// columns of gradients and pixels at a time from NCHW planes. Accumulators stay in registers while
// rows stream past them; a row of pixels is read once for each column of taps and is multiplied by
// the rows of gradients that read it.
#pragma once

#include "conv/depthwise_rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Accumulates U rows of K taps, starting with row `first`, for columns [column, column + one
// vector) of results.
template <class T, int U, int K>
void depthwise_rows_grad_tile(const ConvShapes& s, const T* x, const T* grad, int64_t first,
                              int64_t column, T* accumulators, PlanePrefetch& pixels,
                              PlanePrefetch& grads) {
  using Vector = typename VectorOf<T>::type;
  constexpr int64_t width = kWidth<T>;
  static constexpr T kOutside[width] = {};
  // Elements without a result, or whose tap is in the padding, read as zeros.
  const int64_t results = s.columns - column;
  const VecMask<T> seeing(results);
  VecMask<T> seen[K];
#pragma GCC unroll 8
  for (int v = 0; v < K; ++v) {
    const int64_t left = s.padding[1] - v - column;
    seen[v] = VecMask<T>(left, std::min(left + s.width, results));
  }
  const auto grad_row = [&](int64_t i) {
    const bool inside = i >= 0 && i < s.rows;
    return seeing.load(inside ? grad + i * s.columns + column : kOutside);
  };
  Vector acc[U][K], g[U];
#pragma GCC unroll 32
  for (int t = 0; t < U * K; ++t)
    acc[t / K][t % K] = *reinterpret_cast<Vector*>(accumulators + t * width);
  // The row of results for which the taps of row `first` are over the first row of pixels.
  const int64_t above = s.padding[0] - first;
#pragma GCC unroll 8
  for (int u = 1; u < U; ++u) g[u - 1] = grad_row(above - u);
  const T* row = x + column - s.padding[1];
  // Rows of pixels [y, end). Some of the first and last rows are not under all U rows of taps. A
  // row without results is skipped, because its pixels may be infinite or NaN.
  int64_t y = 0;
  const auto rows = [&]<bool All>(int64_t end) {
    for (; y < end; ++y, row += s.width) {
#pragma GCC unroll 8
      for (int u = U - 1; u > 0; --u) g[u] = g[u - 1];
      g[0] = grad_row(y + above);
      pixels.issue();
      grads.issue();
#pragma GCC unroll 8
      for (int v = 0; v < K; ++v) {
        const Vector pixel = seen[v].load(row + v);
#pragma GCC unroll 8
        for (int u = 0; u < U; ++u) {
          const int64_t i = y + above - u;
          if (All || (i >= 0 && i < s.rows)) acc[u][v] += g[u] * pixel;
        }
      }
    }
  };
  const int64_t begin = std::clamp<int64_t>(U - 1 - above, 0, s.height);
  rows.template operator()<false>(begin);
  rows.template operator()<true>(std::clamp<int64_t>(s.rows - above, begin, s.height));
  rows.template operator()<false>(s.height);
#pragma GCC unroll 32
  for (int t = 0; t < U * K; ++t)
    *reinterpret_cast<Vector*>(accumulators + t * width) = acc[t / K][t % K];
}

// One plane of pixels and one of gradients, with as many rows of taps at a time as there are
// registers for.
template <class T, int K>
struct DepthwiseRowsGrad {
  static constexpr int kParts = K > 3 ? 2 : 1;

  static void run(const ConvShapes& s, const T* x, const T* grad, T* accumulators,
                  PlanePrefetch pixels, PlanePrefetch grads) {
    const auto part = [&]<int P>() {
      constexpr int begin = K * P / kParts, end = K * (P + 1) / kParts;
      for (int64_t j = 0; j < s.columns; j += kWidth<T>) {
        depthwise_rows_grad_tile<T, end - begin, K>(
            s, x, grad, begin, j, accumulators + begin * K * kWidth<T>, pixels, grads);
      }
    };
    part.template operator()<0>();
    if constexpr (kParts > 1) part.template operator()<1>();
  }
};

// True if rows fill their vectors well in both planes. This requires masks for the remainder. With
// more taps each row of pixels would be read so often that NHWC is faster.
template <class T>
bool suits_depthwise_rows_grad(const ConvShapes& s, const Images& grad, const Images& x) {
  return grad.pixel == 1 && s.kernel[0] <= 5 && suits_depthwise_rows<T>(s, x);
}

// Threads divide the channels: each accumulates all images for its own.
template <class T>
tenon_status run_depthwise_rows_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                                     const Images& x, T* weight, tenon_err* err) {
  constexpr int64_t width = kWidth<T>, max_bytes = 64 * 1024;  // Bytes of accumulators.
  const auto run = s.kernel[0] == 3 ? DepthwiseRowsGrad<T, 3>::run : DepthwiseRowsGrad<T, 5>::run;
  const int64_t filters = s.group_filters(), taps = s.taps(), size = kDtypeSize[x.dtype];
  const int64_t accumulators_size = filters * taps * width, threads = host->thread_count();
  const int64_t fit = max_bytes / (accumulators_size * static_cast<int64_t>(sizeof(T)));
  const int64_t together =
      std::clamp<int64_t>(fit, 1, (s.channels + 2 * threads - 1) / (2 * threads));
  const bool reduced = is_low_precision(x.dtype);
  const int64_t staged = reduced ? rounded_up<width>(s.pixels()) : 0;
  const int64_t staged_grads = reduced ? rounded_up<width>(s.results()) : 0;
  // Cache lines of the next plane that each row of a tile prefetches.
  const int64_t tiles = (s.columns + width - 1) / width * s.height;
  const auto lines = [&](int64_t pixels) { return (pixels * size / 64 + tiles - 1) / tiles; };
  return parallel_for_with_scratch(
      ctx, (s.channels + together - 1) / together,
      together * s.batch * filters * taps * s.results() / width,
      (together * accumulators_size + staged + staged_grads) * static_cast<int64_t>(sizeof(T)), err,
      [&](int64_t item, void* memory) {
        T *accumulators = static_cast<T*>(memory),
          *stage = accumulators + together * accumulators_size;
        const int64_t begin = item * together, end = std::min(s.channels, begin + together);
        // Converts a plane to T, and what lies behind it.
        const auto plane = [&](const Images& images, int64_t offset, int64_t pixels, T* to,
                               PlanePrefetch* next) {
          const char* from = static_cast<const char*>(images.data) + offset * size;
          *next = {from + pixels * size, nullptr, lines(pixels), 0};
          if constexpr (std::is_same_v<T, float>) {
            if (reduced) return widen(images.dtype, from, size, to, pixels), to;
          }
          return const_cast<T*>(reinterpret_cast<const T*>(from));
        };
        std::fill_n(accumulators, together * accumulators_size, T(0));
        for (int64_t n = 0; n < s.batch; ++n) {
          for (int64_t c = begin; c < end; ++c) {
            PlanePrefetch next_pixels, next_grads;
            const T* pixels =
                plane(x, n * x.image + c * x.channel, s.pixels(), stage, &next_pixels);
            for (int64_t f = 0; f < filters; ++f) {
              const T* grads = plane(grad, n * grad.image + (c * filters + f) * grad.channel,
                                     s.results(), stage + staged, &next_grads);
              run(s, pixels, grads, accumulators + ((c - begin) * filters + f) * taps * width,
                  next_pixels, next_grads);
            }
          }
        }
        T* to = weight + begin * filters * taps;
        for (int64_t t = 0; t < (end - begin) * filters * taps; ++t) {
          T acc = 0;
          for (int64_t l = 0; l < width; ++l) acc += accumulators[t * width + l];
          to[t] = acc;
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
