// SPDX-License-Identifier: Apache-2.0
// Powers and roots.
//
// pow(x, y) = 2^(y log2(x)): an error of the logarithm is multiplied by up to the range of
// exponents, so the logarithm is computed in two parts, about half as long again as the type.
#pragma once

#include "math/exponential.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// A number in two parts, the second about as small as the rounding of the first.
template <Float T>
struct TwoParts {
  T high, low;
};

// a + b as a rounded sum and its error, for |a| >= |b| or a == 0.
template <Float T>
TENON_INLINE TwoParts<T> quick_two_sum(T a, T b) {
  const T sum = a + b;
  return {sum, b - (sum - a)};
}

// The terms of the series below from s^5 on, over s^5; the logarithm errs by 2^-36 or 2^-64.8 of s.
TENON_INLINE float log2_tail(float t) {
  return polynomial(t, 0.57708287f, 0.41170624f, 0.3402207f);
}
TENON_INLINE double log2_tail(double t) {
  return polynomial(t, 0.577078016355618, 0.4121985830919542, 0.3205989022710365,
                    0.2623077013444299, 0.22198398780757278, 0.19125538916468526,
                    0.19038334315866395);
}
// log2((1 + s) / (1 - s)) = 2/ln(2) (s + s^3/3 + ...): the terms from s^3 on, t = s^2. `s_low` is
// what s lacks. The term of s^3 needs two parts: its rounding error alone, times the largest y, is
// 6 ulp.
template <Float T>
TENON_INLINE TwoParts<T> log2_series(T s, T s_low, T t) {
  constexpr TwoParts<T> factor =  // 2 / (3 ln(2))
      std::same_as<T, float>
          ? TwoParts<T>{0.961796701f, -7.02846181e-09f}
          : TwoParts<T>{static_cast<T>(0.9617966939259756), static_cast<T>(5.0577616648125907e-17)};
  const T t_low = product_error(s, s, t) + 2 * s * s_low;
  const T cube = s * t;
  const T cube_low = product_error(s, t, cube) + s * t_low + s_low * t;
  const T high = cube * factor.high;
  const T low = product_error(cube, factor.high, high) + cube * factor.low + cube_low * factor.high;
  return {high, low + cube * t * log2_tail(t)};
}

// log2(2^e (1 + r))
template <Float T>
TENON_INLINE TwoParts<T> log2_in_two(LogParts<T> parts) {
  constexpr bool single = std::same_as<T, float>;
  constexpr TwoParts<T> factor =  // 2 / ln(2)
      single
          ? TwoParts<T>{2.88539004f, 3.85192607e-8f}
          : TwoParts<T>{static_cast<T>(2.8853900817779268), static_cast<T>(4.0710547481862066e-17)};
  const auto [r, e] = parts;
  // s = r / (2 + r) in two parts.
  const auto divisor = quick_two_sum<T>(2, r);
  const T inverse = 1 / divisor.high;
  const T s = r * inverse;
  const T product = s * divisor.high;
  const T rest = (r - product) - product_error(s, divisor.high, product) - s * divisor.low;
  const T s_low = rest * inverse;
  const T t = s * s;
  const T high = s * factor.high;
  const T low = product_error(s, factor.high, high) + (s * factor.low + s_low * factor.high);
  const auto series = log2_series(s, s_low, t);
  const auto whole = quick_two_sum(e, high);
  const auto sum = quick_two_sum(whole.high, series.high);
  return quick_two_sum(sum.high, sum.low + (whole.low + (series.low + low)));
}

// 2^(high + low)
template <Float T>
TENON_INLINE T exp2_in_two(T high, T low) {
  constexpr T limit = Format<T>::kBias + 2, bottom = limit + Format<T>::kMantissaBits;
  low = absolute(high) < bottom ? low : 0;
  high = clamp(high, -bottom, limit);
  const T power = high + kPowerRound<T>;
  const T f = (high - (power - kPowerRound<T>)) + low;
  return scale(1 + expm1_small(f * static_cast<T>(0.6931471805599453)), power);
}

