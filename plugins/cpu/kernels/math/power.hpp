// SPDX-License-Identifier: Apache-2.0
// Powers and roots for float, through logarithm and exponential in double with about 50 good bits.
#pragma once

#include "math/bits.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// x = 2^exponent * m; log(m) = 2 atanh(s), s = (m - 1) / (m + 1). For normal numbers and 0, which is
// every float converted to double. 2^-57.
struct LogDouble {
  double log, exponent;
};
inline LogDouble log_double_parts(double x) {
  const int64_t bits = bits_of(x);
  // 32-bit arithmetic on the upper half: AVX2 has no 64-bit arithmetic shift.
  const int32_t upper = static_cast<int32_t>(bits >> 32);
  const int32_t exponent = (upper - 0x3fe6a09e) >> 20;
  const double m = double_of(bits - (static_cast<int64_t>(exponent) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double t = s * s;
  const double tail = polynomial(t, 0.666666666666671, 0.3999999999951919, 0.28571428729458953,
                                 0.22222199070388507, 0.18183572714320836, 0.15313132165746424,
                                 0.14810860042844598);
  return {2.0 * s + s * t * tail, static_cast<double>(exponent)};
}
inline double log_double_special(double x, double result) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double outside =
      x == 0.0 ? -infinity : (x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : x);
  return (x > 0.0) & (x < infinity) ? result : outside;
}
inline double log_double(double x) {
  const auto [log, exponent] = log_double_parts(x);
  return log_double_special(x, exponent * 0.6931471805599453 + log);
}
inline double log2_double(double x) {
  const auto [log, exponent] = log_double_parts(x);
  return log_double_special(x, exponent + log * 1.4426950408889634);
}

// 2^x rounded to float: 0 below the denormals, infinity above the range. 2^-46.
inline float exp2_double(double x) {
  x = x < -200.0 ? -200.0 : x;
  x = x > 200.0 ? 200.0 : x;
  const double sum = x + kRoundDouble;
  const double r = x - (sum - kRoundDouble);
  const double p = polynomial(r, 1.000000000000013, 0.6931471805598695, 0.24022650695645495,
                              0.055504108668745875, 0.009618129193078619, 0.0013333557611501917,
                              0.0001540343418648166, 1.5252986712905632e-05, 1.3259580690920466e-06,
                              1.0150249484762585e-07);
  return static_cast<float>(p * double_of((rounded_bits(sum) + 1023) << 52));
}

}  // namespace detail

inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }

inline float pow(float x, float y) {
  const float a = detail::absolute(x);
  const float magnitude =
      detail::exp2_double(static_cast<double>(y) * detail::log2_double(static_cast<double>(a)));
  const bool whole = __builtin_truncf(y) == y;
  const bool odd = whole & (__builtin_truncf(0.5f * y) * 2.0f != y);
  const bool negative = detail::bits_of(x) < 0;
  float result = (a == 1.0f) & (y == y) ? 1.0f : magnitude;  // (-1)^inf is 1
  result = negative & odd ? -result : result;
  result = (x < 0.0f) & !whole & (a < kInfinity) ? kNan : result;
  return (y == 0.0f) | (x == 1.0f) ? 1.0f : result;
}

inline float cbrt(float x) {
  const float a = detail::absolute(x);
  const float root = detail::exp2_double(detail::log2_double(a) * (1.0 / 3.0));
  return (a > 0.0f) & (a < kInfinity) ? detail::with_sign(root, x) : x;
}

inline float hypot(float x, float y) {
  const double a = x, b = y;
  const float result = static_cast<float>(__builtin_sqrt(a * a + b * b));
  return (detail::absolute(x) == kInfinity) | (detail::absolute(y) == kInfinity) ? kInfinity
                                                                                 : result;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
