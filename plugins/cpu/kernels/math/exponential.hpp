// SPDX-License-Identifier: Apache-2.0
// exp, log and their relatives. Polynomials are minimax fits of our own; the comments give their
// error relative to the result before rounding.
#pragma once

#include "math/bits.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
template <Float T>
inline constexpr T kLn2High = 0.693359375f;
template <Float T>
inline constexpr T kLn2Low = -2.12194440e-4f;
template <>
inline constexpr double kLn2High<double> = 0.6931471805592082;
template <>
inline constexpr double kLn2Low<double> = 7.371002565167799e-13;
template <Float T>
inline constexpr T kLog2E = static_cast<T>(1.4426950408889634);

// exp(r) - 1 for |r| <= ln(2)/2, 2^-28.
TENON_INLINE float expm1_small(float r) {
  return r +
         r * r *
             polynomial(r, 0.49999994f, 0.166665152f, 0.041668456f, 0.00836941879f, 0.00138131436f);
}
// 2^-57.9
TENON_INLINE double expm1_small(double r) {
  return r + r * r *
                 polynomial(r, 0.5000000000000006, 0.16666666666666685, 0.04166666666657363,
                            0.008333333333314518, 0.0013888888932379428, 0.00019841269903148978,
                            2.4801504444629062e-05, 2.7557227867106585e-06, 2.762632713708709e-07,
                            2.5114497010057873e-08);
}

// x = n ln(2) + r.
template <Float T>
struct ExpParts {
  T r, power;  // 2^n for scale()
};
template <Float T>
TENON_INLINE ExpParts<T> exp_parts(T x) {
  const T power = x * kLog2E<T> + kPowerRound<T>;
  const T n = power - kPowerRound<T>;
  return {(x - n * kLn2High<T>)-n * kLn2Low<T>, power};
}

// The arguments beyond which exp is 0 or infinity.
template <Float T>
inline constexpr T kExpLow = -104.0f;
template <>
inline constexpr double kExpLow<double> = -746.0;
template <Float T>
inline constexpr T kExpHigh = 89.0f;
template <>
inline constexpr double kExpHigh<double> = 710.0;

// exp(x) for x <= 0
template <Float T>
TENON_INLINE T exp_of_negative(T x) {
  const auto [r, power] = exp_parts(at_least(x, kExpLow<T>));
  return scale(1 + expm1_small(r), power);
}

// (exp(x) - 1) / 2^`halvings`, for results in the range of T.
template <Float T>
TENON_INLINE T expm1_scaled(T x, int halvings) {
  const auto [r, power] = exp_parts(x);
  const T part = power_of_two(power, halvings);
  return part * expm1_small(r) + (part - static_cast<T>(1.0 / (1 << halvings)));
}

// x = 2^e (1 + r) with 1 + r in [sqrt(1/2), sqrt(2)), for normal x > 0.
template <Float T>
struct LogParts {
  T r, e;
};
template <Float T>
inline constexpr Bits<T> kSqrtHalfBits = 0x3f3504f3;
template <>
inline constexpr uint64_t kSqrtHalfBits<double> = 0x3fe6a09e667f3bcd;
template <Float T>
TENON_INLINE LogParts<T> log_parts(T x) {
  constexpr int shift = Format<T>::kMantissaBits;
  constexpr Bits<T> offset = Format<T>::kBias + 1;
  constexpr T whole = static_cast<T>(Bits<T>{1} << shift);
  const Bits<T> bits = bits_of(x);
  const Bits<T> exponent = (bits + ((offset << shift) - kSqrtHalfBits<T>)) >> shift;
  const T m = float_of(bits - (exponent << shift) + (offset << shift));
  // The exponent as the low bits of a float, which needs no conversion of 64-bit integers.
  return {m - 1, float_of(bits_of(whole) | exponent) - (whole + offset)};
}
// The same, denormals included.
template <Float T>
TENON_INLINE LogParts<T> log_parts_of_any(T x) {
  constexpr T up = static_cast<T>(uint64_t{1} << (Format<T>::kMantissaBits + 1));
  const bool denormal = x < std::numeric_limits<T>::min();
  const auto [r, e] = log_parts(denormal ? x * up : x);
  return {r, denormal ? e - (Format<T>::kMantissaBits + 1) : e};
}

// log(1 + r) - r, 2^-29.5.
TENON_INLINE float log_tail(float r) {
  const float square = r * r;
  return square *
         (r * polynomial(r, 0.333333135f, -0.249999836f, 0.200021878f, -0.166694835f, 0.142171174f,
                         -0.123774856f, 0.118887976f, -0.118467435f, 0.0693730637f) -
          0.5f);
}
// By log(1 + r) = 2 atanh(r / (2 + r)), 2^-58.5.
TENON_INLINE double log_tail(double r) {
  const double s = r / (2.0 + r), t = s * s, half_square = 0.5 * r * r;
  const double series = t * polynomial(t, 0.6666666666666734, 0.39999999999414326,
                                       0.2857142874247378, 0.22222198563612525, 0.1818356485865159,
                                       0.15314036081042312, 0.14796102583490076);
  return s * (half_square + series) - half_square;
}

