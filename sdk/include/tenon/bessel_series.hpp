// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions of the first kind of whole order n, times exp(-x), for x >= 0: up to
// `limit` by the power series, whose terms are all positive,
//
//   exp(-x) (x / 2)^n / n! * (1 + y / (1 (n + 1)) (1 + y / (2 (n + 2)) (1 + ...)))   with y = x^2 / 4,
//
// and above by the asymptotic series, which begins with the largest of its terms there,
//
//   1 / sqrt(2 pi x) * (1 - (4 n^2 - 1^2) / (8 x) (1 - (4 n^2 - 3^2) / (2 * 8 x) (1 - ...))).
//
// The CPU's kernel and the decomposition of bessel_ie share it.
#pragma once

#include <cstdint>

namespace tenon {

struct BesselSeries {
  static constexpr int64_t kMaxOrder = 12;  // exp(-limit) is a normal number of float32 up to here
  static constexpr int64_t kAsymptoticTerms = 24;
  double order, limit;
  int64_t power_terms;

  BesselSeries(int64_t n, bool is_float64)
      : order(static_cast<double>(n)),
        limit((is_float64 ? 22 : 12) + order * order / 2),
        power_terms(static_cast<int64_t>(1.4 * limit) + 20) {}

  // What term k of the power series is divided by, as a factor of y.
  double power_factor(int64_t k) const {
    const auto index = static_cast<double>(k);
    return 1 / (index * (order + index));
  }
  // The same of the asymptotic series, as a factor of 1 / x.
  double asymptotic_factor(int64_t k) const {
    const double odd = 2 * static_cast<double>(k) - 1;
    return (odd * odd - 4 * order * order) / (8 * static_cast<double>(k));
  }
};

}  // namespace tenon
