// SPDX-License-Identifier: Apache-2.0
// Roots of unity, correctly rounded but for double rounding: angles are reduced to an eighth of the circle
// in integers, before a function sees them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace tenon::fft {

template <class T>
struct Root {
  T re, im;
};

// exp(-2 pi i k / n).
template <class T>
Root<T> root_of_unity(int64_t k, int64_t n) {
  k %= n;
  if (k < 0) k += n;
  // The angle is k / n of the circle; eights counts in 1 / (8 n).
  int64_t eights = 8 * k;
  const int64_t octant = eights / n;
  eights -= octant * n;
  if (octant % 2) eights = n - eights;
  const long double angle = std::numbers::pi_v<long double> * static_cast<long double>(eights) /
                            (4 * static_cast<long double>(n));
  long double c = std::cos(angle), s = std::sin(angle);
  if (octant % 4 == 1 || octant % 4 == 2) std::swap(c, s);
  if (octant >= 2 && octant <= 5) c = -c;
  if (octant >= 4) s = -s;
  return {static_cast<T>(c), static_cast<T>(-s)};
}

}  // namespace tenon::fft
