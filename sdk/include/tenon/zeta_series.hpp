// SPDX-License-Identifier: Apache-2.0
// The Hurwitz zeta function zeta(s, a) = 1 / a^s + 1 / (a + 1)^s + ... for whole s of at least 2:
// by the Euler-Maclaurin formula all terms from z = a + k on are
//
//   z^-s * (z / (s - 1) + 1 / 2 + sum of coefficient[j] * (scale / z)^(2 j + 1))
//
// to 2^-54 where z is at least `reach`. The CPU's kernel and the decomposition of polygamma share
// it.
#pragma once

#include <array>

namespace tenon {

struct ZetaSeries {
  static constexpr int kTerms = 12;
  double s, scale, reach;
  std::array<double, kTerms> coefficient;  // Bernoulli numbers times rising factorials of s

  explicit ZetaSeries(double order) : s(order), scale(order + 24), reach(10 + order / 2) {
    // B(2 j) / (2 j)!
    constexpr double bernoulli[kTerms] = {1.0 / 12.0,
                                          -1.0 / 720.0,
                                          1.0 / 30240.0,
                                          -1.0 / 1209600.0,
                                          1.0 / 47900160.0,
                                          -691.0 / 1307674368000.0,
                                          1.0 / 74724249600.0,
                                          -3617.0 / 10670622842880000.0,
                                          43867.0 / 5109094217170944000.0,
                                          -174611.0 / 802857662698291200000.0,
                                          77683.0 / 14101100039391805440000.0,
                                          -236364091.0 / 1693824136731743669452800000.0};
    double rising = 1;
    for (int j = 0, factor = 0; j < kTerms; ++j) {
      for (; factor <= 2 * j; ++factor) rising *= (s + factor) / scale;
      coefficient[static_cast<unsigned>(j)] = bernoulli[j] * rising;
    }
  }

  // The coefficients by Horner's rule in (scale / z)^2, times scale / z.
  template <class T>
  T correction(T ratio) const {
    const T square = ratio * ratio;
    T sum = T(0);
    for (int j = kTerms; j-- > 0;) sum = sum * square + T(coefficient[static_cast<unsigned>(j)]);
    return sum * ratio;
  }
};

}  // namespace tenon
