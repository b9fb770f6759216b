// SPDX-License-Identifier: Apache-2.0
// sinh, cosh and tanh of registers.
#pragma once

#include "math/hyperbolic.hpp"
#include "math/vec_exponential.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
#include "math/vec_hyperbolic_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// Where the divisors of sinh and cosh are still far from overflow, and their quotients nothing.
template <Float T>
inline constexpr T kSteep = kHuge<T>* kHuge<T>;

// With t = (exp(a) - 1) / 2, t + t / (2t + 1).
template <class V, int K>
TENON_INLINE Pack<V, K> sinh_by_exp(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto a = at_most(absolute(x), kHyperbolicLimit<T>);
  const auto half = scaled_expm1(a, T(0.25)), t = half + half;
  const auto bounded = at_most(t, kSteep<T>);
  return with_sign(t + quotient(bounded, bounded + bounded + T(1)), x);
}
// With e = exp(a) / 2, e + 1 / (4e).
template <class V, int K>
TENON_INLINE Pack<V, K> cosh_by_exp(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  auto parts = exp_parts(at_most(absolute(x), kHyperbolicLimit<T>));
  parts.power = parts.power - T(1);
  const auto e = exp_of_parts(parts);
  return e + quotient(T(0.25), at_most(e, kSteep<T>));
}

// x = c + r, |r| <= 1/4, where c is a multiple of 1/2: sinh and cosh of c come from tables, those
// of r are polynomials, 2^-26 and 2^-29.
template <int K>
TENON_INLINE FloatVecs<K> nearest_half(const FloatVecs<K>& x) {
  return (x + kRound<float> / 2) - kRound<float> / 2;
}
template <int K>
TENON_INLINE IntVecs<K> number_of_half(const FloatVecs<K>& x) {
  return as_bits(x + kRound<float> / 2);
}
template <int K>
TENON_INLINE FloatVecs<K> small_cosh_less_1(const FloatVecs<K>& square) {
  return square * horner(square, 0.49999768f, 0.041787405f);
}

}  // namespace detail

// The sign of zero is that of a difference.
template <int K>
TENON_INLINE FloatVecs<K> sinh(const FloatVecs<K>& x) {
  using namespace detail;
  const auto index = number_of_half(x);
  const auto r = x - nearest_half(x), s = r * r;
  const auto step = r * lookup(kCoshOfHalves, index);
  const auto odd = multiply_add(step, s * horner(s, 0.16666633f, 0.008350604f), step);
  const auto value = lookup(kMinusSinhOfHalves, index);
  return unless_beyond([](const auto& v) { return nearest_half(v); }, kHyperbolicLast,
                       odd - multiply_add(value, small_cosh_less_1(s), value),
                       [](const auto& v) { return sinh_by_exp(v); }, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> sinh(const DoubleVecs<K>& x) {
  return detail::sinh_by_exp(x);
}

template <int K>
TENON_INLINE FloatVecs<K> cosh(const FloatVecs<K>& x) {
  using namespace detail;
  const auto index = number_of_half(x);
  const auto r = x - nearest_half(x), s = r * r;
  const auto value = lookup(kCoshOfHalves, index), step = r * lookup(kMinusSinhOfHalves, index);
  return unless_beyond([](const auto& v) { return nearest_half(v); }, kHyperbolicLast,
                       subtract_product(step, horner(s, 1.0f, 0.16666633f, 0.008350604f),
                                        multiply_add(value, small_cosh_less_1(s), value)),
                       [](const auto& v) { return cosh_by_exp(v); }, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> cosh(const DoubleVecs<K>& x) {
  return detail::cosh_by_exp(x);
}

template <int K>
TENON_INLINE FloatVecs<K> tanh(const FloatVecs<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), kTanhEnd);
  return with_sign(piecewise(kTanh, octave_part<3>(a + kTanhShift), a), x);
}
// With t = (exp(2a) - 1) / 2, t / (t + 1).
template <int K>
TENON_INLINE DoubleVecs<K> tanh(const DoubleVecs<K>& x) {
  using namespace detail;
  const auto a = absolute(x), half = scaled_expm1(at_most(a + a, 44.0), 0.5);
  return with_sign(quotient(half, half + 1.0), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
