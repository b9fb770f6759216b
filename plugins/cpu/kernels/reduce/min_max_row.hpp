// SPDX-License-Identifier: Apache-2.0
// Maximum or minimum of a dense row of floats, NaN if any element is NaN. Four running vectors
// ignore NaN; a separate mask records whether any was seen, which takes fewer instructions than a
// selection that propagates NaN.
#pragma once

#include "reduce/rows.hpp"
#include "simd/vec.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The least number of elements that it can process.
template <class T>
inline constexpr int64_t kMinMaxRow = 4 * Vec<T>::count;

// The maximum or minimum of n >= kMinMaxRow floats, NaN if any is.
template <bool kIsMax, class T>
inline T min_max_row(const T* x, int64_t n) {
  using L = Vec<T>;
  constexpr int kUnroll = 4;
  constexpr int64_t step = kUnroll * L::count;
  typename L::Vector best[kUnroll];
  for (int t = 0; t < kUnroll; ++t) best[t] = L::load(x + t * L::count);
  auto nan = unordered(best[0], best[1]) | unordered(best[2], best[3]);
  const auto update = [&](int64_t at) __attribute__((always_inline)) {
    typename L::Vector value[kUnroll];
    for (int t = 0; t < kUnroll; ++t) {
      value[t] = L::load(x + at + t * L::count);
      best[t] = (kIsMax ? value[t] > best[t] : value[t] < best[t]) ? value[t] : best[t];
    }
    nan |= unordered(value[0], value[1]) | unordered(value[2], value[3]);
  };
  int64_t i = step;
  if (n >= 12 * step) i = run_two_streams<step, true>(step, n, update);
  for (; i < n; i += step) update(std::min(i, n - step));  // the last ones again
  if (any_of(nan)) return std::numeric_limits<T>::quiet_NaN();
  T each[step];
  for (int t = 0; t < kUnroll; ++t) L::store(each + t * L::count, best[t]);
  return select_pairwise<step>(each, [](T a, T b) { return (kIsMax ? a > b : a < b) ? a : b; });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
