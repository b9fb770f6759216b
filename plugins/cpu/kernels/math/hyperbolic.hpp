// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions, their inverses and the logistic function.
#pragma once

#include "math/exponential.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// log(1 + y), or log(2 x) where x is so large that y may have overflowed; y >= 0 or NaN.
template <Float T>
TENON_INLINE T log1p_or_log2x(T y, bool huge, T x) {
  const T u = huge ? x : 1 + y;
  const T lost = huge ? T(0) : (y - (u - 1)) / u;
  auto parts = log_parts(u);
  parts.e += huge ? T(1) : T(0);
  return log_special(u, log_of_parts(parts, lost));
}
template <Float T>
inline constexpr T kHuge = std::same_as<T, float> ? T(1e6) : T(1e15);
// Beyond it sinh and cosh are infinite.
template <Float T>
inline constexpr T kHyperbolicLimit = std::same_as<T, float> ? T(89.5) : T(710.6);

}  // namespace detail

// With t = exp(2x) - 1, t / (t + 2).
template <Float T>
TENON_INLINE T tanh(T x) {
  constexpr T limit = std::same_as<T, float> ? 20 : 44;
  const T twice = detail::at_most(2 * detail::absolute(x), limit);
  const T half = detail::expm1_scaled(twice, 1);
  return detail::with_sign(half / (half + 1), x);
}

// 1 / (1 + exp(-x)), without overflow and with full precision in the left tail.
template <Float T>
TENON_INLINE T sigmoid(T x) {
  const T e = detail::exp_of_negative(-detail::absolute(x));
  return (x < 0 ? e : T(1)) / (1 + e);
}

// With t = (exp(a) - 1) / 2, t + t / (2t + 1).
template <Float T>
TENON_INLINE T sinh(T x) {
  const T a = detail::at_most(detail::absolute(x), detail::kHyperbolicLimit<T>);
  const T quarter = detail::expm1_scaled(a, 2);
  const T bounded = detail::at_most(quarter, detail::kHuge<T> * detail::kHuge<T>);
  const T result = 2 * quarter + bounded / (2 * bounded + T(0.5));
  return detail::with_sign(a < std::numeric_limits<T>::epsilon() ? a : result, x);
}

// With e = exp(a) / 2, e + 1 / (4e).
template <Float T>
TENON_INLINE T cosh(T x) {
  const T a = detail::at_most(detail::absolute(x), detail::kHyperbolicLimit<T>);
  const auto [r, power] = detail::exp_parts(a);
  const T quarter = detail::power_of_two(power, 2) * (1 + detail::expm1_small(r));
  return 2 * quarter + T(0.125) / quarter;
}

template <Float T>
TENON_INLINE T asinh(T x) {
  const T a = detail::absolute(x);
  const T y = a + a * a / (1 + detail::root(1 + a * a));
  const T result = detail::log1p_or_log2x(y, a > detail::kHuge<T>, a);
  return detail::with_sign(a < std::numeric_limits<T>::epsilon() ? a : result, x);
}

template <Float T>
TENON_INLINE T acosh(T x) {
  const T t = x - 1;
  const T y = t + detail::root(t * (x + 1));
  const T result = detail::log1p_or_log2x(y, x > detail::kHuge<T>, x);
  return x < 1 ? kNan<T> : result;
}

template <Float T>
TENON_INLINE T atanh(T x) {
  const T a = detail::absolute(x);
  return detail::with_sign(T(0.5) * log1p(2 * a / (1 - a)), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
