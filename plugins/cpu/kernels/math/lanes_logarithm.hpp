// SPDX-License-Identifier: Apache-2.0
// Logarithms of registers, and the inverse hyperbolic functions made of them.
//
// x = 2^e m with m in [1, 2), and m = c (1 + r) with c from a table by the leading bits of m: Tang,
// "Table-driven implementation of the logarithm function in IEEE floating-point arithmetic" (1990).
// Near 1 log(2^e c) is 0: c is 1 above, and below e is -1 and c is 2.
#pragma once

#include "math/hyperbolic.hpp"
#include "math/lanes.hpp"

#ifdef TENON_HAS_LANES
#include "math/lanes_logarithm_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// The number of a mantissa's interval, of 32 or 16, in the low bits.
template <class V, int K>
TENON_INLINE BitsOf<V, K> interval_of(const Pack<V, K>& m) {
  return shift_right < kIsSingle<V> ? 18 : 48 > (m);
}

// log(2^e c (1 + r))
template <class Table, class V, int K>
TENON_INLINE Pack<V, K> log_of_parts(const Table& table, const Pack<V, K>& e,
                                     const BitsOf<V, K>& index, const Pack<V, K>& r) {
  const auto start = multiply_add(e, table.octave, look_up(table.value, index));
  return multiply_add(r, horner(r, table.series), start);
}
template <class Table, class V, int K>
TENON_INLINE Pack<V, K> log_by(const Table& table, const Pack<V, K>& x) {
  const auto m = log_mantissa(x);
  const auto index = interval_of(m);
  const auto r = multiply_add(m, look_up(table.inverse, index), -1);
  return log_of_parts(table, exponent_of(x), index, r);
}

// 2^-e for the exponent e of u, 0 < u < infinity.
template <class V, int K>
TENON_INLINE Pack<V, K> inverse_octave(const Pack<V, K>& u) {
  return each(
      [](V number) {
        using Whole = WholeOf<V>;
        constexpr auto exponent = bits_of(kInfinity<ElementOf<V>>);
        constexpr auto smallest = bits_of(std::numeric_limits<ElementOf<V>>::min());
        constexpr auto twice = ElementOf<Whole>(exponent - smallest);
        return V(twice - (Whole(number) & ElementOf<Whole>(exponent)));
      },
      u);
}

// log(u + lost) + (e - exponent of u) ln(2), where `lost` is what rounding took off u.
template <class V, int K>
TENON_INLINE Pack<V, K> log_of_sum(const Pack<V, K>& u, const Pack<V, K>& lost,
                                   const Pack<V, K>& e) {
  using T = ElementOf<V>;
  const auto m = log_mantissa(u);
  const auto index = interval_of(m);
  const auto inverse = look_up(kLn<T>.inverse, index), r = multiply_add(m, inverse, -1);
  // r + lost * 2^-e / c, but not where u is infinite.
  const auto exact = each(
      [](MaskOf<V> mask, V a, V b, V c) {
        if constexpr (kIsSingle<V>)
          return V(_mm512_mask3_fmadd_ps(a, b, c, mask));
        else
          return V(_mm512_mask3_fmadd_pd(a, b, c, mask));
      },
      is_less(u, kInfinity<T>), lost * inverse_octave(u), inverse, r);
  return log_of_parts(kLn<T>, e, index, exact);
}

// log(1 + x)
template <class V, int K>
TENON_INLINE Pack<V, K> log_of_one_and(const Pack<V, K>& x) {
  const auto u = x + 1;
  return log_of_sum(u, x - (u - 1), exponent_of(u));
}

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
  const auto huge = is_less(spread(kHuge<ElementOf<V>>, x), x);
  const auto sum = y + 1, u = choose(huge, x, sum);
  return log_of_sum(u, choose(huge, 0, y - (sum - 1)),
                    exponent_of(u) + choose(huge, 1, Pack<V, K>{}));
}

}  // namespace detail

template <class V, int K>
TENON_INLINE Pack<V, K> log(const Pack<V, K>& x) {
  return detail::log_by(detail::kLn<detail::ElementOf<V>>, x);
}
template <class V, int K>
TENON_INLINE Pack<V, K> log2(const Pack<V, K>& x) {
  return detail::log_by(detail::kLog2<detail::ElementOf<V>>, x);
}
template <class V, int K>
TENON_INLINE Pack<V, K> log10(const Pack<V, K>& x) {
  return detail::log_by(detail::kLog10<detail::ElementOf<V>>, x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> log1p(const Pack<V, K>& x) {
  return detail::with_sign(detail::log_of_one_and(x), x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> asinh(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  constexpr T limit = std::same_as<T, float> ? T(1e18) : T(1e150);
  const auto huge = detail::is_less(detail::spread(limit, x), detail::absolute(x));
  return detail::unless(
      huge, detail::small_asinh(x), [](T v) { return math::asinh(v); }, x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> acosh(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  const auto t = x - 1, y = t + detail::root(t * (x + 1));
  const auto result = detail::log1p_or_log2x(y, x);
  return detail::choose(detail::is_less(x, T(1)), kNan<T>, result);
}

// log((1 + a) / (1 - a)) / 2
template <class V, int K>
TENON_INLINE Pack<V, K> atanh(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  const auto a = detail::absolute(x), divisor = T(1) - a;
  const auto ratio = detail::choose(detail::is_equal(divisor, T(0)), kInfinity<T>,
                                    detail::quotient(a + a, divisor));
  return detail::with_sign(T(0.5) * detail::log_of_one_and(ratio), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