// Of numbers that are not negative.
template <Float T>
TENON_INLINE bool is_integer(T a) {
  constexpr T all_integer = static_cast<T>(uint64_t{1} << Format<T>::kMantissaBits);
  return (a >= all_integer) | ((a + all_integer) - all_integer == a);
}

// x^y by log2(x), for y log2(x) that is not NaN.
template <Float T>
TENON_INLINE T power_of_log(TwoParts<T> log, T y) {
  const T product = y * log.high;
  return exp2_in_two(product, product_error(y, log.high, product) + y * log.low);
}

}  // namespace detail

TENON_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
TENON_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
// x^(1/2), which is +0 of -0 and infinity of -infinity.
template <Float T>
TENON_INLINE T half_power(T x) {
  return x == -kInfinity<T> ? kInfinity<T> : sqrt(x + 0);
}
template <Float T>
TENON_INLINE T rsqrt(T x) {
  return 1 / sqrt(x);
}

template <Float T>
TENON_INLINE T pow(T x, T y) {
  const T a = detail::absolute(x), size = detail::absolute(y);
  auto log = detail::log2_in_two(detail::log_parts_of_any(a));
  const bool finite = (a > 0) & (a < kInfinity<T>);
  log.high = finite ? log.high : (a == 0 ? -kInfinity<T> : a);
  const T magnitude = detail::power_of_log(log, y);
  const bool whole = detail::is_integer(size);
  const bool odd = whole & !detail::is_integer(size * T(0.5));
  T result = (a == 1) & (y == y) ? T(1) : magnitude;  // (-1)^inf is 1
  result = detail::is_negative(x) & odd ? -result : result;
  result = (x < 0) & !whole & (a < kInfinity<T>) ? kNan<T> : result;
  return (y == 0) | (x == 1) ? T(1) : result;
}

// Newton's iteration for 1 / cbrt(m) from a polynomial, m in [sqrt(1/2), sqrt(2)); then one for
// cbrt.
template <Float T>
TENON_INLINE T cbrt(T x) {
  const T a = detail::absolute(x);
  const auto [r, e] = detail::log_parts_of_any(a);
  const T power = e * static_cast<T>(1.0 / 3) + detail::kPowerRound<T>;
  const T rest = e - 3 * (power - detail::kPowerRound<T>);  // -1, 0 or 1
  T m = 1 + r;
  T y = detail::polynomial(m, T(1.8745191893454598), T(-1.8618313912937396), T(1.5613059981983188),
                           T(-0.7023866413831713), T(0.12836943125382821));
  y *= rest < 0 ? T(1.2599210498948732) : (rest > 0 ? T(0.7937005259840998) : T(1));
  m *= rest < 0 ? T(0.5) : (rest > 0 ? T(2) : T(1));
  if constexpr (std::same_as<T, double>) {
    const T h = 1 - m * (y * y * y);
    y += y * h * (1.0 / 3 + h * (2.0 / 9));
  }
  T root = m * (y * y);
  root += (m - root * root * root) * (y * y) * static_cast<T>(1.0 / 3);
  root *= detail::power_of_two(power);
  return (a > 0) & (a < kInfinity<T>) ? detail::with_sign(root, x) : x;
}

TENON_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const float result = static_cast<float>(__builtin_sqrt(a * a + b * b));
  const bool infinite =
      (detail::absolute(x) == kInfinity<float>) | (detail::absolute(y) == kInfinity<float>);
  return infinite ? kInfinity<float> : result;
}
// Scaled, so that squares neither overflow nor vanish.
TENON_INLINE double hypot(double x, double y) {
  const double a = detail::absolute(x), b = detail::absolute(y);
  const double larger = a > b ? a : b;
  const double down = larger > 0x1p500 ? 0x1p-600 : (larger < 0x1p-500 ? 0x1p600 : 1.0);
  const double up = larger > 0x1p500 ? 0x1p600 : (larger < 0x1p-500 ? 0x1p-600 : 1.0);
  const double c = a * down, d = b * down;
  const double result = __builtin_sqrt(c * c + d * d) * up;
  return (a == kInfinity<double>) | (b == kInfinity<double>) ? kInfinity<double> : result;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