// The values of every logarithm outside of the positive finite numbers.
template <Float T>
TENON_INLINE T log_special(T x, T result) {
  const T outside = x == 0 ? -kInfinity<T> : (x < 0 ? kNan<T> : x);
  return (x > 0) & (x < kInfinity<T>) ? result : outside;
}

// log(2^e (1 + r)) + more, where `more` is small.
template <Float T>
TENON_INLINE T log_of_parts(LogParts<T> parts, T more) {
  const T tail = log_tail(parts.r) + (parts.e * kLn2Low<T> + more);
  return parts.e * kLn2High<T> + (parts.r + tail);
}

}  // namespace detail

template <Float T>
TENON_INLINE T exp(T x) {
  const auto [r, power] =
      detail::exp_parts(detail::clamp(x, detail::kExpLow<T>, detail::kExpHigh<T>));
  return detail::scale(1 + detail::expm1_small(r), power);
}

// The same for |x| <= kExpPlain, where neither argument nor result needs care.
template <Float T>
inline constexpr T kExpPlain = std::same_as<T, float> ? 87 : 708;
template <Float T>
TENON_INLINE T plain_exp(T x) {
  const auto [r, power] = detail::exp_parts(x);
  return (1 + detail::expm1_small(r)) * detail::power_of_two(power);
}

template <Float T>
TENON_INLINE T exp2(T x) {
  constexpr T limit = detail::Format<T>::kBias + 2, low = limit + detail::Format<T>::kMantissaBits;
  x = detail::clamp(x, -low, limit);
  const T power = x + detail::kPowerRound<T>;
  const T f = x - (power - detail::kPowerRound<T>);  // exact
  const T r = f * static_cast<T>(0.6931471805599453);
  return detail::scale(1 + detail::expm1_small(r), power);
}

// The same for |x| <= kExp2Plain.
template <Float T>
inline constexpr T kExp2Plain = detail::Format<T>::kBias - 1;
template <Float T>
TENON_INLINE T plain_exp2(T x) {
  const T power = x + detail::kPowerRound<T>;
  const T r = (x - (power - detail::kPowerRound<T>)) * static_cast<T>(0.6931471805599453);
  return (1 + detail::expm1_small(r)) * detail::power_of_two(power);
}

template <Float T>
TENON_INLINE T expm1(T x) {
  constexpr T low = std::same_as<T, float> ? -20 : -40;
  const T result = 2 * detail::expm1_scaled(detail::clamp(x, low, detail::kExpHigh<T>), 1);
  return detail::with_sign(result, x);
}

namespace detail {

template <Float T>
TENON_INLINE T log2_of_parts(LogParts<T> parts) {
  return parts.e + (parts.r + log_tail(parts.r)) * kLog2E<T>;
}

template <Float T>
TENON_INLINE T log10_of_parts(LogParts<T> parts) {
  // log10(2) in two parts; the product of the first with an exponent is exact.
  constexpr T high = std::same_as<T, float> ? T(0.30078125) : T(0.30102999566361177);
  constexpr T low = std::same_as<T, float> ? T(0.000248745665) : T(3.694239077158931e-13);
  const T fraction = (parts.r + log_tail(parts.r)) * static_cast<T>(0.4342944819032518);
  return parts.e * high + multiply_add(parts.e, low, fraction);
}

}  // namespace detail

template <Float T>
TENON_INLINE T log(T x) {
  return detail::log_special(x, detail::log_of_parts(detail::log_parts_of_any(x), T(0)));
}
template <Float T>
TENON_INLINE T log2(T x) {
  return detail::log_special(x, detail::log2_of_parts(detail::log_parts_of_any(x)));
}
template <Float T>
TENON_INLINE T log10(T x) {
  return detail::log_special(x, detail::log10_of_parts(detail::log_parts_of_any(x)));
}

// The same where x is neither zero, denormal, negative, infinite nor NaN.
template <Float T>
TENON_INLINE bool is_positive_normal(T x) {
  return (x >= std::numeric_limits<T>::min()) & (x < kInfinity<T>);
}
template <Float T>
TENON_INLINE T plain_log(T x) {
  return detail::log_of_parts(detail::log_parts(x), T(0));
}
template <Float T>
TENON_INLINE T plain_log2(T x) {
  return detail::log2_of_parts(detail::log_parts(x));
}
template <Float T>
TENON_INLINE T plain_log10(T x) {
  return detail::log10_of_parts(detail::log_parts(x));
}

template <Float T>
TENON_INLINE T log1p(T x) {
  const T u = 1 + x;
  const T lost = (x - (u - 1)) / u;  // log(u + d) = log(u) + d/u
  const T result = detail::log_special(u, detail::log_of_parts(detail::log_parts(u), lost));
  const bool tiny = detail::absolute(x) < std::numeric_limits<T>::epsilon() / 4;
  return tiny ? x : result;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
