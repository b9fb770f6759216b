// SPDX-License-Identifier: Apache-2.0
// Weight gradients of depthwise convolutions, one vector of channels at a time.
#pragma once

#include "conv/depthwise.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// A range of results and the steps, in elements, from one row and column of taps, and of results,
// to the next, for pixels and for gradients.
struct GradSteps {
  int64_t rows, columns;
  int64_t tap_down, tap_across, down, across;
  int64_t grad_down, grad_across;
};

// Accumulates the gradients of U x K adjacent taps in registers. In place, it prefetches what the
// next row reads, because the hardware prefetcher does not follow.
template <class T, int U, int K, bool InPlace>
void depthwise_grad_tile(const GradSteps& s, const T* x, const T* grad, T* accumulators) {
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  constexpr int64_t width = kWidth<T>;
  Vector acc[U][K];
#pragma GCC unroll 16
  for (int t = 0; t < U * K; ++t)
    acc[t / K][t % K] = *reinterpret_cast<Vector*>(accumulators + t * width);
  for (int64_t i = 0; i < s.rows; ++i, x += s.down, grad += s.grad_down) {
    const T *from = x, *of = grad;
    for (int64_t j = 0; j < s.columns; ++j, of += s.grad_across, from += s.across) {
      if constexpr (InPlace) {
        __builtin_prefetch(from + s.down + (U - 1) * s.tap_down, 0, 2);
        __builtin_prefetch(of + s.grad_down, 0, 2);
      }
      const Vector g = *reinterpret_cast<const Unaligned*>(of);
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u) {
        const T* row = from + u * s.tap_down;
#pragma GCC unroll 16
        for (int v = 0; v < K; ++v)
          acc[u][v] += g * *reinterpret_cast<const Unaligned*>(row + v * s.tap_across);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < U * K; ++t)
    *reinterpret_cast<Vector*>(accumulators + t * width) = acc[t / K][t % K];
}

// Rows [begin, end) of K taps, about nine accumulators at a time.
template <class T, int K, bool InPlace>
void depthwise_grad_rows(const ConvShapes&, const GradSteps& steps, int64_t begin, int64_t end,
                         const T* x, const T* grad, T* accumulators) {
  constexpr int some = std::clamp(10 / K, 1, K);
  const auto tile = [&]<int U>() {
    depthwise_grad_tile<T, U, K, InPlace>(steps, x + begin * steps.tap_down, grad,
                                          accumulators + begin * K * kWidth<T>);
    begin += U;
  };
  while (begin + some <= end) tile.template operator()<some>();
  if constexpr (some > 2) {
    if (begin + 2 <= end) tile.template operator()<2>();
  }
  if constexpr (some > 1) {
    if (begin < end) tile.template operator()<1>();
  }
}

// Any number of taps in a row, one by one.
template <class T, bool InPlace>
void depthwise_grad_any(const ConvShapes& s, const GradSteps& steps, int64_t begin, int64_t end,
                        const T* x, const T* grad, T* accumulators) {
  for (int64_t u = begin; u < end; ++u) {
    for (int64_t v = 0; v < s.kernel[1]; ++v) {
      depthwise_grad_tile<T, 1, 1, InPlace>(steps, x + u * steps.tap_down + v * steps.tap_across,
                                            grad, accumulators + (u * s.kernel[1] + v) * kWidth<T>);
    }
  }
}

template <class T, bool InPlace>
auto choose_depthwise_grad(const ConvShapes& s) {
  switch (s.kernel[1]) {
    case 3:
      return depthwise_grad_rows<T, 3, InPlace>;
    case 5:
      return depthwise_grad_rows<T, 5, InPlace>;
    case 7:
      return depthwise_grad_rows<T, 7, InPlace>;
    default:
      return depthwise_grad_any<T, InPlace>;
  }
}

// Rows [top, top + rows) of the results of `blocks` adjacent blocks of filters, with results and
// pixels in place. It divides the columns so that a part stays in the L1 cache while all blocks
// stream past it. Taps in the padding are left out: rows of taps, and single taps for results at
// either end.
template <class T, class Run>
void depthwise_grad_in_place(const ConvShapes& s, const Run& run, int64_t blocks, const T* x,
                             int64_t pixel, const T* grad, int64_t grad_pixel, int64_t top,
                             int64_t rows, T* accumulators) {
  // Bytes of pixels and gradients.
  constexpr int64_t width = kWidth<T>, near = 24 * 1024 / kVectorBytes;
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  const auto [begin, end] = Whole(s);
  GradSteps steps{1,
                  end - begin,
                  s.dilation[0] * s.width * pixel,
                  s.dilation[1] * pixel,
                  s.stride[0] * s.width * pixel,
                  s.stride[1] * pixel,
                  s.columns * grad_pixel,
                  grad_pixel};
  const auto down = [&](int64_t i) {
    return Inside(i * s.stride[0] - s.padding[0], s.height, s.dilation[0], s.kernel[0]);
  };
  for (int64_t i = top; i < top + rows; i += steps.rows) {
    const Inside seen = down(i);
    const T* row = x + ((i * s.stride[0] - s.padding[0]) * s.width - s.padding[1]) * pixel;
    const T* of = grad + i * s.columns * grad_pixel;
    // Takes the following rows that read as many rows of taps in the same call.
    steps.rows = 1;
    while (i + steps.rows < top + rows && down(i + steps.rows).begin == seen.begin &&
           down(i + steps.rows).end == seen.end) {
      ++steps.rows;
    }
    const int64_t of_column = (steps.rows * (s.stride[0] * s.stride[1] + 1) + s.kernel[0]) * blocks;
    const int64_t some = std::max<int64_t>(8, near / of_column);
    const int64_t chunks = std::max<int64_t>(1, (end - begin + some - 1) / some);
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t first = begin + (end - begin) * c / chunks;
      steps.columns = begin + (end - begin) * (c + 1) / chunks - first;
      for (int64_t b = 0; b < blocks; ++b) {
        run(s, steps, seen.begin, seen.end, row + first * steps.across + b * width,
            of + first * grad_pixel + b * width, accumulators + b * s.taps() * width);
      }
    }
    const auto at_end = [&](int64_t j) {
      const Inside across(j * s.stride[1] - s.padding[1], s.width, s.dilation[1], s.kernel[1]);
      for (int64_t r = 0; r < steps.rows; ++r) {
        for (int64_t b = 0; b < blocks; ++b) {
          const T* from = row + r * steps.down + j * steps.across + b * width;
          const Vector g = *reinterpret_cast<const Unaligned*>(of + r * steps.grad_down +
                                                               j * grad_pixel + b * width);
          for (int64_t u = seen.begin; u < seen.end; ++u) {
            for (int64_t v = across.begin; v < across.end; ++v) {
              *reinterpret_cast<Vector*>(accumulators +
                                         (b * s.taps() + u * s.kernel[1] + v) * width) +=
                  g * *reinterpret_cast<const Unaligned*>(from + u * steps.tap_down +
                                                          v * steps.tap_across);
            }
          }
        }
      }
    };
    for (int64_t j = 0; j < begin; ++j) at_end(j);
    for (int64_t j = end; j < s.columns; ++j) at_end(j);
  }
}

