// SPDX-License-Identifier: Apache-2.0
// Mean and squared distances from it, in one pass over memory: blocks that fit the first-level cache are
// read twice, and their results merged.
#pragma once

#include "rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
struct Moments {
  T count = 0;
  T mean = 0;
  T squares = 0;  // sum of (x - mean)^2

  void merge(const Moments& other) {
    const T total = count + other.count;
    if (total == T(0)) return;
    const T distance = other.mean - mean;
    const T share = other.count / total;
    squares += other.squares + distance * distance * count * share;
    mean += distance * share;
    count = total;
  }
};

// Of one dense row.
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
    part.squares = sum_row<T>(length, [from, mean = part.mean](int64_t i) {
      const T distance = from[i] - mean;
      return distance * distance;
    });
    result.merge(part);
  }
  return result;
}

// Of up to `Columns` columns side by side, whose rows are `stride` apart.
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
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t j = 0; j < columns; ++j) part_mean[j] += from[i * stride + j];
      }
      for (int64_t j = 0; j < columns; ++j) part_mean[j] /= static_cast<T>(length);
      for (int64_t i = 0; i < length; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const T distance = from[i * stride + j] - part_mean[j];
          part_squares[j] += distance * distance;
        }
      }
      const T before = static_cast<T>(at), share = static_cast<T>(length) / static_cast<T>(at + length);
      for (int64_t j = 0; j < columns; ++j) {
        const T distance = part_mean[j] - mean[j];
        squares[j] += part_squares[j] + distance * distance * before * share;
        mean[j] += distance * share;
      }
    }
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
