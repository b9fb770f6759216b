// SPDX-License-Identifier: Apache-2.0
// The error function and its complement.
#pragma once

#include "math/exponential.hpp"

#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// erf(a) / a of the square, on [0, 1/2], 2^-29.5 and 2^-57.8.
TENON_INLINE float erf_series(float s) {
  return polynomial(s, 1.12837911f, -0.376126081f, 0.112828225f, -0.0267571844f, 0.00471799029f);
}
inline constexpr double kErfSeries[] = {
    1.1283791670955126,    -0.37612638903183465,   0.11283791670924813,
    -0.026866170632715743, 0.00522397737032631,    -0.000854829752442909,
    0.0001205332431647971, -1.484558382838669e-05, 1.472321638969146e-06};
TENON_INLINE double erf_series(double s) { return polynomial_of(s, kErfSeries); }

// erf(a) = 1 - 2^(-a p(a)) for a up to where erf is 1 to the last bit: p is -log2(erfc(a)) / a,
// whose polynomial has 2^-27.9 of erf. Fused, neither the exponent nor its fraction is rounded
// twice.
TENON_INLINE float erf_positive(float a) {
  a = at_most(a, 3.93f);
  const float slope =
      polynomial(a, 1.62790704f, 0.918447614f, 0.148277059f, -0.0276320335f, -0.000231379119f,
                 0.00240497245f, -0.000912960793f, 0.000169710183f, -1.33526337e-05f);
  const float power = multiply_add(-a, slope, kPowerRound<float>);
  const float f = multiply_add(-a, slope, kPowerRound<float> - power);
  const float part = power_of_two(power);
  // (2^f - 1) / f, 2^-26.5
  const float series = polynomial(f, 0.693147182f, 0.240226492f, 0.0555035733f, 0.00961823575f,
                                  0.00133908307f, 0.000154044406f);
  return multiply_add(-part, f * series, 1.0f - part);
}
// The same to the base e; -log(erfc(a)) / a has 2^-53.6 of erf.
inline constexpr double kErfSlope[] = {
    1.1283791670955126,      0.6366197723676117,      0.10277260330005565,
    -0.0191284469629847,     -0.00020919523108815042, 0.001696210534761469,
    -0.0005901468329387341,  2.595526553425187e-05,   6.428988272069037e-05,
    -2.9323324101786672e-05, 2.795585018500586e-06,   3.564967850646423e-06,
    -2.430021951245348e-06,  8.538548467344878e-07,   -1.7416166546323194e-07,
    8.39692058036538e-09,    7.774978325898699e-09,   -3.151452387834743e-09,
    6.808129551691087e-10,   -9.544753071243836e-11,  8.718099955595177e-12,
    -4.753314607275949e-13,  1.179627518706606e-14};
TENON_INLINE double erf_positive(double a) {
  a = at_most(a, 5.93);
  const double rest = -expm1_scaled(-a * polynomial_of(a, kErfSlope), 0);
  // Where expm1 is not near -1, its error and that of its argument would add up to 4 ulp.
  return a < 0.5 ? a * erf_series(a * a) : rest;
}

// erfc(a) exp(a^2) (1 + 2a) for t = (a - K) / (a + K), a form of Shepherd and Laframboise,
// "Chebyshev Approximation of (1 + 2x) exp(x^2) erfc x" (1981). K = 3, 2^-29.
template <Float T>
inline constexpr T kErfcCentre = std::same_as<T, float> ? 3 : 4;
TENON_INLINE float erfc_scaled(float t) {
  return polynomial(t, 1.25300801f, -0.135621145f, -0.047562398f, 0.12964642f, -0.119270973f,
                    0.0682957694f, -0.0237975307f, 0.00256738020f, 0.00200181268f, -0.000777585839f,
                    -0.000268129021f);
}
// K = 4, 2^-59.5
inline constexpr double kErfcScaled64[] = {
    1.2329951186255526,      -0.13962111684056253,    0.015379652102619622,
    0.06809705425469532,     -0.10103906603629771,    0.09373283499825637,
    -0.06633036581236021,    0.03716751553897576,     -0.016197734056206958,
    0.005031969964899847,    -0.0007577732992462071,  -0.0001992566256065345,
    0.00015062172346981211,  -2.4399441966983723e-05, -1.1222182921771328e-05,
    5.710196215644962e-06,   2.9416145464326976e-07,  -8.259657744655707e-07,
    7.410599581849587e-08,   1.1033249191658841e-07,  -1.7470276447383846e-08,
    -1.4070542091132818e-08, 1.6775057060854964e-09,  1.1982065597374228e-09};
TENON_INLINE double erfc_scaled(double t) { return polynomial_of(t, kErfcScaled64); }

// erfc(a) exp(a^2 - factor x^2) for a = sqrt(factor) x: squares of a and x lose digits, which count
// in the far tail, but factor is a power of two.
template <Float T>
TENON_INLINE T erfc_tail(T a, T x, T factor) {
  constexpr T centre = kErfcCentre<T>;
  // What exp is multiplied by, in two parts for the same reason.
  const T series = erfc_scaled((a - centre) / (a + centre));
  const T divisor = 1 + 2 * a, divisor_low = 2 * a - (divisor - 1), inverse = 1 / divisor;
  const T high = series * inverse, product = high * divisor;
  const T error = product_error(high, divisor, product) + high * divisor_low;
  const T low = ((series - product) - error) * inverse;
  const T square = x * x, lost = product_error(x, x, square);
  const auto [r, power] = exp_parts(-factor * square);
  return scale(high + (high * expm1_small(r - factor * lost) + low), power);
}

}  // namespace detail

template <Float T>
TENON_INLINE T erf(T x) {
  return detail::with_sign(detail::erf_positive(detail::absolute(x)), x);
}

template <Float T>
TENON_INLINE T erfc(T x) {
  constexpr T limit = std::same_as<T, float> ? T(10.1) : T(27.3);
  const T a = detail::at_most(detail::absolute(x), limit);
  const T tail = detail::erfc_tail(a, a, T(1));
  const T result = x < 0 ? 2 - tail : tail;
  return a < T(0.5) ? 1 - x * detail::erf_series(x * x) : result;
}

// The distribution function of the normal distribution, erfc(-x / sqrt(2)) / 2.
template <Float T>
TENON_INLINE T normal_cdf(T x) {
  constexpr T limit = std::same_as<T, float> ? T(14.5) : T(38.6);
  const T a = detail::at_most(detail::absolute(x), limit);
  const T z = x * static_cast<T>(0.7071067811865476), small = detail::erf_series(z * z);
  const T tail = T(0.5) * detail::erfc_tail(a * static_cast<T>(0.7071067811865476), a, T(0.5));
  const T result = x < 0 ? tail : 1 - tail;
  return detail::absolute(z) < T(0.25) ? T(0.5) + T(0.5) * z * small : result;
}

// Its density, exp(-x^2 / 2) / sqrt(2 pi). What rounding takes off the square counts far out.
template <Float T>
TENON_INLINE T normal_pdf(T x) {
  constexpr T limit = std::same_as<T, float> ? T(14.5) : T(39);
  constexpr T factor = static_cast<T>(0.3989422804014327);
  const T a = detail::at_most(detail::absolute(x), limit), square = a * a;
  const T half_lost = T(0.5) * detail::product_error(a, a, square);
  const auto [r, power] = detail::exp_parts(T(-0.5) * square);
  return detail::scale(factor + factor * detail::expm1_small(r - half_lost), power);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
