// SPDX-License-Identifier: Apache-2.0
// Building blocks of the float functions: bit casts, polynomials, scaling by powers of two.
//
// Everything in math/ is written so that g++ turns a loop over it into vector code: no branches (both
// sides of a choice are computed), `&` and `|` between conditions, no calls into libm.
#pragma once

#include "isa.hpp"

#include <bit>
#include <cstdint>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA::math {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

namespace detail {

inline int32_t bits_of(float x) { return std::bit_cast<int32_t>(x); }
inline float float_of(int32_t bits) { return std::bit_cast<float>(bits); }
inline int64_t bits_of(double x) { return std::bit_cast<int64_t>(x); }
inline double double_of(int64_t bits) { return std::bit_cast<double>(bits); }

inline float absolute(float x) { return float_of(bits_of(x) & 0x7fffffff); }
inline float with_sign(float magnitude, float sign) {
  return float_of((bits_of(magnitude) & 0x7fffffff) | (bits_of(sign) & INT32_MIN));
}

// Horner's rule, coefficients from the constant term upwards.
template <class T>
inline T polynomial(T, T c0) {
  return c0;
}
template <class T, class... C>
inline T polynomial(T x, T c0, T c1, C... rest) {
  return polynomial(x, c1, rest...) * x + c0;
}

// Adding 1.5 * 2^23 rounds to the nearest integer, which then sits in the low bits of the sum.
inline constexpr float kRound = 12582912.0f;
inline int32_t rounded_bits(float sum) { return bits_of(sum) - bits_of(kRound); }
inline constexpr double kRoundDouble = 6755399441055744.0;  // 1.5 * 2^52
inline int64_t rounded_bits(double sum) { return bits_of(sum) - bits_of(kRoundDouble); }

// x * 2^n in two steps, so that neither factor overflows and denormal results round once.
inline float scale(float x, int32_t n) {
  const int32_t half = n >> 1;
  return x * float_of((half + 127) << 23) * float_of((n - half + 127) << 23);
}

// NaN stays NaN.
inline float clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

}  // namespace detail
}  // namespace tenon::cpu::TENON_CPU_ISA::math
