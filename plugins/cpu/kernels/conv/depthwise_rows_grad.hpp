// SPDX-License-Identifier: Apache-2.0
// Weight gradients of depthwise convolutions of stride 1 over wide images: a vector of columns of
// gradients and pixels at a time, where planes lie. Sums stay in registers while the rows pass by;
// a row of pixels is read once for each column of taps, and meets the rows of gradients that see
// it.
#pragma once

#include "conv/depthwise_rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Adds up U rows of K taps from row `first` on, for the columns [column, column + a vector) of
// results.
template <class T, int U, int K>
void depthwise_rows_grad_tile(const ConvShapes& s, const T* x, const T* grad, int64_t first,
                              int64_t column, T* sums, PlaneAhead& pixels, PlaneAhead& grads) {
  using Vector = typename VectorOf<T>::type;
  constexpr int64_t width = kWidth<T>;
  static constexpr T kOutside[width] = {};
  // Lanes of results that there are none of, or that do not see a pixel, read as zeros.
  const int64_t results = s.columns - column;
  const Lanes<T> seeing(results);
  Lanes<T> seen[K];
#pragma GCC unroll 8
  for (int v = 0; v < K; ++v) {
    const int64_t left = s.padding[1] - v - column;
    seen[v] = Lanes<T>(left, std::min(left + s.width, results));
  }
  const auto grad_row = [&](int64_t i) {
    const bool inside = i >= 0 && i < s.rows;
    return seeing.load(inside ? grad + i * s.columns + column : kOutside);
  };
  Vector sum[U][K], g[U];
#pragma GCC unroll 32
  for (int t = 0; t < U * K; ++t) sum[t / K][t % K] = *reinterpret_cast<Vector*>(sums + t * width);
  const int64_t above = s.padding[0] - first;  // the row of results whose row `first` of taps sees
                                               // the first row of pixels
#pragma GCC unroll 8
  for (int u = 1; u < U; ++u) g[u - 1] = grad_row(above - u);
  const T* row = x + column - s.padding[1];
  // Rows of pixels [y, end). Some of the first and the last are not seen from all U rows of taps:
  // without a result there is no product, whatever the pixels hold.
  int64_t y = 0;
  const auto rows = [&]<bool All>(int64_t end) {
    for (; y < end; ++y, row += s.width) {
#pragma GCC unroll 8
      for (int u = U - 1; u > 0; --u) g[u] = g[u - 1];
      g[0] = grad_row(y + above);
      pixels.ask();
      grads.ask();
#pragma GCC unroll 8
      for (int v = 0; v < K; ++v) {
        const Vector pixel = seen[v].load(row + v);
#pragma GCC unroll 8
        for (int u = 0; u < U; ++u) {
          const int64_t i = y + above - u;
          if (All || (i >= 0 && i < s.rows)) sum[u][v] += g[u] * pixel;
        }
      }
    }
  };
  const int64_t begin = std::clamp<int64_t>(U - 1 - above, 0, s.height);
  rows.template operator()<false>(begin);
  rows.template operator()<true>(std::clamp<int64_t>(s.rows - above, begin, s.height));
  rows.template operator()<false>(s.height);
#pragma GCC unroll 32
  for (int t = 0; t < U * K; ++t) *reinterpret_cast<Vector*>(sums + t * width) = sum[t / K][t % K];
}

// One plane of pixels and one of gradients; of all rows of taps so many at a time as there are
// registers for.
template <class T, int K>
struct DepthwiseRowsGrad {
  static constexpr int kParts = K > 3 ? 2 : 1;

  static void run(const ConvShapes& s, const T* x, const T* grad, T* sums, PlaneAhead pixels,
                  PlaneAhead grads) {
    const auto part = [&]<int P>() {
      constexpr int begin = K * P / kParts, end = K * (P + 1) / kParts;
      for (int64_t j = 0; j < s.columns; j += kWidth<T>) {
        depthwise_rows_grad_tile<T, end - begin, K>(s, x, grad, begin, j,
                                                    sums + begin * K * kWidth<T>, pixels, grads);
      }
    };
    part.template operator()<0>();
    if constexpr (kParts > 1) part.template operator()<1>();
  }
};

