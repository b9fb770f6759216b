// SPDX-License-Identifier: Apache-2.0
// atan, asin, acos and the angle of a point.
#pragma once

#include "math/bits.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// pi/2 in two parts.
template <Float T>
inline constexpr T kHalfPiHigh = static_cast<T>(1.5707963267948966);
template <Float T>
inline constexpr T kHalfPiLow = -4.37113883e-8f;
template <>
inline constexpr double kHalfPiLow<double> = 6.123233995736766e-17;

// atan(low / high), 0 <= low <= high. One division for both the quotient and the reduction of its
// range by atan(q) = pi/4 + atan((q - 1) / (q + 1)).
TENON_INLINE float atan_small(float low, float high) {
  const float z = low / high, s = z * z;  // 2^-28 on [0, 1]
  return z + z * s *
                 polynomial(s, -0.333333135f, 0.199988425f, -0.142663464f, 0.109585822f,
                            -0.0841065422f, 0.0579135418f, -0.0309912898f, 0.0107485f,
                            -0.00174370117f);
}
TENON_INLINE double atan_small(double low, double high) {
  const bool upper = low > 0.41421356237309503 * high;  // tan(pi/8)
  const double z = (upper ? low - high : low) / (upper ? low + high : high), s = z * z;
  const double series = polynomial(s, -0.333333333333332, 0.19999999999954043, -0.1428571428024432,
                                   0.11111110785918028, -0.09090897829869267, 0.07692061515937965,
                                   -0.06663118963586591, 0.058479982944074464, -0.05039796448526614,
                                   0.03807704583724002, -0.017920853441803417);  // 2^-59.5
  const double start = upper ? 0.7853981633974483 : 0.0, lost = upper ? 3.061616997868383e-17 : 0.0;
  return start + (z + multiply_add(z * s, series, lost));
}

// asin on [0, 1/2] of the argument and its square, 2^-31 and 2^-59.8.
TENON_INLINE float asin_small(float z, float s) {
  return z + z * s *
                 polynomial(s, 0.166666627f, 0.0750042945f, 0.0445236154f, 0.0317995064f,
                            0.014335054f, 0.0378063619f);
}
TENON_INLINE double asin_small(double z, double s) {
  return z + z * s *
                 polynomial(s, 0.16666666666666763, 0.07499999999970265, 0.04464285717511644,
                            0.03038194268385142, 0.02237221565323116, 0.01735160022439929,
                            0.013980959821642509, 0.011397789500416866, 0.010786452954607164,
                            0.003683329050303211, 0.02176280457298634, -0.021076317737098494,
                            0.032676286900558134);
}

// asin(a) for a <= 1/2; above, asin(sqrt((1 - a) / 2)), because asin(a) = pi/2 - 2 of that.
template <Float T>
TENON_INLINE T arc_sine(T a) {
  const bool large = a > T(0.5);
  const T half = T(0.5) - T(0.5) * a, half_root = root(half);
  return asin_small(large ? half_root : a, large ? half : a * a);
}

}  // namespace detail

template <Float T>
TENON_INLINE T atan(T x) {
  const T a = detail::absolute(x);
  const bool steep = a > 1;
  const T small = detail::atan_small(steep ? T(1) : a, steep ? a : T(1));
  const T result = steep ? detail::kHalfPiHigh<T> - (small - detail::kHalfPiLow<T>) : small;
  return detail::with_sign(result, x);
}

template <Float T>
TENON_INLINE T atan2(T y, T x) {
  constexpr T pi_high = 2 * detail::kHalfPiHigh<T>, pi_low = 2 * detail::kHalfPiLow<T>;
  const T ax = detail::absolute(x), ay = detail::absolute(y);
  const bool steep = ay > ax;
  const T low = steep ? ax : ay, high = steep ? ay : ax;
  // 0/0 counts as 0 and inf/inf as 1. Halves, whose sum does not overflow; small ones are kept
  // whole.
  const bool infinite = low == kInfinity<T>;
  const T factor = high > 1 ? T(0.5) : T(1);
  const T numerator = infinite ? T(1) : low * factor;
  const T denominator = infinite | (high == 0) ? T(1) : high * factor;
  T r = detail::atan_small(numerator, denominator);
  r = steep ? detail::kHalfPiHigh<T> - (r - detail::kHalfPiLow<T>) : r;
  r = detail::is_negative(x) ? pi_high - (r - pi_low) : r;
  return (x != x) | (y != y) ? kNan<T> : detail::with_sign(r, y);
}

template <Float T>
TENON_INLINE T asin(T x) {
  const T a = detail::absolute(x), small = detail::arc_sine(a);
  const bool large = a > T(0.5);
  const T result = large ? detail::kHalfPiHigh<T> - (2 * small - detail::kHalfPiLow<T>) : small;
  return detail::with_sign(result, x);
}

template <Float T>
TENON_INLINE T acos(T x) {
  constexpr T pi_high = 2 * detail::kHalfPiHigh<T>, pi_low = 2 * detail::kHalfPiLow<T>;
  const T a = detail::absolute(x), small = detail::arc_sine(a);
  const bool large = a > T(0.5);
  const T near_one = 2 * small;
  const T near_minus_one = pi_high - (near_one - pi_low);
  const T middle = detail::kHalfPiHigh<T> - (detail::with_sign(small, x) - detail::kHalfPiLow<T>);
  return large ? (x < 0 ? near_minus_one : near_one) : middle;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
