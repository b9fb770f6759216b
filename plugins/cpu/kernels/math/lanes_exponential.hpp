// SPDX-License-Identifier: Apache-2.0
// exp, the logistic function and the hyperbolic sine and cosine of sixteen floats.
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

// With a = n ln(2) + r, 2 sinh(a) = 2^n (cosh(r) + sinh(r)) - 2^-n (cosh(r) - sinh(r)). Nothing
// cancels, since the factor of cosh(r) is 0 where n is. cosh(a) with the other sign.
template <int kSign, int K>
TENON_INLINE Lanes<K> hyperbolic(const Lanes<K>& a) {
  const Lanes<K> n = multiply_add(a, 1.44269502f, kRound<float>) - kRound<float>;
  const Lanes<K> r = subtract_product(n, -1.90465421e-9f, subtract_product(n, 0.693147182f, a));
  const Lanes<K> square = r * r, twice = r + r;
  const Lanes<K> even =
      multiply_add(square, horner(square, 1.0f, 0.0833331123f, 0.00278523518f), 2.0f);
  const Lanes<K> odd = multiply_add(
      twice * square, horner(square, 0.166666672f, 0.00833332073f, 0.000198826907f), twice);
  const Lanes<K> up = scale_by(0.25f, n), down = scale_by(0.25f, -n);
  if constexpr (kSign > 0)
    return multiply_add(even, up + down, odd * (up - down));
  else
    return multiply_add(even, up - down, odd * (up + down));
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> exp(const Lanes<K>& x) {
  return detail::exp_of_parts(
      detail::exp_parts(detail::at_least(detail::at_most(x, 89.0f), -104.0f)));
}

// exp(-|x|) keeps the left tail and cannot overflow.
template <int K>
TENON_INLINE Lanes<K> sigmoid(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 104.0f);
  const Lanes<K> e = detail::exp_of_parts(detail::exp_parts(-a));
  return detail::choose(detail::sign_mask(x), e, 1.0f) / (1.0f + e);
}

template <int K>
TENON_INLINE Lanes<K> sinh(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 89.5f);
  return detail::with_sign(detail::hyperbolic<-1>(a), x);
}
template <int K>
TENON_INLINE Lanes<K> cosh(const Lanes<K>& x) {
  return detail::hyperbolic<1>(detail::at_most(detail::absolute(x), 89.5f));
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
