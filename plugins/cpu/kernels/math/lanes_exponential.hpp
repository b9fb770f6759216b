// SPDX-License-Identifier: Apache-2.0
// exp, exp2, expm1 and the logistic function of sixteen floats.
//
// x = k ln(2)/32 + r, and exp(x) = 2^(k/32) exp(r) with a table of the fractions: Tang,
// "Table-driven implementation of the exponential function in IEEE floating-point arithmetic"
// (1989).
#pragma once

#include "math/lanes.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// 2^(i/32)
alignas(64) inline constexpr float kExp2Fractions[32] = {
    1.0f,        1.0218972f,  1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f,  1.13878858f,
    1.1637249f,  1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f,
    1.35425556f, 1.38390994f, 1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f,
    1.5759809f,  1.61049032f, 1.64575553f, 1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f,
    1.8340081f,  1.87416768f, 1.91520655f, 1.95714414f};
// A sum with it is rounded to a multiple of 1/32, whose low bits are those of the sum.
inline constexpr float kRound32 = 0x1.8p18f;

// 2^floor(power) is left to vscalef.
template <int K>
struct ExpLanes {
  Lanes<K> fraction, power, r;
};
template <int K>
TENON_INLINE ExpLanes<K> exp_parts(const Lanes<K>& x) {
  const Lanes<K> sum = multiply_add(x, 1.44269502f, kRound32);
  const Lanes<K> power = sum - kRound32;
  Lanes<K> r = subtract_product(power, 0.693147182f, x);
  r = subtract_product(power, -1.90465421e-9f, r);
  return {look_up(kExp2Fractions, lane_bits(sum)), power, r};
}
// 2^floor(power) fraction exp(r). vscalef rounds down and rounds denormals once.
template <int K>
TENON_INLINE Lanes<K> exp_of_parts(const ExpLanes<K>& parts) {
  const auto& [fraction, power, r] = parts;
  const Lanes<K> series = multiply_add(r * r, horner(r, 0.500002444f, 0.166667148f), r);
  return scale_by(multiply_add(fraction, series, fraction), power);
}

// 2^f for f in [0, 1), 2^-23.5.
template <int K>
TENON_INLINE Lanes<K> exp2_of_fraction(const Lanes<K>& f) {
  return horner(f, 1.0f, 0.693151295f, 0.240164593f, 0.0557995141f, 0.00901748147f, 0.00186695147f);
}

// factor (exp(x) - 1), where factor 2^n must not overflow for the nearest n to x / ln(2).
template <int K>
TENON_INLINE Lanes<K> scaled_expm1(const Lanes<K>& x, float factor) {
  const Lanes<K> n = multiply_add(x, 1.44269502f, kRound<float>) - kRound<float>;
  const Lanes<K> r = subtract_product(n, -1.90465421e-9f, subtract_product(n, 0.693147182f, x));
  const Lanes<K> series = horner(r, 0.49999994f, 0.166665152f, 0.041668456f, 0.00836941879f,
                                 0.00138131436f);  // 2^-28
  const Lanes<K> part = scale_by(factor, n);
  return multiply_add(part, multiply_add(r * r, series, r), part - factor);
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> exp(const Lanes<K>& x) {
  return detail::exp_of_parts(
      detail::exp_parts(detail::at_least(detail::at_most(x, 89.0f), -104.0f)));
}

template <int K>
TENON_INLINE Lanes<K> exp2(const Lanes<K>& x) {
  return detail::scale_by(detail::exp2_of_fraction(detail::fraction_of(x)), x);
}

template <int K>
TENON_INLINE Lanes<K> expm1(const Lanes<K>& x) {
  const Lanes<K> half =
      detail::scaled_expm1(detail::at_least(detail::at_most(x, 89.0f), -20.0f), 0.5f);
  return detail::with_sign(half + half, x);
}

// exp(-|x|) keeps the left tail and cannot overflow.
template <int K>
TENON_INLINE Lanes<K> sigmoid(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 104.0f);
  const Lanes<K> e = detail::exp_of_parts(detail::exp_parts(-a));
  return detail::choose(detail::sign_mask(x), e, 1.0f) / (1.0f + e);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
