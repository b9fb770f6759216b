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
TENON_INLINE ExpLanes<Pack<V, K>> gaussian_parts(const Pack<V, K>& a, ElementOf<V> factor) {
  const auto square = a * a;
  auto parts = exp_parts(square * -factor);
  parts.r = subtract_product(multiply_subtract(a, a, square), factor, parts.r);
  return parts;
}
template <class V, int K>
TENON_INLINE Pack<V, K> gaussian(const Pack<V, K>& a, ElementOf<V> factor) {
  return exp_of_parts(gaussian_parts(a, factor));
}

// erfc(a) exp(a^2) for a = factor b, up to where erfc is 0, without the rounding error of that
// product.
template <class V, int K>
TENON_INLINE Pack<V, K> erfc_scaled(const Pack<V, K>& b, ElementOf<V> factor) {
  using T = ElementOf<V>;
  constexpr auto& table = kErfcScaled<T>;
  constexpr int bits = kIsSingle<V> ? 3 : 2;
  constexpr T stretch = kIsSingle<V> ? T(1) : T(0.549);
  const auto index = octave_part<bits>(multiply_add(b, stretch * factor, T(1)));
  const auto r = multiply_subtract(b, factor, look_up(table.centre, index));
  return piecewise(table.coefficient, index, r);
}

// normal_cdf(x) by normal_cdf(-|x|).
template <class V, int K>
TENON_INLINE Pack<V, K> normal_cdf_of_tail(const Pack<V, K>& tail, const Pack<V, K>& x) {
  return choose(sign_mask(x), tail, ElementOf<V>(1) - tail);
}
// Where the density of the normal distribution is 0.
template <Float T>
inline constexpr T kNormalEnd = std::same_as<T, float> ? T(14.5) : T(38.6);
// Of any x, where exp(-x^2 / 2) is a factor of the tail. Numbers that are 2^64 times as large are
// no denormals, of which several products would take long.
template <class V, int K>
TENON_INLINE Pack<V, K> far_normal_cdf(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto a = at_most(absolute(x), kNormalEnd<T>);
  const auto half_scaled = T(0.5) * erfc_scaled(a, static_cast<T>(0.7071067811865476));
  auto parts = gaussian_parts(a, T(0.5));
  if constexpr (kIsSingle<V>) {
    parts.power = parts.power + 64.0f;
    return normal_cdf_of_tail(lowered(exp_of_parts(parts) * half_scaled), x);
  } else {
    return normal_cdf_of_tail(exp_of_parts(parts) * half_scaled, x);
  }
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

template <class V, int K>
TENON_INLINE Pack<V, K> erfc(const Pack<V, K>& x) {
  using namespace detail;
  using T = ElementOf<V>;
  const auto a = at_most(absolute(x), kIsSingle<V> ? T(10.3) : T(27.3));
  const auto tail = gaussian(a, T(1)) * erfc_scaled(a, T(1));
  return choose(sign_mask(x), T(2) - tail, tail);
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
  return detail::far_normal_cdf(x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> normal_pdf(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  const auto a = detail::at_most(detail::absolute(x), detail::kNormalEnd<T>);
  return detail::gaussian(a, T(0.5)) * static_cast<T>(0.3989422804014327);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
