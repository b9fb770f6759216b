// SPDX-License-Identifier: Apache-2.0
// The largest or least number of a dense row of floats. A register is compared with the best so
// far, which NaN never takes the lead of; whether there is NaN is asked of two registers at a time,
// which takes fewer instructions than a choice that hands it on.
#pragma once

#include "simd/lanes.hpp"
#include "reduce/rows.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Elements that it takes.
template <class T>
inline constexpr int64_t kExtremeRow = 4 * Lanes<T>::count;

// The largest or least of n floats, NaN if any is.
template <bool kLargest, class T>
inline T extreme_row(const T* x, int64_t n) {
  using L = Lanes<T>;
  constexpr int teams = 4;
  constexpr int64_t step = teams * L::count;
  typename L::Vector best[teams];
  for (int t = 0; t < teams; ++t) best[t] = L::load(x + t * L::count);
  auto nan = unordered(best[0], best[1]) | unordered(best[2], best[3]);
  const auto meet = [&](int64_t at) __attribute__((always_inline)) {
    typename L::Vector lanes[teams];
    for (int t = 0; t < teams; ++t) {
      lanes[t] = L::load(x + at + t * L::count);
      best[t] = (kLargest ? lanes[t] > best[t] : lanes[t] < best[t]) ? lanes[t] : best[t];
    }
    nan |= unordered(lanes[0], lanes[1]) | unordered(lanes[2], lanes[3]);
  };
  int64_t i = step;
  if (n >= 12 * step) i = in_halves<step, true>(step, n, meet);
  for (; i < n; i += step) meet(std::min(i, n - step));  // the last ones again
  if (is_any(nan)) return std::numeric_limits<T>::quiet_NaN();
  T each[step];
  for (int t = 0; t < teams; ++t) L::store(each + t * L::count, best[t]);
  return select_of_lanes<step>(each, [](T a, T b) { return (kLargest ? a > b : a < b) ? a : b; });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
