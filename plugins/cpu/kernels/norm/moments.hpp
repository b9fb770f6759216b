// SPDX-License-Identifier: Apache-2.0
// Mean and sum of squared deviations, in one pass over memory. Blocks that fit the first-level
// cache are read twice (two-pass algorithm) and their results merged pairwise (Chan, Golub and
// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
#pragma once

#include "reduce/rows.hpp"

#include <tenon/parallel.hpp>

#include <cmath>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
inline bool is_finite(T x) {
  return std::abs(x) <= std::numeric_limits<T>::max();
}

// Merges two means, where `other` belongs to a `fraction` of all elements. Where the difference of
// the means overflows, the weighted sum does not.
template <class T>
inline T merged_mean(T mean, T other, T fraction) {
  const T distance = other - mean;
  return is_finite(distance) ? mean + distance * fraction
                             : mean * (T(1) - fraction) + other * fraction;
}

// Whether the squared deviations can be explained by the rounding error of the mean. This is so
// where all elements are nearly equal and far from zero; the mean is then corrected by the mean of
// the deviations from it (the corrected two-pass algorithm of Chan, Golub and LeVeque, "Algorithms
// for computing the sample variance", 1983).
template <class T>
inline bool is_rounding_error(T squares, T mean, T count) {
  const T error = 64 * std::numeric_limits<T>::epsilon() * mean;
  // Deviations may overflow where their squares do, so an infinite sum says nothing.
  return squares > T(0) && is_finite(squares) && squares <= count * error * error;
}

template <class T>
struct Moments {
  T count = 0;
  T mean = 0;
  T squares = 0;  // sum of (x - mean)^2

  void merge(const Moments& other) {
    if (count ==
        T(0)) {  // the difference to an empty mean is meaningless, and its square may overflow
      *this = other;
      return;
    }
    const T total = count + other.count;
    const T distance = other.mean - mean;
    const T fraction = other.count / total;
    squares += other.squares + distance * distance * count * fraction;
    mean = merged_mean(mean, other.mean, fraction);
    count = total;
  }
};

// The moments of one dense row.
template <class T>
inline Moments<T> moments_of(const T* x, int64_t n) {
  constexpr int64_t block = 4096;
  Moments<T> result;
  for (int64_t at = 0; at < n; at += block) {
    const int64_t length = std::min(block, n - at);
    const T* from = x + at;
    Moments<T> part;
    part.count = static_cast<T>(length);
    part.mean = sum_row<T>(length, [from](int64_t i) { return from[i]; }) / part.count;
    if (!is_finite(part.mean)) [[unlikely]] {  // the sum may overflow where the mean does not
      const T scale = T(1) / part.count;
      part.mean = sum_row<T>(length, [from, scale](int64_t i) { return from[i] * scale; });
    }
    prefetch_row(from + length, length);
    const auto squares = [&] {
      return sum_row<T>(length, [from, mean = part.mean](int64_t i) {
        const T distance = from[i] - mean;
        return distance * distance;
      });
    };
    part.squares = squares();
    if (is_rounding_error(part.squares, part.mean, part.count)) [[unlikely]] {
      part.mean +=
          sum_row<T>(length, [from, mean = part.mean](int64_t i) { return from[i] - mean; }) /
          part.count;
      part.squares = squares();
    }
    result.merge(part);
  }
  return result;
}

// The number of adjacent columns of one task: long runs of memory, but at least one task per
// thread.
inline int64_t columns_together(int64_t width, int64_t most) {
  const int64_t fraction = (width + host->thread_count() - 1) / host->thread_count();
  return std::clamp<int64_t>((fraction + 63) / 64 * 64, 64, most);
}

// The moments of up to `Columns` adjacent columns, whose rows are `stride` apart. Loop order:
// blocks of rows, and within a block row by row over all columns.
template <class T, int Columns>
struct ColumnMoments {
  T mean[Columns], squares[Columns];

  ColumnMoments(const T* x, int64_t rows, int64_t stride, int64_t columns) {
    constexpr int64_t block = 128;
    std::fill_n(mean, columns, T(0));
    std::fill_n(squares, columns, T(0));
    for (int64_t at = 0; at < rows; at += block) {
      const int64_t length = std::min(block, rows - at);
      const T* from = x + at * stride;
      T part_mean[Columns] = {}, part_squares[Columns] = {};
      add_rows(from, length, stride, columns, part_mean, [](T value, int64_t) { return value; });
      const T scale = T(1) / static_cast<T>(length);
      bool overflows = false;
      for (int64_t j = 0; j < columns; ++j) {
        part_mean[j] /= static_cast<T>(length);
        overflows |= !is_finite(part_mean[j]);
      }
      if (overflows) [[unlikely]] {  // the sum may overflow where the mean does not
        std::fill_n(part_mean, columns, T(0));
        add_rows(from, length, stride, columns, part_mean,
                 [scale](T value, int64_t) { return value * scale; });
      }
      const auto square = [&](T value, int64_t j) {
        const T distance = value - part_mean[j];
        return distance * distance;
      };
      add_rows(from, length, stride, columns, part_squares, square);
      bool rounding = false;
      for (int64_t j = 0; j < columns; ++j) {
        rounding |= is_rounding_error(part_squares[j], part_mean[j], static_cast<T>(length));
      }
      if (rounding) [[unlikely]] {
        T distances[Columns] = {};
        add_rows(from, length, stride, columns, distances,
                 [&](T value, int64_t j) { return value - part_mean[j]; });
        for (int64_t j = 0; j < columns; ++j) {
          if (is_rounding_error(part_squares[j], part_mean[j], static_cast<T>(length))) {
            part_mean[j] += distances[j] * scale;
          }
        }
        std::fill_n(part_squares, columns, T(0));
        add_rows(from, length, stride, columns, part_squares, square);
      }
      const T before = static_cast<T>(at),
              fraction = static_cast<T>(length) / static_cast<T>(at + length);
      for (int64_t j = 0; j < columns; ++j) {
        const T distance = part_mean[j] - mean[j];
        // Before the first block the mean is 0, and the square of its difference may overflow.
        squares[j] += part_squares[j] + (at > 0 ? distance * distance * before * fraction : T(0));
        mean[j] = merged_mean(mean[j], part_mean[j], fraction);
      }
    }
  }

 private:
  // sum[j] += f(x[i][j], j), four rows at a time, so that the sums are stored less often.
  template <class F>
  static void add_rows(const T* x, int64_t rows, int64_t stride, int64_t columns, T* sum, F f) {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
      const T *a = x + i * stride, *b = a + stride, *c = b + stride, *d = c + stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j)
        sum[j] += (f(a[j], j) + f(b[j], j)) + (f(c[j], j) + f(d[j], j));
    }
    for (; i < rows; ++i) {
      const T* a = x + i * stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; ++j) sum[j] += f(a[j], j);
    }
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
