// SPDX-License-Identifier: Apache-2.0
// tanh and the error functions of sixteen floats, by polynomials on 32 intervals.
//
// The intervals are quarters of octaves, which the exponent and two bits of the mantissa number;
// the first reaches down to 0.
#pragma once

#include "math/lanes_exponential.hpp"
#include "math/lanes_piecewise_table.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// Of a >= 0, not beyond the last interval.
template <int K>
TENON_INLINE Lanes<K> piecewise(const Piecewise& table, const Lanes<K>& a) {
  const int first = table.first;
  const LaneBits<K> index = each(
      [=](Integers bits) {
        const __m512i number = _mm512_maskz_srli_epi32(kAll, __m512i(bits), 21),
                      base = _mm512_set1_epi32(first);
        return Integers(_mm512_sub_epi32(_mm512_maskz_max_epi32(kAll, number, base), base));
      },
      lane_bits(a));
  const Lanes<K> r = a - look_up(table.centre, index);
  Lanes<K> result = look_up(table.coefficient[5], index);
#pragma GCC unroll 5
  for (int i = 4; i >= 0; --i)
    result = multiply_add(result, r, look_up(table.coefficient[i], index));
  return result;
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> tanh(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 9.1f);
  return detail::with_sign(detail::piecewise(detail::kTanh, a), x);
}

template <int K>
TENON_INLINE Lanes<K> erf(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 3.99f);
  return detail::with_sign(detail::piecewise(detail::kErf, a), x);
}

// erfc(a) = exp(-a^2) p(a), where the rounding error of a^2 counts in the far tail.
template <int K>
TENON_INLINE Lanes<K> erfc(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 10.3f);
  const Lanes<K> square = a * a;
  auto parts = detail::exp_parts(-square);
  parts.r = parts.r - detail::multiply_subtract(a, a, square);
  const Lanes<K> tail = detail::exp_of_parts(parts) * detail::piecewise(detail::kErfcScaled, a);
  return detail::choose(detail::sign_mask(x), 2.0f - tail, tail);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
