// SPDX-License-Identifier: Apache-2.0
// Gradients of the weights of depthwise convolutions, a vector's worth of channels at a time.
#pragma once

#include "conv_depthwise.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Adds up one band for U x K taps side by side, whose sums stay in registers.
template <class T, int U, int K>
void depthwise_grad_tile(const ConvShapes& s, const Bands<T>& bands, int64_t rows, const T* x,
                         const T* grad, T* sums) {
  using Vector = typename VectorOf<T>::type;
  constexpr int64_t width = kWidth<T>;
  const int64_t step = s.stride[1] * width, down = s.stride[0] * bands.image_row;
  Vector sum[U][K];
#pragma GCC unroll 16
  for (int t = 0; t < U * K; ++t) sum[t / K][t % K] = *reinterpret_cast<Vector*>(sums + t * width);
  for (int64_t i = 0; i < rows; ++i, x += down) {
    const T* from = x;
    for (int64_t j = 0; j < s.columns; ++j, grad += width, from += step) {
      const Vector g = *reinterpret_cast<const Vector*>(grad);
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u) {
        const T* row = from + u * bands.image_row;
#pragma GCC unroll 16
        for (int v = 0; v < K; ++v)
          sum[u][v] += g * *reinterpret_cast<const Vector*>(row + v * width);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < U * K; ++t) *reinterpret_cast<Vector*>(sums + t * width) = sum[t / K][t % K];
}

// Square kernels of K taps a side, without dilation; about nine sums at a time.
template <class T, int K>
void depthwise_grad_square(const ConvShapes& s, const Bands<T>& bands, int64_t rows, const T* x,
                           const T* grad, T* sums) {
  constexpr int some = std::clamp(10 / K, 1, K);
  x += bands.tap(s, 0, 0);
  for (int u = 0; u + some <= K; u += some) {
    depthwise_grad_tile<T, some, K>(s, bands, rows, x + u * bands.image_row, grad,
                                    sums + u * K * kWidth<T>);
  }
  if constexpr (constexpr int rest = K % some; rest != 0) {
    depthwise_grad_tile<T, rest, K>(s, bands, rows, x + (K - rest) * bands.image_row, grad,
                                    sums + (K - rest) * K * kWidth<T>);
  }
}

// Any taps, one by one.
template <class T>
void depthwise_grad_any(const ConvShapes& s, const Bands<T>& bands, int64_t rows, const T* x,
                        const T* grad, T* sums) {
  for (int64_t u = 0; u < s.kernel[0]; ++u) {
    for (int64_t v = 0; v < s.kernel[1]; ++v, sums += kWidth<T>) {
      depthwise_grad_tile<T, 1, 1>(s, bands, rows, x + bands.tap(s, u, v), grad, sums);
    }
  }
}

template <class T>
auto choose_depthwise_grad(const ConvShapes& s) {
  const bool square = s.kernel[0] == s.kernel[1] && s.dilation[0] == 1 && s.dilation[1] == 1;
  switch (square ? s.kernel[0] : 0) {
    case 3:
      return depthwise_grad_square<T, 3>;
    case 5:
      return depthwise_grad_square<T, 5>;
    case 7:
      return depthwise_grad_square<T, 7>;
    default:
      return depthwise_grad_any<T>;
  }
}

// Threads share the channels: each adds up all images of its own. Its blocks of a band follow each
// other: where channels lie side by side, they share pages and pairs of cache lines. `grad` steps
// over the filters of a channel.
template <class T>
tenon_status run_depthwise_grad(tenon_ctx* ctx, const ConvShapes& s, const ChannelReader<T>& grad,
                                const ChannelReader<T>& x, T* weight, tenon_err* err) {
  constexpr int64_t width = kWidth<T>, most_bytes = 64 * 1024;  // of sums
  const Bands<T> bands(s);
  const auto run = choose_depthwise_grad<T>(s);
  const int64_t taps = s.taps(), filters = s.group_filters();
  const int64_t blocks = (s.channels + width - 1) / width, threads = host->thread_count();
  const int64_t results = bands.rows * s.columns, sums_size = filters * taps * width;
  const int64_t fit = most_bytes / (sums_size * static_cast<int64_t>(sizeof(T)));
  const int64_t together = std::clamp<int64_t>(fit, 1, (blocks + threads - 1) / threads);
  const int64_t in = x.buffer(bands.image / width);
  return parallel_with_memory(
      ctx, (blocks + together - 1) / together,
      together * s.batch * filters * (taps + 8) * s.results(),
      (together * sums_size + bands.image + bands.result + in + grad.buffer(results)) *
          static_cast<int64_t>(sizeof(T)),
      err, [&](int64_t share, void* memory) {
        T *all = static_cast<T*>(memory), *image = all + together * sums_size;
        T *grads = image + bands.image, *own = grads + bands.result;
        const int64_t begin = share * together, end = std::min(blocks, begin + together);
        std::fill_n(all, together * sums_size, T(0));
        for (int64_t item = 0; item < s.batch * bands.count; ++item) {
          const int64_t n = item / bands.count, band = item % bands.count;
          const int64_t rows = bands.rows_of(s, band);
          for (int64_t block = begin; block < end; ++block) {
            const int64_t first = block * width, channels = std::min(width, s.channels - first);
            read_band(s, bands, x, n, first, channels, band, image, own);
            for (int64_t m = 0; m < filters; ++m) {
              grad.read(grad.at(n, first, band * results) + m * s.results(), channels, 1,
                        rows * s.columns, grads, bands.result, own + in);
              run(s, bands, rows, image, grads,
                  all + (block - begin) * sums_size + m * taps * width);
            }
          }
        }
        for (int64_t c = begin * width; c < std::min(end * width, s.channels); ++c) {
          const T* sums = all + (c / width - begin) * sums_size + c % width;
          T* to = weight + c * filters * taps;
          for (int64_t t = 0; t < filters * taps; ++t) to[t] = sums[t * width];
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
