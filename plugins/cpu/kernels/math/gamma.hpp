// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function and its derivative.
//
// Both are asymptotic series of an argument that the recurrence made large enough; float is
// computed in double, so that little is lost near zeros.
#pragma once

#include "math/exponential.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

// psi(x) for finite x > 0: psi(x) = psi(x + 10) - p'(x) / p(x), where p = x (x + 1) ... (x + 9).
TENON_INLINE double plain_digamma(double x) {
  double p = x, slope = 1.0;
  const auto next = [&](double k) {
    slope = slope * (x + k) + p;
    p *= x + k;
  };
  next(1), next(2), next(3), next(4), next(5), next(6), next(7), next(8), next(9);
  const bool small = x < 10.0;
  const double shift = slope / p, z = small ? x + 10.0 : x;
  const double inverse = 1.0 / z, t = inverse * inverse;
  const double series = detail::polynomial(t, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240,
                                           1.0 / 132, -691.0 / 32760, 1.0 / 12);
  const double large = plain_log(z) - 0.5 * inverse - t * series;
  return small ? large - shift : large;
}
TENON_INLINE float plain_digamma(float x) {
  return static_cast<float>(plain_digamma(static_cast<double>(x)));
}

// Reflected for negative x.
inline double digamma(double x) {
  if (x > 0.0) return x < kInfinity<double> ? plain_digamma(x) : x;
  if (x == 0.0) return std::copysign(kInfinity<double>, -x);
  constexpr double pi = 3.141592653589793;
  const double fraction = x - std::nearbyint(x);
  if (!(fraction != 0.0)) return kNan<double>;  // a pole, or x is infinite or NaN
  return plain_digamma(1.0 - x) - pi / std::tan(pi * fraction);
}
inline float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }

// log(Gamma(x)) for finite x > 0 by Stirling's series for x + 12, and x (x + 1) ... (x + 11).
TENON_INLINE float plain_lgamma(float argument) {
  const double x = argument;
  double p = x;
  const auto next = [&](double k) { p *= x + k; };
  next(1), next(2), next(3), next(4), next(5), next(6), next(7), next(8), next(9), next(10),
      next(11);
  const bool small = x < 12.0;
  const double z = small ? x + 12.0 : x, inverse = 1.0 / z;
  const double series = detail::polynomial(inverse * inverse, 1.0 / 12, -1.0 / 360, 1.0 / 1260,
                                           -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156);
  const double large = (z - 0.5) * plain_log(z) - z + (0.9189385332046727 + inverse * series);
  const double shift = plain_log(small ? p : 1.0);
  return static_cast<float>(large - shift);
}

// The reentrant form of libm: plain lgamma writes a global.
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
inline float lgamma(float x) {
  return (x > 0.0f) & (x < kInfinity<float>) ? plain_lgamma(x)
                                             : static_cast<float>(lgamma(static_cast<double>(x)));
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
