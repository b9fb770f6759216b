// SPDX-License-Identifier: Apache-2.0
// The error functions and the normal distribution of registers: of floats by a polynomial for each
// of up to 32 intervals; of doubles in the forms of special.hpp, since tables of as many
// polynomials would take more permutations than one long polynomial has terms.
#pragma once

#include "math/lanes_exponential.hpp"
#include "math/lanes_piecewise.hpp"
#include "math/special.hpp"

#ifdef TENON_HAS_LANES
#include "math/lanes_error_table.hpp"

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

// erfc(a) exp(a^2) for a = factor b <= 10.4, without the rounding error of that product.
template <int K>
TENON_INLINE Lanes<K> erfc_scaled(const Lanes<K>& b, float factor) {
  const auto index = octave_part<3>(multiply_add(b, factor, 1.0f));
  const auto r = multiply_subtract(b, factor, look_up(kErfcScaled.centre, index));
  return piecewise(kErfcScaled.coefficient, index, r);
}

// normal_cdf(x) by normal_cdf(-|x|).
template <int K>
TENON_INLINE Lanes<K> normal_cdf_of_tail(const Lanes<K>& tail, const Lanes<K>& x) {
  return choose(sign_mask(x), tail, 1.0f - tail);
}
// Of any x, where exp(-x^2 / 2) is a factor of the tail.
template <int K>
TENON_INLINE Lanes<K> far_normal_cdf(const Lanes<K>& x) {
  const auto a = at_most(absolute(x), 14.5f);
  return normal_cdf_of_tail(gaussian(a, 0.5f) * (0.5f * erfc_scaled(a, 0.707106769f)), x);
}
// The multiple of 1/4 that is nearest to |x|, plus a number that leaves it the low bits.
template <int K>
TENON_INLINE Lanes<K> nearest_quarter(const Lanes<K>& x) {
  return absolute(x) + kRound<float> / 4;
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> erf(const Lanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 3.99f);
  const auto index = octave_part<2>(at_least(a, kErfFirst));
  return with_sign(piecewise(kErf.coefficient, index, a - look_up(kErf.centre, index)), x);
}
template <int K>
TENON_INLINE DoubleLanes<K> erf(const DoubleLanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 5.93);
  return with_sign(scaled_expm1(-a * polynomial_of(a, kErfSlope), 1.0), x);
}

template <int K>
TENON_INLINE Lanes<K> erfc(const Lanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 10.3f), tail = gaussian(a, 1.0f) * erfc_scaled(a, 1.0f);
  return choose(sign_mask(x), 2.0f - tail, tail);
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
TENON_INLINE Lanes<K> normal_cdf(const Lanes<K>& x) {
  using namespace detail;
  const auto tail =
      piecewise(kNormalTail, lane_bits(nearest_quarter(x)), above_nearest_multiple<2>(absolute(x)));
  return unless_beyond([](const auto& v) { return nearest_quarter(v); },
                       kRound<float> / 4 + kNormalTailLast, normal_cdf_of_tail(tail, x),
                       [](const auto& v) { return far_normal_cdf(v); }, x);
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
