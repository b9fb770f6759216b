// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan, over the whole range of arguments.
//
// An argument x is reduced to x = quadrant * pi/2 + r, |r| <= pi/4, by subtracting multiples of
// pi/2 in several parts (Cody and Waite, "Software Manual for the Elementary Functions", 1980). How
// far that is exact depends on whether products may be fused with sums; beyond, see
// large_angle.hpp.
#pragma once

#include "math/bits.hpp"
#include "math/large_angle.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

template <Float T>
TENON_INLINE T quarter_turns(T x) {  // rounded; the low bits are the quadrant
  return x * static_cast<T>(0.6366197723675814) + kRound<T>;
}

#ifdef TENON_CPU_FMA
// Up to these, every step is rounded once, relative to its own result.
template <Float T>
inline constexpr T kAngleLimit = std::same_as<T, float> ? T(0x1p17) : T(0x1p30);

TENON_INLINE Angle<float> reduce_small(float x) {
  const float turns = quarter_turns(x), n = turns - kRound<float>;
  float r = __builtin_fmaf(n, -1.57079637f, x);
  r = __builtin_fmaf(n, 4.37113883e-8f, r);
  return {__builtin_fmaf(n, 1.71512451e-15f, r), bits_of(turns)};
}
TENON_INLINE Angle<double> reduce_small(double x) {
  const double turns = quarter_turns(x), n = turns - kRound<double>;
  double r = __builtin_fma(n, -1.5707963267948966, x);
  r = __builtin_fma(n, -6.123233995736766e-17, r);
  return {__builtin_fma(n, 1.4973849048591698e-33, r), bits_of(turns)};
}
#else
// The parts of pi/2 are so short that their products with n are exact.
template <Float T>
inline constexpr T kAngleLimit = std::same_as<T, float> ? T(0x1p24) : T(0x1p20);

TENON_INLINE Angle<float> reduce_small(float x) {
  const double wide = x;
  const double turns = quarter_turns(wide), n = turns - kRound<double>;
  double r = wide - n * 1.570796325802803;
  r -= n * 9.920935739593517e-10;
  r -= n * 5.721188726109832e-18;
  return {static_cast<float>(r), static_cast<uint32_t>(bits_of(turns))};
}
TENON_INLINE Angle<double> reduce_small(double x) {
  const double turns = quarter_turns(x), n = turns - kRound<double>;
  double r = x - n * 1.5707963267341256;
  r -= n * 6.077100506303966e-11;
  r -= n * 2.0222662487111665e-21;
  return {r - n * 8.4784276603689e-32, bits_of(turns)};
}
#endif

// On [-pi/4, pi/4], 2^-36 and 2^-32; for double 2^-58 and 2^-64.
TENON_INLINE float sin_small(float r) {
  const float s = r * r;
  return r + r * s * polynomial(s, -0.166666672f, 0.00833332911f, -0.000198391805f, 2.71658314e-6f);
}
TENON_INLINE double sin_small(double r) {
  const double s = r * r;
  return r + r * s *
                 polynomial(s, -0.16666666666666632, 0.008333333333322398, -0.00019841269829794068,
                            2.755731368696052e-06, -2.5050757310494216e-08, 1.589674742430494e-10);
}
TENON_INLINE float cos_small(float r) {
  const float s = r * r;
  return 1.0f + (s * s * polynomial(s, 0.041666653f, -0.0013887604f, 2.44570947e-05f) - 0.5f * s);
}
TENON_INLINE double cos_small(double r) {
  const double s = r * r;
  const double tail =
      s * s *
      polynomial(s, 0.041666666666666595, -0.0013888888888873017, 2.4801587288825957e-05,
                 -2.7557314171657323e-07, 2.0875699777398464e-09, -1.1358480101578055e-11);
  return 1.0 + (tail - 0.5 * s);
}

// sin(r + quadrant * pi/2)
template <Float T>
TENON_INLINE T sin_of(Angle<T> angle) {
  const T value = (angle.quadrant & 1) != 0 ? cos_small(angle.r) : sin_small(angle.r);
  return float_of(bits_of(value) ^ ((angle.quadrant & 2) << (sizeof(T) * 8 - 2)));
}
template <Float T>
TENON_INLINE T cos_of(Angle<T> angle) {
  return sin_of<T>({angle.r, angle.quadrant + 1});
}
template <Float T>
TENON_INLINE T tan_of(Angle<T> angle) {
  const T s = sin_small(angle.r), c = cos_small(angle.r);
  const bool odd = (angle.quadrant & 1) != 0;
  return (odd ? -c : s) / (odd ? s : c);
}

// False for NaN.
template <Float T>
TENON_INLINE bool is_small_angle(T x) {
  return absolute(x) <= kAngleLimit<T>;
}

// Of any argument. libm reduces large doubles; loops over arrays avoid the branch (arrays.hpp).
#define TENON_ANGLE_FUNCTION(NAME)                                           \
  TENON_INLINE float NAME##_of_any(float x) {                                \
    return NAME##_of(is_small_angle(x) ? reduce_small(x) : reduce_large(x)); \
  }                                                                          \
  TENON_INLINE double NAME##_of_any(double x) {                              \
    return is_small_angle(x) ? NAME##_of(reduce_small(x)) : std::NAME(x);    \
  }
TENON_ANGLE_FUNCTION(sin)
TENON_ANGLE_FUNCTION(cos)
TENON_ANGLE_FUNCTION(tan)
#undef TENON_ANGLE_FUNCTION

}  // namespace detail

template <Float T>
TENON_INLINE T sin(T x) {
  return x == 0 ? x : detail::sin_of_any(x);  // keeps -0
}
template <Float T>
TENON_INLINE T cos(T x) {
  return detail::cos_of_any(x);
}
template <Float T>
TENON_INLINE T tan(T x) {
  return x == 0 ? x : detail::tan_of_any(x);
}

// The same for |x| <= kAngleLimit.
template <Float T>
TENON_INLINE T plain_sin(T x) {
  return x == 0 ? x : detail::sin_of(detail::reduce_small(x));
}
template <Float T>
TENON_INLINE T plain_cos(T x) {
  return detail::cos_of(detail::reduce_small(x));
}
template <Float T>
TENON_INLINE T plain_tan(T x) {
  return x == 0 ? x : detail::tan_of(detail::reduce_small(x));
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
