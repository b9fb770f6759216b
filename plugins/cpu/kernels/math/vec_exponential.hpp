// SPDX-License-Identifier: Apache-2.0
// exp, exp2, expm1 and the logistic function of registers.
//
// x = k ln(2)/N + r, and exp(x) = 2^(k/N) exp(r) with a table of the N fractions: Tang,
// "Table-driven implementation of the exponential function in IEEE floating-point arithmetic"
// (1989).
#pragma once

#include "math/exponential.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

template <Float T>
struct ExpTable;
template <>
struct ExpTable<float> {
  alignas(64) static constexpr float kFractions[32] = {
      // 2^(i/32)
      1.0f,        1.0218972f,  1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f,  1.13878858f,
      1.1637249f,  1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f,
      1.35425556f, 1.38390994f, 1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f,
      1.5759809f,  1.61049032f, 1.64575553f, 1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f,
      1.8340081f,  1.87416768f, 1.91520655f, 1.95714414f};
  // A sum with it is rounded to a multiple of 1/32, whose low bits are those of the sum.
  static constexpr float kRound = 0x1.8p18f;
  static constexpr float kLn2 = 0.693147182f, kLn2Low = -1.90465421e-9f;
};
template <>
struct ExpTable<double> {
  alignas(64) static constexpr double kFractions[16] = {// 2^(i/16)
                                                        1.0,
                                                        1.0442737824274138,
                                                        1.0905077326652577,
                                                        1.1387886347566916,
                                                        1.189207115002721,
                                                        1.241857812073484,
                                                        1.2968395546510096,
                                                        1.3542555469368927,
                                                        1.4142135623730951,
                                                        1.4768261459394993,
                                                        1.5422108254079407,
                                                        1.6104903319492543,
                                                        1.681792830507429,
                                                        1.7562521603732995,
                                                        1.8340080864093424,
                                                        1.9152065613971474};
  static constexpr double kRound = 0x1.8p48;
  static constexpr double kLn2 = 0.6931471805599453, kLn2Low = 2.3190468138462996e-17;
};

// 2^floor(power) is left to vscalef.
template <class X>
struct VecExp {
  X fraction, power, r;
};
template <class V, int K>
TENON_INLINE VecExp<Pack<V, K>> exp_parts(const Pack<V, K>& x) {
  using Table = ExpTable<ElementOf<V>>;
  const auto sum = multiply_add(x, kLog2E<ElementOf<V>>, Table::kRound);
  const auto power = sum - Table::kRound;
  const auto r = subtract_product(power, Table::kLn2Low, subtract_product(power, Table::kLn2, x));
  return {lookup(Table::kFractions, as_bits(sum)), power, r};
}
// (exp(r) - 1 - r) / r^2 next to 0: 2^-24 of exp, and 2^-56.
template <int K>
TENON_INLINE FloatVecs<K> exp_series(const FloatVecs<K>& r) {
  return horner(r, 0.500002444f, 0.166667148f);
}
template <int K>
TENON_INLINE DoubleVecs<K> exp_series(const DoubleVecs<K>& r) {
  return horner(r, 0.5000000000000006, 0.16666666664326535, 0.041666666659398, 0.008333474709555025,
                0.0013889133473187065);
}
// 2^floor(power) fraction exp(r). vscalef rounds down and rounds denormals once.
template <class V, int K>
TENON_INLINE Pack<V, K> exp_of_parts(const VecExp<Pack<V, K>>& parts) {
  const auto& [fraction, power, r] = parts;
  const auto series = multiply_add(r * r, exp_series(r), r);
  return scale_by(multiply_add(fraction, series, fraction), power);
}
// The same times 2^64, for lowered(): results that may be denormals would take a hundred times as
// long.
template <int K>
TENON_INLINE FloatVecs<K> raised(const VecExp<FloatVecs<K>>& parts) {
  return exp_of_parts(VecExp<FloatVecs<K>>{parts.fraction, parts.power + 64.0f, parts.r});
}

