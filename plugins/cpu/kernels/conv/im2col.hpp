// SPDX-License-Identifier: Apache-2.0
// Implicit im2col: the panels of a GEMM are gathered from the images as they are packed, so that
// the im2col matrix never exists in memory. Row (c, u, v) of that matrix holds, for each result of
// each image, the pixel under tap (u, v) of channel c.
#pragma once

#include "conv/shapes.hpp"
#include "gemm/blocked.hpp"
#include "gemm/micro_kernel.hpp"
#include "simd/shuffle.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Adjacent results in one row of one image: `length` of them.
template <class T>
struct ImageRun {
  const T* image;  // Its first channel.
  int64_t y, x;    // The pixel under tap (0, 0) of the first result; negative in the padding.
  int64_t length;
};

// Calls f(run, offset) for the results [j, j + n) of all images, as runs.
template <class T, class F>
void for_runs(const ConvShapes& s, const T* images, int64_t j, int64_t n, F&& f) {
  int64_t image = j / s.results(), i = j % s.results() / s.columns, column = j % s.columns;
  for (int64_t at = 0; at < n;) {
    const int64_t length = std::min(n - at, s.columns - column);
    f(ImageRun<T>{images + image * s.channels * s.pixels(), i * s.stride[0] - s.padding[0],
                  column * s.stride[1] - s.padding[1], length},
      at);
    at += length;
    column = 0;
    if (++i == s.rows) i = 0, ++image;
  }
}

// A tap of a channel: a row of the im2col matrix.
struct Tap {
  int64_t c, u, v;
  Tap(const ConvShapes& s, int64_t row)
      : c(row / s.taps()), u(row % s.taps() / s.kernel[1]), v(row % s.kernel[1]) {}
  void next(const ConvShapes& s) {
    if (++v == s.kernel[1]) {
      v = 0;
      if (++u == s.kernel[0]) u = 0, ++c;
    }
  }
};

// Copies the pixels of a run under one tap; zeros outside of the image.
template <class T>
[[gnu::always_inline]] inline void copy_run(const ConvShapes& s, const ImageRun<T>& run,
                                            const Tap& tap, T* to) {
  const int64_t y = run.y + tap.u * s.dilation[0], x = run.x + tap.v * s.dilation[1];
  if (y < 0 || y >= s.height) {
    std::fill_n(to, run.length, T(0));
    return;
  }
  const T* from = run.image + (tap.c * s.height + y) * s.width + x;
  const int64_t step = s.stride[1];
  if (step == 1 && x >= 0 && x + run.length <= s.width) {
    std::copy_n(from, run.length, to);
    return;
  }
  const Inside inside(x, s.width, step, run.length);
  std::fill(to, to + inside.begin, T(0));
  if (step == 1) {
    std::copy(from + inside.begin, from + inside.end, to + inside.begin);
  } else {
    for (int64_t j = inside.begin; j < inside.end; ++j) to[j] = from[j * step];
  }
  std::fill(to + inside.end, to + run.length, T(0));
}

// The im2col matrix as operand B: k runs over (channel, tap), columns are results.
template <class T>
class ImagePanels {
 public:
  // Starts at column `first`.
  ImagePanels(const ConvShapes& s, const T* images, int64_t first)
      : s_(s), images_(images), first_(first) {}

  void pack(int64_t p, int64_t k, int64_t j, int64_t n, T* to) const {
    constexpr int64_t panel = kNR<T>;
    j += first_;
    if (n < panel) std::fill_n(to, k * panel, T(0));
    if constexpr (VecMask<T>::kMasked) {
      if (s_.stride[1] <= 2 && s_.kernel[1] <= kMaxTaps) return pack_masked(p, k, j, n, to);
    }
    for_runs(s_, images_, j, n, [&](const ImageRun<T>& run, int64_t at) {
      Tap tap(s_, p);
      for (int64_t q = 0; q < k; ++q, tap.next(s_)) copy_run(s_, run, tap, to + q * panel + at);
    });
  }

 private:
  using Vector = typename VectorOf<T>::type;
  static constexpr int64_t kMaxTaps = 16;  // Taps of one kernel row for which masks are kept.

  // Packs by masked loads, one vector at a time. Most rows of a panel are not whole vectors.
  void pack_masked(int64_t p, int64_t k, int64_t j, int64_t n, T* to) const {
    for_runs(s_, images_, j, n, [&](const ImageRun<T>& whole, int64_t at) {
      for (int64_t done = 0; done < whole.length; done += kWidth<T>) {
        const ImageRun<T> run{whole.image, whole.y, whole.x + done * s_.stride[1],
                              std::min<int64_t>(whole.length - done, kWidth<T>)};
        if (s_.stride[1] == 1) {
          pack_vector<1>(p, k, run, to + at + done);
        } else {
          pack_vector<2>(p, k, run, to + at + done);
        }
      }
    });
  }

