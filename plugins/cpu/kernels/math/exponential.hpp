// SPDX-License-Identifier: Apache-2.0
// exp, log and their relatives for float. Polynomials are minimax fits of our own; the comments give
// their error relative to the result before rounding.
#pragma once

#include "math/bits.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;
inline constexpr float kLog2E = 1.44269504f;

// exp(r) - 1 for |r| <= ln(2)/2, 2^-28.
inline float expm1_small(float r) {
  return r + r * r * polynomial(r, 0.49999994f, 0.166665152f, 0.041668456f, 0.00836941879f,
                                0.00138131436f);
}

// x = n ln(2) + r.
struct ExpParts {
  float r;
  int32_t n;
};
inline ExpParts exp_parts(float x) {
  const float sum = x * kLog2E + kRound;
  const float n = sum - kRound;
  return {(x - n * kLn2High) - n * kLn2Low, rounded_bits(sum)};
}

// x = 2^e (1 + r) with 1 + r in [sqrt(1/2), sqrt(2)), for finite x > 0, denormals included.
struct LogParts {
  float r, e;
};
inline LogParts log_parts(float x) {
  const bool denormal = x < 1.17549435e-38f;
  const int32_t bits = bits_of(denormal ? x * 8388608.0f : x);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float m = float_of(bits - (exponent << 23));
  return {m - 1.0f, static_cast<float>(exponent) - (denormal ? 23.0f : 0.0f)};
}

// log(1 + r) - r, 2^-29.5.
inline float log_tail(float r) {
  const float square = r * r;
  return square * (r * polynomial(r, 0.333333135f, -0.249999836f, 0.200021878f, -0.166694835f,
                                  0.142171174f, -0.123774856f, 0.118887976f, -0.118467435f,
                                  0.0693730637f) -
                   0.5f);
}

// The values of every logarithm outside of the positive finite numbers.
inline float log_special(float x, float result) {
  const float outside = x == 0.0f ? -kInfinity : (x < 0.0f ? kNan : x);
  return (x > 0.0f) & (x < kInfinity) ? result : outside;
}

}  // namespace detail

inline float exp(float x) {
  const auto [r, n] = detail::exp_parts(detail::clamp(x, -104.0f, 89.0f));
  return detail::scale(1.0f + detail::expm1_small(r), n);
}

inline float exp2(float x) {
  x = detail::clamp(x, -151.0f, 129.0f);
  const float sum = x + detail::kRound;
  const float f = x - (sum - detail::kRound);  // exact
  const float r = f * 0.693147182f;
  // What the rounding of ln 2 and of the product lost, to first order.
  const float lost = f * -1.90465421e-9f;
  return detail::scale(1.0f + (detail::expm1_small(r) + lost), detail::rounded_bits(sum));
}

inline float expm1(float x) {
  const auto [r, n] = detail::exp_parts(detail::clamp(x, -20.0f, 89.0f));
  const float half_power = detail::float_of((n + 126) << 23);
  const float result = 2.0f * (half_power * detail::expm1_small(r) + (half_power - 0.5f));
  return x == 0.0f ? x : result;  // keeps -0
}

inline float log(float x) {
  const auto [r, e] = detail::log_parts(x);
  const float tail = detail::log_tail(r) + e * detail::kLn2Low;
  return detail::log_special(x, e * detail::kLn2High + (r + tail));
}

inline float log2(float x) {
  const auto [r, e] = detail::log_parts(x);
  const float tail = detail::log_tail(r);
  // (r + tail) * log2(e), with log2(e) = 1.4375 + 0.00519504; r cut to 12 bits, so that the large
  // product is exact.
  const float high = detail::float_of(detail::bits_of(r + tail) & ~0xfff);
  const float low = (r - high) + tail;
  const float small = low * detail::kLog2E + high * 0.00519504089f;
  return detail::log_special(x, e + (high * 1.4375f + small));
}

inline float log10(float x) {
  const auto [r, e] = detail::log_parts(x);
  const float tail = detail::log_tail(r);
  const float high = detail::float_of(detail::bits_of(r + tail) & ~0xfff);
  const float low = (r - high) + tail;
  // log10(e) = 0.43359375 + 0.000700731900, log10(2) = 0.30078125 + 0.000248745665
  const float small =
      low * 0.434294482f + high * 0.000700731900f + e * 0.000248745665f;
  return detail::log_special(x, e * 0.30078125f + (high * 0.43359375f + small));
}

inline float log1p(float x) {
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;  // log(u + d) = log(u) + d/u
  const float result = log(u) + lost;
  const float small = detail::absolute(x) < 5.9604645e-8f ? x : result;
  return (u == 0.0f) | (u == kInfinity) ? log(u) : small;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
