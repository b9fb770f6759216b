// SPDX-License-Identifier: Apache-2.0
// sin, cos, tan and their inverses for float, over the whole range of arguments.
#pragma once

#include "math/bits.hpp"
#include "math/reduction_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

inline constexpr float kHalfPiHigh = 1.57079637f;
inline constexpr float kHalfPiLow = -4.37113883e-8f;

// x = quadrant * pi/2 + r, |r| <= pi/4.
//
// An argument below 2^24 is reduced in double by a three-part pi/2. A larger one is m * 2^s with a
// 24-bit m, so that m * (2^s mod 2 pi) is congruent to it and just as small.
struct Reduced {
  float r;
  int32_t quadrant;
};
inline Reduced reduce_angle(float x) {
  const int32_t excess = ((bits_of(x) >> 23) & 0xff) - 150;
  const int32_t s = excess & ~(excess >> 31);  // max(excess, 0), which the compiler would branch on
  const double m = static_cast<double>(x * float_of((127 - s) << 23));
  const double high = m * kPowersModTwoPiHigh[s];
  const double low = m * kPowersModTwoPiLow[s];
  const double sum = high * 0.6366197723675814 + kRoundDouble;
  const double n = sum - kRoundDouble;
  double r = high - n * 1.570796325802803;
  r -= n * 9.920935739593517e-10;
  r += low - n * 5.721188726109832e-18;
  return {static_cast<float>(r), static_cast<int32_t>(rounded_bits(sum))};
}

// On [-pi/4, pi/4], 2^-36 and 2^-32.
inline float sin_small(float r) {
  const float s = r * r;
  return r + r * s * polynomial(s, -0.166666672f, 0.00833332911f, -0.000198391805f, 2.71658314e-6f);
}
inline float cos_small(float r) {
  const float s = r * r;
  return 1.0f + (s * s * polynomial(s, 0.041666653f, -0.0013887604f, 2.44570947e-05f) - 0.5f * s);
}

// sin(r + quadrant * pi/2)
inline float sin_reduced(float r, int32_t quadrant) {
  const float value = (quadrant & 1) != 0 ? cos_small(r) : sin_small(r);
  return float_of(bits_of(value) ^ ((quadrant & 2) << 30));
}

// atan on [0, 1], 2^-28; asin on [0, 1/2], 2^-31. Both take the argument and its square.
inline float atan_small(float z, float s) {
  return z + z * s * polynomial(s, -0.333333135f, 0.199988425f, -0.142663464f, 0.109585822f,
                                -0.0841065422f, 0.0579135418f, -0.0309912898f, 0.0107485f,
                                -0.00174370117f);
}
inline float asin_small(float z, float s) {
  return z + z * s * polynomial(s, 0.166666627f, 0.0750042945f, 0.0445236154f, 0.0317995064f,
                                0.014335054f, 0.0378063619f);
}

}  // namespace detail

inline float sin(float x) {
  const auto [r, quadrant] = detail::reduce_angle(x);
  return x == 0.0f ? x : detail::sin_reduced(r, quadrant);  // keeps -0
}

inline float cos(float x) {
  const auto [r, quadrant] = detail::reduce_angle(x);
  return detail::sin_reduced(r, quadrant + 1);
}

inline float tan(float x) {
  const auto [r, quadrant] = detail::reduce_angle(x);
  const float s = detail::sin_small(r), c = detail::cos_small(r);
  const bool odd = (quadrant & 1) != 0;
  const float result = (odd ? -c : s) / (odd ? s : c);
  return x == 0.0f ? x : result;
}

inline float atan(float x) {
  const float a = detail::absolute(x);
  const bool large = a > 1.0f;
  const float z = large ? 1.0f / a : a;
  const float small = detail::atan_small(z, z * z);
  const float result = large ? detail::kHalfPiHigh - (small - detail::kHalfPiLow) : small;
  return detail::with_sign(result, x);
}

inline float atan2(float y, float x) {
  const float ax = detail::absolute(x), ay = detail::absolute(y);
  const bool steep = ay > ax;
  const float low = steep ? ax : ay, high = steep ? ay : ax;
  const float quotient = low / high;
  // 0/0 counts as 0 and inf/inf as 1.
  const float z = high == 0.0f ? 0.0f : (low == kInfinity ? 1.0f : quotient);
  float r = detail::atan_small(z, z * z);
  r = steep ? detail::kHalfPiHigh - (r - detail::kHalfPiLow) : r;
  r = detail::bits_of(x) < 0 ? 2 * detail::kHalfPiHigh - (r - 2 * detail::kHalfPiLow) : r;
  return (x != x) | (y != y) ? kNan : detail::with_sign(r, y);
}

inline float asin(float x) {
  const float a = detail::absolute(x);
  const bool large = a > 0.5f;
  const float s = large ? 0.5f - 0.5f * a : a * a;  // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2))
  const float z = large ? __builtin_sqrtf(s) : a;
  const float small = detail::asin_small(z, s);
  const float result =
      large ? detail::kHalfPiHigh - (2.0f * small - detail::kHalfPiLow) : small;
  return detail::with_sign(result, x);
}

inline float acos(float x) {
  const float a = detail::absolute(x);
  const bool large = a > 0.5f;
  const float s = large ? 0.5f - 0.5f * a : a * a;
  const float z = large ? __builtin_sqrtf(s) : a;
  const float small = detail::asin_small(z, s);
  const float near_one = 2.0f * small;
  const float near_minus_one = 2 * detail::kHalfPiHigh - (near_one - 2 * detail::kHalfPiLow);
  const float middle =
      detail::kHalfPiHigh - (detail::with_sign(small, x) - detail::kHalfPiLow);
  return large ? (x < 0.0f ? near_minus_one : near_one) : middle;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