  // Gathers pixels `Step` apart, `run.length` of them; those outside [0, width - x) of the image
  // are zeros.
  template <int Step>
  struct Pixels {
    VecMask<T> first, second;
    Pixels() = default;
    Pixels(int64_t begin, int64_t end)
        : first(begin, end), second(begin - kWidth<T>, end - kWidth<T>) {}
    [[gnu::always_inline]] Vector load(const T* from) const {
      if constexpr (Step == 1) {
        return first.load(from);
      } else {
        return even_elements(first.load(from), second.load(from + kWidth<T>));
      }
    }
  };

  template <int Step>
  void pack_vector(int64_t p, int64_t k, const ImageRun<T>& run, T* to) const {
    constexpr int64_t panel = kNR<T>;
    const VecMask<T> all(run.length);
    const int64_t length = (run.length - 1) * Step + 1;
    Pixels<Step> inside[kMaxTaps];
    for (int64_t v = 0; v < s_.kernel[1]; ++v) {
      const int64_t x = run.x + v * s_.dilation[1];
      inside[v] = Pixels<Step>(-x, std::min(length, s_.width - x));
    }
    Tap tap(s_, p);
    for (int64_t q = 0; q < k;) {
      // One row of the kernel.
      const int64_t y = run.y + tap.u * s_.dilation[0];
      const int64_t last = std::min(s_.kernel[1], tap.v + k - q);
      if (y < 0 || y >= s_.height || s_.width == 0) {
        for (int64_t v = tap.v; v < last; ++v, ++q) all.store(to + q * panel, Vector{});
      } else {
        const T* from = run.image + (tap.c * s_.height + y) * s_.width + run.x;
        // Prefetches the same row of a later channel, which is one plane away, where the hardware
        // prefetcher does not follow.
        __builtin_prefetch(from + 2 * s_.pixels());
        if (Step > 1) __builtin_prefetch(from + 2 * s_.pixels() + kWidth<T>);
        for (int64_t v = tap.v; v < last; ++v, ++q) {
          all.store(to + q * panel, inside[v].load(from + v * s_.dilation[1]));
        }
      }
      tap.v = last - 1;
      tap.next(s_);
    }
  }

  const ConvShapes& s_;
  const T* images_;
  int64_t first_;
};

// The im2col matrix as operand A: rows are (channel, tap), k runs over results.
template <class T>
class ImageRows {
 public:
  // Starts at row `first`.
  ImageRows(const ConvShapes& s, const T* images, int64_t first)
      : s_(s), images_(images), first_(first) {}

  PackedRows<T, kKC> pack(int64_t i, int64_t m, int64_t p, int64_t k, T* to) const {
    using Rows = PackedRows<T, kKC>;
    for_runs(s_, images_, p, k, [&](const ImageRun<T>& run, int64_t at) {
      Tap tap(s_, first_ + i);
      for (int64_t r = 0; r < m; ++r, tap.next(s_)) {
        copy_run(s_, run, tap, to + r * Rows::kRowStride + at);
      }
    });
    return {to, false};
  }

 private:
  const ConvShapes& s_;
  const T* images_;
  int64_t first_;
};

// The results [image, filter, row, column] of a convolution as one matrix, with the results of all
// images side by side: as C, or transposed as B.
template <class T>
struct Results {
  T* out;              // The first filter of the first image.
  int64_t row, image;  // Elements from one filter and one image to the next.
  int64_t first;       // Column 0 is this result.

  Results(const ConvShapes& s, T* from, int64_t first_result)
      : out(from), row(s.results()), image(s.filters * s.results()), first(first_result) {}

  T* at(int64_t j) const { return out + (j + first) / row * image + (j + first) % row; }
  int64_t dense_from(int64_t j) const { return row - (j + first) % row; }

  using Element = std::remove_const_t<T>;
  void pack(int64_t p, int64_t k, int64_t j, int64_t n, Element* to) const {
    for (int64_t done = 0; done < k;) {
      const int64_t run = std::min(k - done, dense_from(p + done));
      pack_panel(Plain<Element>(), {at(p + done) + j * row, 1, row}, run, n,
                 to + done * kNR<Element>);
      done += run;
    }
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