// Threads divide the channels: each accumulates all images for its own. Consecutive tasks are
// blocks of one band, because in NHWC they share pages and pairs of cache lines. `grad` iterates
// over the filters of a channel.
template <class T>
tenon_status run_depthwise_grad(tenon_ctx* ctx, const ConvShapes& s, const ChannelReader<T>& grad,
                                const ChannelReader<T>& x, T* weight, tenon_err* err) {
  constexpr int64_t width = kWidth<T>, max_bytes = 64 * 1024;  // Bytes of accumulators.
  const bool reads = reads_in_place(s, x, 4) && grad.in_place();
  const Bands<T> bands(s, reads);
  const auto run = choose_depthwise_grad<T, false>(s);
  const auto run_in_place = choose_depthwise_grad<T, true>(s);
  const int64_t taps = s.taps(), filters = s.group_filters();
  const int64_t blocks = (s.channels + width - 1) / width, threads = host->thread_count();
  const int64_t results = bands.rows * s.columns, accumulators_size = filters * taps * width;
  const int64_t fit = max_bytes / (accumulators_size * static_cast<int64_t>(sizeof(T)));
  const int64_t together = std::clamp<int64_t>(fit, 1, (blocks + threads - 1) / threads);
  const int64_t in = x.buffer(bands.image / width);
  return parallel_for_with_scratch(
      ctx, (blocks + together - 1) / together,
      together * s.batch * filters * (taps + 8) * s.results(),
      (together * accumulators_size + bands.image + bands.result + in + grad.buffer(results)) *
          static_cast<int64_t>(sizeof(T)),
      err, [&](int64_t chunk, void* memory) {
        T *all = static_cast<T*>(memory), *image = all + together * accumulators_size;
        T *grads = image + bands.image, *own = grads + bands.result;
        const int64_t begin = chunk * together, end = std::min(blocks, begin + together);
        std::fill_n(all, together * accumulators_size, T(0));
        for (int64_t item = 0; item < s.batch * bands.count; ++item) {
          const int64_t n = item / bands.count, band = item % bands.count;
          const int64_t rows = bands.rows_of(s, band);
          int64_t block = begin;
          if (reads && filters == 1) {
            // Blocks that are whole vectors.
            const int64_t whole = std::min(end, s.channels / width) - begin, first = begin * width;
            if (whole > 0) {
              depthwise_grad_in_place(s, run_in_place, whole, x.data() + x.at(n, first, 0),
                                      x.pixel(), grad.data() + grad.at(n, first, 0), grad.pixel(),
                                      band * bands.rows, rows, all);
              block += whole;
            }
          }
          for (; block < end; ++block) {
            const int64_t first = block * width, channels = std::min(width, s.channels - first);
            read_band(s, bands, x, n, first, channels, band, image, own);
            for (int64_t m = 0; m < filters; ++m) {
              T* accumulators = all + (block - begin) * accumulators_size + m * taps * width;
              grad.read(grad.at(n, first, band * results) + m * s.results(), channels, 1,
                        rows * s.columns, grads, bands.result, own + in);
              const GradSteps steps{rows,
                                    s.columns,
                                    s.dilation[0] * bands.image_row,
                                    s.dilation[1] * width,
                                    s.stride[0] * bands.image_row,
                                    s.stride[1] * width,
                                    s.columns * width,
                                    width};
              run(s, steps, 0, s.kernel[0], image + bands.tap(s, 0, 0), grads, accumulators);
            }
          }
        }
        for (int64_t c = begin * width; c < std::min(end * width, s.channels); ++c) {
          const T* accumulators = all + (c / width - begin) * accumulators_size + c % width;
          T* to = weight + c * filters * taps;
          for (int64_t t = 0; t < filters * taps; ++t) to[t] = accumulators[t * width];
        }
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
