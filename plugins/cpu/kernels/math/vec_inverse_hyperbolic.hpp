// SPDX-License-Identifier: Apache-2.0
// asinh, acosh and atanh of registers: of floats by a polynomial for each of up to 32 intervals, of
// others and of doubles by logarithms.
#pragma once

#include "math/hyperbolic.hpp"
#include "math/vec_logarithm.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
#include "math/vec_inverse_hyperbolic_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// With the root s of a^2 + 1, log(1 + a + a^2 / (s + 1)).
template <class V, int K>
TENON_INLINE Pack<V, K> small_asinh(const Pack<V, K>& x) {
  const auto a = absolute(x), square = a * a;
  const auto part = quotient(square, root_of_positive(square + 1) + 1);
  return with_sign(log_of_one_and(a + part), x);
}

// log(1 + y) of y >= 0, or log(2 x) where x is so large that y may have overflowed.
template <class V, int K>
TENON_INLINE Pack<V, K> log1p_or_log2x(const Pack<V, K>& y, const Pack<V, K>& x) {
  const auto huge = is_less(broadcast_like(kHuge<ElementOf<V>>, x), x);
  const auto sum = y + 1, u = blend(huge, x, sum);
  return log_of_sum(u, blend(huge, 0, y - (sum - 1)),
                    exponent_of(u) + blend(huge, 1, Pack<V, K>{}));
}

template <class V, int K>
TENON_INLINE Pack<V, K> asinh_by_log(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  constexpr T limit = std::same_as<T, float> ? T(1e18) : T(1e150);
  const auto huge = is_less(broadcast_like(limit, x), absolute(x));
  return unless(
      huge, small_asinh(x), [](T v) { return math::asinh(v); }, x);
}
template <class V, int K>
TENON_INLINE Pack<V, K> acosh_by_log(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto t = x - 1, y = t + root(t * (x + 1));
  return blend(is_less(x, T(1)), kNan<T>, log1p_or_log2x(y, x));
}
// log((1 + a) / (1 - a)) / 2
template <class V, int K>
TENON_INLINE Pack<V, K> atanh_by_log(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto a = absolute(x), divisor = T(1) - a;
  const auto ratio = blend(is_equal(divisor, T(0)), kInfinity<T>, quotient(a + a, divisor));
  return with_sign(T(0.5) * log_of_one_and(ratio), x);
}

}  // namespace detail

template <int K>
TENON_INLINE FloatVecs<K> asinh(const FloatVecs<K>& x) {
  using namespace detail;
  const auto shifted = [](const auto& v) { return absolute(v) + kAreaShift; };
  const auto near = piecewise(kAsinh, octave_part<2>(shifted(x)), absolute(x));
  return unless_beyond(
      shifted, kAreaShift + kAreaEnd, with_sign(near, x),
      [](const auto& v) { return asinh_by_log(v); }, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> asinh(const DoubleVecs<K>& x) {
  return detail::asinh_by_log(x);
}

template <int K>
TENON_INLINE FloatVecs<K> acosh(const FloatVecs<K>& x) {
  using namespace detail;
  const auto shifted = [](const auto& v) { return (v - 1.0f) + kAreaShift; };
  const auto t = x - 1.0f;
  const auto near = root(t) * piecewise(kAcosh, octave_part<2>(shifted(x)), t);
  return unless_beyond(
      shifted, kAreaShift + kAreaEnd, near, [](const auto& v) { return acosh_by_log(v); }, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> acosh(const DoubleVecs<K>& x) {
  return detail::acosh_by_log(x);
}

// 1 - a as the largest number below 1 less a: that of 0 belongs to the octave below 1.
template <int K>
TENON_INLINE FloatVecs<K> atanh(const FloatVecs<K>& x) {
  using namespace detail;
  const auto a = absolute(x);
  const auto index = octave_part<2>(0.99999994f - a);
  const auto near = piecewise(kAtanh, index, a - lookup(kAtanhCentre, index));
  return unless_beyond([](const auto& v) { return absolute(v) + 1.0f; }, 1.0f + kAtanhEnd,
                       with_sign(near, x), [](const auto& v) { return atanh_by_log(v); }, x);
}
template <int K>
TENON_INLINE DoubleVecs<K> atanh(const DoubleVecs<K>& x) {
  return detail::atanh_by_log(x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
