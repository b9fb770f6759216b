// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function and its derivative.
//
// Both are asymptotic series of an argument that the recurrence made large enough, digamma next to
// its positive zero a quotient of polynomials; float is computed in double.
#pragma once

#include "math/exponential.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// psi(x) on [1, 3], where x0 is its zero: a quotient of polynomials has psi(x) / (x - x0), 2^-54.
// x0 has two parts, so that what is left of the difference close to it is exact.
TENON_INLINE double digamma_near_zero(double x) {
  const double t = x - 1.0;
  const double numerator = polynomial(
      t, 1.2503801375034054, 2.0079983521060054, 1.1741604116033721, 0.31649933632550714,
      0.04049350826567144, 0.002235289521967761, 3.9117651665683125e-05, 4.097361930526724e-08);
  const double denominator = polynomial(
      t, 1.0, 2.2894571233542136, 1.9022022748824643, 0.7470495002328587, 0.14810832904594673,
      0.014396602345897333, 0.0006000004112100302, 7.3778476243478865e-06);
  const double distance = (x - 1.4616321449683622) - 9.549995429965697e-17;
  return distance * (numerator / denominator);
}

}  // namespace detail

// psi(x) for finite x > 0, by psi(x + 1) = psi(x) + 1/x: below 5 from [1, 3], where nothing
// cancels; above by the asymptotic series, for x + 5 where x is below 10, since psi(x) = psi(x + 5)
// - p'(x) / p(x) with p = x (x + 1) ... (x + 4).
TENON_INLINE double plain_digamma(double x) {
  const bool below_1 = x < 1.0, below_3 = x < 3.0, below_4 = x < 4.0, near = x < 5.0;
  const double steps = below_1 ? -1.0 : (below_3 ? 0.0 : (below_4 ? 1.0 : 2.0));
  const double near_slope = below_4 ? steps : 2.0 * x - 3.0;
  const double near_p = below_1 ? x : (below_3 ? 1.0 : (x - 1.0) * (below_4 ? 1.0 : x - 2.0));
  double p = x, slope = 1.0;
  const auto next = [&](double k) {
    slope = slope * (x + k) + p;
    p *= x + k;
  };
  next(1), next(2), next(3), next(4);
  const double shift = (near ? near_slope : -slope) / (near ? near_p : p);
  const bool small = x < 10.0;
  const double z = small ? x + 5.0 : x;
  const double inverse = 1.0 / z, t = inverse * inverse;
  const double series = detail::polynomial(t, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240,
                                           1.0 / 132, -691.0 / 32760, 1.0 / 12);
  const double large = plain_log(z) - 0.5 * inverse - t * series;
  return (near ? detail::digamma_near_zero(x - steps) : large) + (small ? shift : 0.0);
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
  const bool zero = (argument == 1.0f) | (argument == 2.0f);
  return zero ? 0.0f : static_cast<float>(large - shift);
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