// Where rows fill their vectors well, in planes of both. It takes masks for what is left; and more
// taps would read each row of pixels so often that channels side by side are faster.
template <class T>
bool suits_depthwise_rows_grad(const ConvShapes& s, const Images& grad, const Images& x) {
  return grad.pixel == 1 && s.kernel[0] <= 5 && suits_depthwise_rows<T>(s, x);
}

// Threads share the channels: each adds up all images of its own.
template <class T>
tenon_status run_depthwise_rows_grad(tenon_ctx* ctx, const ConvShapes& s, const Images& grad,
                                     const Images& x, T* weight, tenon_err* err) {
  constexpr int64_t width = kWidth<T>, most_bytes = 64 * 1024;  // of sums
  const auto run = s.kernel[0] == 3 ? DepthwiseRowsGrad<T, 3>::run : DepthwiseRowsGrad<T, 5>::run;
  const int64_t filters = s.group_filters(), taps = s.taps(), size = kDtypeSize[x.dtype];
  const int64_t sums_size = filters * taps * width, threads = host->thread_count();
  const int64_t fit = most_bytes / (sums_size * static_cast<int64_t>(sizeof(T)));
  const int64_t together =
      std::clamp<int64_t>(fit, 1, (s.channels + 2 * threads - 1) / (2 * threads));
  const bool reduced = is_low_precision(x.dtype);
  const int64_t staged = reduced ? rounded_up<width>(s.pixels()) : 0;
  const int64_t staged_grads = reduced ? rounded_up<width>(s.results()) : 0;
  // Lines of the next plane that every row of a tile asks for.
  const int64_t tiles = (s.columns + width - 1) / width * s.height;
  const auto lines = [&](int64_t pixels) { return (pixels * size / 64 + tiles - 1) / tiles; };
  return parallel_for_with_scratch(
      ctx, (s.channels + together - 1) / together,
      together * s.batch * filters * taps * s.results() / width,
      (together * sums_size + staged + staged_grads) * static_cast<int64_t>(sizeof(T)), err,
      [&](int64_t item, void* memory) {
        T *sums = static_cast<T*>(memory), *stage = sums + together * sums_size;
        const int64_t begin = item * together, end = std::min(s.channels, begin + together);
        // A plane as T, and what lies behind it.
        const auto plane = [&](const Images& images, int64_t offset, int64_t pixels, T* to,
                               PlaneAhead* next) {
          const char* from = static_cast<const char*>(images.data) + offset * size;
          *next = {from + pixels * size, nullptr, lines(pixels), 0};
          if constexpr (std::is_same_v<T, float>) {
            if (reduced) return widen(images.dtype, from, size, to, pixels), to;
          }
          return const_cast<T*>(reinterpret_cast<const T*>(from));
        };
        std::fill_n(sums, together * sums_size, T(0));
        for (int64_t n = 0; n < s.batch; ++n) {
          for (int64_t c = begin; c < end; ++c) {
            PlaneAhead next_pixels, next_grads;
            const T* pixels =
                plane(x, n * x.image + c * x.channel, s.pixels(), stage, &next_pixels);
            for (int64_t f = 0; f < filters; ++f) {
              const T* grads = plane(grad, n * grad.image + (c * filters + f) * grad.channel,
                                     s.results(), stage + staged, &next_grads);
              run(s, pixels, grads, sums + ((c - begin) * filters + f) * taps * width, next_pixels,
                  next_grads);
            }
          }
        }
        T* to = weight + begin * filters * taps;
        for (int64_t t = 0; t < (end - begin) * filters * taps; ++t) {
          T sum = 0;
          for (int64_t l = 0; l < width; ++l) sum += sums[t * width + l];
          to[t] = sum;
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