// 2^x for numbers that are not infinite; 2^-23.5 and 2^-56.
template <int K>
TENON_INLINE FloatVecs<K> exp2_of(const FloatVecs<K>& x) {
  const auto f = fraction_of(x);
  return scale_by(
      horner(f, 1.0f, 0.693151295f, 0.240164593f, 0.0557995141f, 0.00901748147f, 0.00186695147f),
      x);
}
// (2^f - 1) / f for |f| <= 1/32, 2^-56.9
template <int K>
TENON_INLINE DoubleVecs<K> exp2_slope(const DoubleVecs<K>& f) {
  return horner(f, 0.693147180559947, 0.2402265069591011, 0.05550410865156988, 0.00961812910564693,
                0.0013333824108052198, 0.00015403819899783707);
}
template <int K>
TENON_INLINE DoubleVecs<K> exp2_of(const DoubleVecs<K>& number) {
  using Table = ExpTable<double>;
  const auto x = at_least(at_most(number, 1025.0), -1076.0);
  const auto sum = x + Table::kRound, power = sum - Table::kRound, f = x - power;
  const auto fraction = lookup(Table::kFractions, as_bits(sum));
  return scale_by(multiply_add(fraction * f, exp2_slope(f), fraction), power);
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2, 2^-28 and 2^-57.9.
template <int K>
TENON_INLINE FloatVecs<K> expm1_series(const FloatVecs<K>& r) {
  return horner(r, 0.49999994f, 0.166665152f, 0.041668456f, 0.00836941879f, 0.00138131436f);
}
template <int K>
TENON_INLINE DoubleVecs<K> expm1_series(const DoubleVecs<K>& r) {
  return horner(r, 0.5000000000000006, 0.16666666666666685, 0.04166666666657363,
                0.008333333333314518, 0.0013888888932379428, 0.00019841269903148978,
                2.4801504444629062e-05, 2.7557227867106585e-06, 2.762632713708709e-07,
                2.5114497010057873e-08);
}
// factor (exp(x) - 1), where factor 2^n must not overflow for the nearest n to x / ln(2).
template <class V, int K>
TENON_INLINE Pack<V, K> scaled_expm1(const Pack<V, K>& x, ElementOf<V> factor) {
  using T = ElementOf<V>;
  const auto n = multiply_add(x, kLog2E<T>, kRound<T>) - kRound<T>;
  const auto r =
      subtract_product(n, ExpTable<T>::kLn2Low, subtract_product(n, ExpTable<T>::kLn2, x));
  const auto part = scale_by(broadcast_like(factor, x), n);
  return multiply_add(part, multiply_add(r * r, expm1_series(r), r), part - factor);
}

// exp(x) - 1 of any x.
template <class V, int K>
TENON_INLINE Pack<V, K> bounded_expm1(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  constexpr T low = std::same_as<T, float> ? -20 : -40;
  const auto half = scaled_expm1(at_least(at_most(x, kExpHigh<T>), low), T(0.5));
  return with_sign(half + half, x);
}

}  // namespace detail

template <class V, int K>
TENON_INLINE Pack<V, K> exp(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  return detail::exp_of_parts(detail::exp_parts(
      detail::at_least(detail::at_most(x, detail::kExpHigh<T>), detail::kExpLow<T>)));
}

template <class V, int K>
TENON_INLINE Pack<V, K> exp2(const Pack<V, K>& x) {
  return detail::exp2_of(x);
}

// Where 2^n neither overflows nor is denormal. Both parts of ln(2) are positive and the last sum is
// a difference, which keeps the sign of zero. (exp(r) - 1) / r has 2^-26.
template <int K>
TENON_INLINE FloatVecs<K> expm1(const FloatVecs<K>& x) {
  using namespace detail;
  // The low bits of the sum are the exponent field of 2^n, which so is never denormal.
  const auto sum = [](const auto& a) {
    return multiply_add(a, kLog2E<float>, kRound<float> + Format<float>::kBias);
  };
  const auto exponent = [sum](const auto& a) {
    return sum(a) - (kRound<float> + Format<float>::kBias);
  };
  const auto n = exponent(x), part = shift_left<23>(sum(x));
  const auto r = subtract_product(n, 5.77e-8f, subtract_product(n, 0.693147123f, x));
  const auto ratio =
      horner(r, 1.0f, 0.49999997f, 0.16666543f, 0.0416672f, 0.008366539f, 0.0013882441f);
  return unless_beyond(
      exponent, 125.0f, multiply_subtract(part * r, ratio, 1.0f - part),
      [](const auto& a) { return bounded_expm1(a); }, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> expm1(const DoubleVecs<K>& x) {
  return detail::bounded_expm1(x);
}

namespace detail {

// exp(-|x|) keeps the left tail and cannot overflow. `limit` bounds |x|.
template <class V, int K>
TENON_INLINE Pack<V, K> sigmoid_within(ElementOf<V> limit, const Pack<V, K>& x) {
  const auto e = exp_of_parts(exp_parts(-at_most(absolute(x), limit)));
  return quotient(blend(sign_mask(x), e, ElementOf<V>(1)), e + ElementOf<V>(1));
}
// Up to here exp(-x) is no denormal.
inline constexpr float kExpNormal = 87.0f;
// exp(x) where that may be a denormal.
template <int K>
TENON_INLINE FloatVecs<K> tail_sigmoid(const FloatVecs<K>& x) {
  const auto tail = lowered(raised(exp_parts(-at_most(absolute(x), -kExpLow<float>))));
  return blend(is_less(x, -kExpNormal), tail, sigmoid_within(kExpNormal, x));
}

}  // namespace detail

template <int K>
TENON_INLINE FloatVecs<K> sigmoid(const FloatVecs<K>& x) {
  using namespace detail;
  if (is_any_below(x, -kExpNormal)) [[unlikely]] {
    return call_slow_path([](const auto& v) { return tail_sigmoid(v); }, x);
  }
  return sigmoid_within(kExpNormal, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> sigmoid(const DoubleVecs<K>& x) {
  return detail::sigmoid_within(-detail::kExpLow<double>, x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
