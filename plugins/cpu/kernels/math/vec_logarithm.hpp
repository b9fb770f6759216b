// SPDX-License-Identifier: Apache-2.0
// Logarithms of registers.
//
// x = 2^e m with m in [1, 2), and m = c (1 + r) with c from a table by the leading bits of m: Tang,
// "Table-driven implementation of the logarithm function in IEEE floating-point arithmetic" (1990).
// Near 1 log(2^e c) is 0: c is 1 above, and below e is -1 and c is 2.
#pragma once

#include "math/vec.hpp"

#ifdef TENON_HAS_VEC512
#include "math/vec_logarithm_table.hpp"

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
  const auto start = multiply_add(e, table.octave, lookup(table.value, index));
  return multiply_add(r, horner(r, table.series), start);
}
template <class Table, class V, int K>
TENON_INLINE Pack<V, K> log_by(const Table& table, const Pack<V, K>& x) {
  const auto m = log_mantissa(x);
  const auto index = interval_of(m);
  const auto r = multiply_add(m, lookup(table.inverse, index), -1);
  return log_of_parts(table, exponent_of(x), index, r);
}

// 2^-e for the exponent e of u, 0 < u < infinity.
template <class V, int K>
TENON_INLINE Pack<V, K> inverse_octave(const Pack<V, K>& u) {
  return each(
      [](V number) {
        using Integer = IntegerOf<V>;
        constexpr auto exponent = bits_of(kInfinity<ElementOf<V>>);
        constexpr auto smallest = bits_of(std::numeric_limits<ElementOf<V>>::min());
        constexpr auto twice = ElementOf<Integer>(exponent - smallest);
        return V(twice - (Integer(number) & ElementOf<Integer>(exponent)));
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
  const auto inverse = lookup(kLn<T>.inverse, index), r = multiply_add(m, inverse, -1);
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

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
