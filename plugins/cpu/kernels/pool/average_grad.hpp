// SPDX-License-Identifier: Apache-2.0
// Gradient of average pooling of NCHW images. The gradient of a pixel is the sum, over the windows
// that contain it, of their gradient divided by their count. Pixels one stride apart are in
// adjacent windows, so that vectors of windows give vectors of pixels.
#pragma once

#include "parallel_scratch.hpp"
#include "pool/vectors.hpp"
#include "pool/window.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
class AverageGrad {
 public:
  AverageGrad(const Window& w, bool count_padding, int64_t planes)
      : w_(w),
        count_padding_(count_padding),
        planes_(planes),
        before_((w.kernel[1] - 1) / w.stride[1]) {
    row_ = before_ + std::max(w.columns, (w.width - 1 + w.padding[1]) / w.stride[1] + 1);
  }

  tenon_status run(tenon_ctx* ctx, const T* grad, T* out, tenon_err* err) const {
    const int64_t results = w_.rows * w_.columns, size = w_.height * w_.width;
    const int64_t together = std::clamp<int64_t>(planes_ / (8 * host->thread_count()), 1, 32);
    return parallel_for_with_scratch(
        ctx, (planes_ + together - 1) / together,
        together * (2 * results + size) / kWindowWidth<T> * 4,
        (2 * w_.rows + 1) * row_ * static_cast<int64_t>(sizeof(T)), err,
        [&](int64_t item, void* memory) {
          T* parts = static_cast<T*>(memory);
          T *inverse_counts = parts + w_.rows * row_, *sums = inverse_counts + w_.rows * row_;
          std::fill(parts, inverse_counts, T(0));  // windows that do not exist, on either side
          for (int64_t i = 0; i < w_.rows; ++i) {
            const int64_t rows = counted(w_, 0, i, count_padding_);
            for (int64_t j = 0; j < w_.columns; ++j) {
              const int64_t count = rows * counted(w_, 1, j, count_padding_);
              inverse_counts[i * row_ + j] = T(1) / static_cast<T>(std::max<int64_t>(1, count));
            }
          }
          for (int64_t p = item * together; p < std::min(planes_, (item + 1) * together); ++p) {
            for (int64_t i = 0; i < w_.rows; ++i) {
              const T* from = grad + p * results + i * w_.columns;
              by_vectors<kWindowWidth<T>>(w_.columns, [&]<int Width>(int64_t j) {
                using Vectors = WindowVec<T, Width>;
                Vectors::store(
                    parts + i * row_ + before_ + j,
                    Vectors::load(from + j) * Vectors::load(inverse_counts + i * row_ + j));
              });
            }
            add_windows(parts, sums, out + p * size);
          }
        });
  }

 private:
  void add_windows(const T* parts, T* sums, T* out) const {
    for (int64_t y = 0; y < w_.height; ++y, out += w_.width) {
      const int64_t at = y + w_.padding[0];
      const int64_t begin = at < w_.kernel[0] ? 0 : (at - w_.kernel[0]) / w_.stride[0] + 1;
      const int64_t end = std::min(w_.rows, at / w_.stride[0] + 1);
      const T* rows = parts + begin * row_;
      int64_t count = std::max<int64_t>(0, end - begin);
      if (count > 3) {  // first the rows, then the columns of their sum
        by_vectors<kWindowWidth<T>>(row_, [&]<int Width>(int64_t j) {
          WindowVec<T, Width>::store(sums + j, sum_of<Width>(rows + j, count, 1));
        });
        rows = sums;
        count = 1;
      }
      const bool single = count == 1 && w_.kernel[1] == w_.stride[1];
      if (w_.stride[1] == 1) {
        add_row<1, false>(rows, count, out);
      } else if (w_.stride[1] == 2) {
        single ? add_row<2, true>(rows, count, out) : add_row<2, false>(rows, count, out);
      } else {
        add_row<0, false>(rows, count, out);
      }
    }
  }

  // The sum over `count` rows and `taps` windows of each: the one at `from` and those before it.
  template <int Width>
  [[gnu::always_inline]] auto sum_of(const T* from, int64_t count, int64_t taps) const {
    typename WindowVec<T, Width>::Values sum = {};
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t a = 0; a < taps; ++a) sum += WindowVec<T, Width>::load(from + i * row_ - a);
    }
    return sum;
  }

  // One row of pixels. Pixel j + stride * b is in window q + b, under tap r, and in windows before
  // it; if Single, in no other.
  template <int Stride, bool Single>
  void add_row(const T* rows, int64_t count, T* to) const {
    const int64_t stride = Stride ? Stride : w_.stride[1];
    const auto windows = [&](int64_t j) { return rows + before_ + (j + w_.padding[1]) / stride; };
    const auto taps = [&](int64_t j) {
      const int64_t r = (j + w_.padding[1]) % stride;
      return r < w_.kernel[1] ? (w_.kernel[1] - 1 - r) / stride + 1 : 0;
    };
    if constexpr (Stride == 1) {
      const T* from = windows(0);
      by_vectors<kWindowWidth<T>>(w_.width, [&]<int Width>(int64_t j) {
        WindowVec<T, Width>::store(to + j, sum_of<Width>(from + j, count, w_.kernel[1]));
      });
    } else if constexpr (Stride == 2) {
      const T *even = windows(0), *odd = windows(1);
      const int64_t of_even = Single ? 1 : taps(0), of_odd = Single ? 1 : taps(1);
      by_vectors<kWindowWidth<T>>(w_.width / 2, [&]<int Width>(int64_t b) {
        using Vectors = WindowVec<T, Width>;
        if constexpr (Single) {
          Vectors::store_zipped(to + 2 * b, Vectors::load(even + b), Vectors::load(odd + b));
        } else {
          Vectors::store_zipped(to + 2 * b, sum_of<Width>(even + b, count, of_even),
                                sum_of<Width>(odd + b, count, of_odd));
        }
      });
      if (const int64_t last = w_.width - 1; last % 2 == 0) {
        to[last] = sum_of<1>(even + last / 2, count, of_even)[0];
      }
    } else {
      for (int64_t j = 0; j < w_.width; ++j) to[j] = sum_of<1>(windows(j), count, taps(j))[0];
    }
  }

  const Window w_;
  bool count_padding_;
  int64_t planes_, before_, row_;  // zeros before a row of shares, and its length with them
};

}  // namespace tenon::cpu::TENON_CPU_ISA
