// SPDX-License-Identifier: Apache-2.0
// Sums and extremes of dense rows, in independent lanes, so that they vectorise and round well.
#pragma once

#include "isa.hpp"
#include "math/arithmetic.hpp"

#include <algorithm>
#include <cstdint>

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
inline constexpr int kRowLanes = sizeof(T) == 4 ? 64 : 32;

// combine(...combine(value(0), value(1))..., value(n - 1)), n >= 1, in any order.
template <class T, class Value, class Combine>
inline T fold_row(int64_t n, Value value, Combine combine) {
  constexpr int lanes = kRowLanes<T>;
  if (n < lanes) {
    T result = value(0);
    for (int64_t i = 1; i < n; ++i) result = combine(result, value(i));
    return result;
  }
  T partial[lanes];
  for (int l = 0; l < lanes; ++l) partial[l] = value(l);
  int64_t i = lanes;
  for (; i + lanes <= n; i += lanes) {
    for (int l = 0; l < lanes; ++l) partial[l] = combine(partial[l], value(i + l));
  }
  for (int l = 0; i + l < n; ++l) partial[l] = combine(partial[l], value(i + l));
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) partial[l] = combine(partial[l], partial[l + width]);
  }
  return partial[0];
}

template <class T, class Value>
inline T sum_row(int64_t n, Value value) {
  return n > 0 ? fold_row<T>(n, value, [](T a, T b) { return a + b; }) : T(0);
}

// Ignores NaN, unless all are.
template <class T>
inline T max_row(const T* x, int64_t n) {
  return fold_row<T>(n, [x](int64_t i) { return x[i]; }, [](T a, T b) { return a > b ? a : b; });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
