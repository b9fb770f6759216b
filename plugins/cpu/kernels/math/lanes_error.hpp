// SPDX-License-Identifier: Apache-2.0
// The normal distribution of registers, and the error functions of eight doubles, in the forms of
// special.hpp: tables of as many polynomials as in lanes_piecewise.hpp would take more permutations
// than one long polynomial has terms.
#pragma once

#include "math/lanes_exponential.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// exp(-factor a^2), where the rounding error of a^2 counts in the far tail; `factor` is a power of
// two.
template <class V, int K>
TENON_INLINE Pack<V, K> gaussian(const Pack<V, K>& a, ElementOf<V> factor) {
  const auto square = a * a;
  auto parts = exp_parts(square * -factor);
  parts.r = subtract_product(multiply_subtract(a, a, square), factor, parts.r);
  return exp_of_parts(parts);
}

// -log(erfc(a)) / a up to where erf is 1, 2^-53.6 of erf.
inline constexpr double kErfSlope[] = {
    1.1283791670955126,      0.6366197723676117,      0.10277260330005565,
    -0.0191284469629847,     -0.00020919523108815042, 0.001696210534761469,
    -0.0005901468329387341,  2.595526553425187e-05,   6.428988272069037e-05,
    -2.9323324101786672e-05, 2.795585018500586e-06,   3.564967850646423e-06,
    -2.430021951245348e-06,  8.538548467344878e-07,   -1.7416166546323194e-07,
    8.39692058036538e-09,    7.774978325898699e-09,   -3.151452387834743e-09,
    6.808129551691087e-10,   -9.544753071243836e-11,  8.718099955595177e-12,
    -4.753314607275949e-13,  1.179627518706606e-14};
// erfc(a) exp(a^2) (1 + 2a) of (a - 4) / (a + 4), 2^-59.5.
inline constexpr double kErfcScaled64[] = {
    1.2329951186255526,      -0.13962111684056253,    0.015379652102619622,
    0.06809705425469532,     -0.10103906603629771,    0.09373283499825637,
    -0.06633036581236021,    0.03716751553897576,     -0.016197734056206958,
    0.005031969964899847,    -0.0007577732992462071,  -0.0001992566256065345,
    0.00015062172346981211,  -2.4399441966983723e-05, -1.1222182921771328e-05,
    5.710196215644962e-06,   2.9416145464326976e-07,  -8.259657744655707e-07,
    7.410599581849587e-08,   1.1033249191658841e-07,  -1.7470276447383846e-08,
    -1.4070542091132818e-08, 1.6775057060854964e-09,  1.1982065597374228e-09};

// erfc(a + a_low) for a + a_low = x sqrt(factor), with exp(-factor x^2) and a quotient in two
// parts.
template <class Low, int K>
TENON_INLINE DoubleLanes<K> erfc_tail(const DoubleLanes<K>& a, const Low& a_low,
                                      const DoubleLanes<K>& x, double factor) {
  const auto series = polynomial_of(quotient(a - 4.0, a + 4.0), kErfcScaled64);
  const auto twice = a + a, divisor = twice + 1.0;
  const auto divisor_low = multiply_add(a_low, 2.0, twice - (divisor - 1.0));
  const auto inverse = near_inverse(divisor), near = series * inverse;
  const auto high = subtract_product(inverse, multiply_subtract(divisor, near, series), near);
  const auto lost = subtract_product(high, divisor_low, subtract_product(high, divisor, series));
  const auto power = gaussian(x, factor);
  return multiply_add(power, high, power * (lost * inverse));
}

// erf(z) / z of the square for |z| <= 1/2, 2^-57.8.
inline constexpr double kErfSeries[] = {
    1.1283791670955126,    -0.37612638903183465,   0.11283791670924813,
    -0.026866170632715743, 0.00522397737032631,    -0.000854829752442909,
    0.0001205332431647971, -1.484558382838669e-05, 1.472321638969146e-06};

}  // namespace detail

template <int K>
TENON_INLINE DoubleLanes<K> erf(const DoubleLanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 5.93);
  return with_sign(scaled_expm1(-a * polynomial_of(a, kErfSlope), 1.0), x);
}

// Next to 0 the quotient in the tail would lose digits.
template <int K>
TENON_INLINE DoubleLanes<K> erfc(const DoubleLanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 27.3), tail = erfc_tail(a, 0.0, a, 1.0);
  const auto small = subtract_product(x, horner(x * x, kErfSeries), spread(1.0, x));
  return choose(is_less(a, 0.5), small, choose(sign_mask(x), 2.0 - tail, tail));
}

template <int K>
TENON_INLINE DoubleLanes<K> normal_cdf(const DoubleLanes<K>& x) {
  using namespace detail;
  constexpr double factor = 0.7071067811865476, factor_low = -4.833646656726457e-17;
  const auto a = at_most(absolute(x), 38.6), z = a * factor;
  const auto z_low = multiply_add(a, factor_low, multiply_subtract(a, factor, z));
  const auto tail = 0.5 * erfc_tail(z, z_low, a, 0.5);
  const auto erf = with_sign(z * horner(z * z, kErfSeries), x);
  const auto small = multiply_add(erf, 0.5, 0.5);
  return choose(is_less(z, 0.25), small, choose(sign_mask(x), tail, 1.0 - tail));
}

template <class V, int K>
TENON_INLINE Pack<V, K> normal_pdf(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  constexpr T limit = std::same_as<T, float> ? T(14.5) : T(39);
  const auto a = detail::at_most(detail::absolute(x), limit);
  return detail::gaussian(a, T(0.5)) * static_cast<T>(0.3989422804014327);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
