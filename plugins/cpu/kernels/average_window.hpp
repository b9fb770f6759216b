// SPDX-License-Identifier: Apache-2.0
// Averages over windows of a plane, and their gradients, by rows: the rows of a window are added
// up, then the columns of that sum.
#pragma once

#include "window.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
class Averages {
 public:
  Averages(const Window& w, bool count_padding)
      : w_(w), count_padding_(count_padding), line_((w.columns - 1) * w.stride[1] + w.kernel[1]) {}

  // Elements of memory that one thread needs.
  int64_t memory() const {
    return w_.rows * w_.columns + 4 * (w_.columns + w_.kernel[1]) + 2 * (line_ + w_.width);
  }

  void forward(const T* x, T* out, T* memory) const {
    T *shares = memory, *line = shares + w_.columns;
    const auto [first, last] = inside_line();
    std::fill_n(line, line_, T(0));
    for (int64_t i = 0; i < w_.rows; ++i, out += w_.columns) {
      const auto [begin, end] = rows_of(i);
      std::fill(line + first, line + last, T(0));
      for (int64_t y = begin; y < end; ++y) {
        add(x + y * w_.width + first - w_.padding[1], last - first, line + first);
      }
      fill_shares(i, shares);
      std::fill_n(out, w_.columns, T(0));
      for (int64_t v = 0; v < w_.kernel[1]; ++v) {
        switch (w_.stride[1]) {
          case 1:
            add_every<1>(line + v, out);
            break;
          case 2:
            add_every<2>(line + v, out);
            break;
          default:
            add_every<0>(line + v, out);
        }
      }
      for (int64_t j = 0; j < w_.columns; ++j) out[j] *= shares[j];
    }
  }

  void backward(const T* grad, T* out, T* memory) const {
    // Zeros on either side of `sums`: windows that do not exist.
    T *parts = memory, *shares = parts + w_.rows * w_.columns;
    T* sums = shares + w_.columns + w_.kernel[1];
    T* line = sums + w_.columns + w_.kernel[1];
    for (int64_t i = 0; i < w_.rows; ++i) {
      fill_shares(i, shares);
      for (int64_t j = 0; j < w_.columns; ++j) {
        parts[i * w_.columns + j] = grad[i * w_.columns + j] * shares[j];
      }
    }
    std::fill(shares + w_.columns, line, T(0));
    const auto [first, last] = inside_line();
    for (int64_t y = 0; y < w_.height; ++y, out += w_.width) {
      const int64_t at = y + w_.padding[0];
      const int64_t begin = at < w_.kernel[0] ? 0 : (at - w_.kernel[0]) / w_.stride[0] + 1;
      const int64_t end = std::min(w_.rows, at / w_.stride[0] + 1);
      std::fill_n(sums, w_.columns, T(0));
      for (int64_t i = begin; i < end; ++i) add(parts + i * w_.columns, w_.columns, sums);
      spread(sums, line);
      std::fill_n(out, w_.width, T(0));
      std::copy(line + first, line + last, out + first - w_.padding[1]);
    }
  }

 private:
  struct Range {
    int64_t begin, end;
  };
  // Rows of the image that row i of the results sees.
  Range rows_of(int64_t i) const {
    const int64_t top = i * w_.stride[0] - w_.padding[0];
    return {std::max<int64_t>(0, top), std::min(top + w_.kernel[0], w_.height)};
  }
  // The part of a padded row that lies in the image.
  Range inside_line() const {
    const int64_t first = std::min(w_.padding[1], line_);
    return {first, std::max(first, std::min(line_, w_.padding[1] + w_.width))};
  }
  // Elements that a window counts along one axis.
  int64_t counted(int axis, int64_t i, int64_t length) const {
    const int64_t first = i * w_.stride[axis] - w_.padding[axis], end = first + w_.kernel[axis];
    if (count_padding_) return std::min(end, length + w_.padding[axis]) - first;
    return std::max<int64_t>(0, std::min(end, length) - std::max<int64_t>(0, first));
  }
  void fill_shares(int64_t i, T* shares) const {
    const int64_t rows = counted(0, i, w_.height);
    for (int64_t j = 0; j < w_.columns; ++j) {
      const int64_t count = rows * counted(1, j, w_.width);
      shares[j] = T(1) / static_cast<T>(std::max<int64_t>(1, count));
    }
  }
  static void add(const T* from, int64_t n, T* to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  }
  template <int Stride>
  void add_every(const T* from, T* to) const {
    const int64_t stride = Stride ? Stride : w_.stride[1];
#pragma GCC ivdep
    for (int64_t j = 0; j < w_.columns; ++j) to[j] += from[j * stride];
  }
  // What the windows of `sums` add to each column of a padded row.
  void spread(const T* sums, T* line) const {
    const int64_t stride = w_.stride[1], windows = (line_ + stride - 1) / stride;
    for (int64_t r = 0; r < stride; ++r) {
      // Column r + stride * j is under tap r + stride * a of window j - a.
      T* part = line + line_ + w_.width;
      std::fill_n(part, windows, T(0));
      const int64_t most = (line_ - r + stride - 1) / stride;
      for (int64_t a = 0; r + a * stride < w_.kernel[1]; ++a) add_shifted(sums, a, most, part);
      switch (stride) {
        case 1:
          std::copy_n(part, most, line);
          break;
        case 2:
          place<2>(part, most, line + r);
          break;
        default:
          place<0>(part, most, line + r);
      }
    }
  }
  void add_shifted(const T* sums, int64_t a, int64_t n, T* to) const {
    const int64_t end = std::min(n, w_.columns + a);
#pragma GCC ivdep
    for (int64_t j = a; j < end; ++j) to[j] += sums[j - a];
  }
  template <int Stride>
  void place(const T* from, int64_t n, T* to) const {
    const int64_t stride = Stride ? Stride : w_.stride[1];
    for (int64_t j = 0; j < n; ++j) to[j * stride] = from[j];
  }

  Window w_;
  bool count_padding_;
  int64_t line_;  // elements of a padded row that windows see
};

}  // namespace tenon::cpu::TENON_CPU_ISA
