// SPDX-License-Identifier: Apache-2.0
// Error function, gamma function and friends.
#pragma once

#include "math/exponential.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

inline float erf(float x) {
  const float a = detail::absolute(x);
  const float s = x * x;
  const float small = a * detail::polynomial(s, 1.12837911f, -0.37612626f, 0.112835854f,
                                             -0.026853811f, 0.00518832728f, -0.000801019196f,
                                             7.85385782e-05f);
  // log(erfc(a)) for a in [0.8, 4]; beyond, erf is 1 to the last bit.
  const float t = a > 4.0f ? 4.0f : a;
  const float log_erfc = detail::polynomial(
      t, 0.000255981053f, -1.12996626f, -0.632293284f, -0.10963136f, 0.0261618122f, -0.00466703624f,
      0.000576828315f, -4.36680821e-05f, 1.51550728e-06f);
  const float large = 1.0f - exp(log_erfc);
  return detail::with_sign(a < 1.0f ? small : (x != x ? x : large), x);
}

inline float erfc(float x) { return ::erfcf(x); }

namespace detail {

// psi(x), by recurrence to x >= 6 and the asymptotic series; reflection for negative x.
inline double digamma_double(double x) {
  constexpr double pi = 3.141592653589793;
  if (x == 0.0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double result = 0.0;
  if (x < 0.0) {
    const double fraction = x - std::floor(x);
    if (fraction == 0.0) return std::numeric_limits<double>::quiet_NaN();
    result = -pi / std::tan(pi * fraction);
    x = 1.0 - x;
  }
  while (x < 10.0) {
    result -= 1.0 / x;
    x += 1.0;
  }
  const double t = 1.0 / (x * x);
  const double series = polynomial(t, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132,
                                   -691.0 / 32760, 1.0 / 12);
  return result + std::log(x) - 0.5 / x - t * series;
}

}  // namespace detail

inline double digamma(double x) { return detail::digamma_double(x); }
inline float digamma(float x) { return static_cast<float>(detail::digamma_double(x)); }

// The reentrant forms: plain lgamma writes a global.
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
inline float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
