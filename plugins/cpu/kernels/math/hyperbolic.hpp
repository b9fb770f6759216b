// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions, their inverses and the logistic function for float.
#pragma once

#include "math/exponential.hpp"
#include "math/power.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

inline float tanh(float x) {
  const float a = detail::absolute(x);
  const float s = x * x;
  const float small = a + a * s * detail::polynomial(s, -0.333332926f, 0.133315414f, -0.0537386239f,
                                                     0.0206159968f, -0.00566477561f);
  const float large = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return detail::with_sign(a < 0.625f ? small : large, x);
}

// 1 / (1 + exp(-x)), without overflow and with full precision in the left tail.
inline float sigmoid(float x) {
  const float e = exp(-detail::absolute(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

inline float sinh(float x) {
  const float a = detail::absolute(x);
  const float t = expm1(a);
  const float small = 0.5f * (t + t / (t + 1.0f));
  const float root = exp(0.5f * a);
  return detail::with_sign(a > 20.0f ? 0.5f * root * root : small, x);
}

inline float cosh(float x) {
  const float a = detail::absolute(x);
  const float e = exp(a);
  const float root = exp(0.5f * a);
  return a > 20.0f ? 0.5f * root * root : 0.5f * (e + 1.0f / e);
}

// The inverses go through a double logarithm; near zero two terms of the series are exact enough.
inline float asinh(float x) {
  const double a = detail::absolute(x);
  const float large = static_cast<float>(detail::log_double(a + __builtin_sqrt(a * a + 1.0)));
  const float small = detail::absolute(x) - detail::absolute(x) * (x * x) * 0.166666667f;
  return detail::with_sign(a < 1e-3 ? small : large, x);
}

inline float acosh(float x) {
  const double a = x;
  const double large = detail::log_double(a + __builtin_sqrt((a - 1.0) * (a + 1.0)));
  return x < 1.0f ? kNan : static_cast<float>(large);
}

inline float atanh(float x) {
  const double a = detail::absolute(x);
  const float large = static_cast<float>(0.5 * detail::log_double((1.0 + a) / (1.0 - a)));
  const float small = detail::absolute(x) + detail::absolute(x) * (x * x) * 0.333333333f;
  return detail::with_sign(a < 1e-3 ? small : large, x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
