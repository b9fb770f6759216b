// SPDX-License-Identifier: Apache-2.0
// The error functions of sixteen floats, by a polynomial for each of 32 intervals, which the
// exponent and the first bits of the mantissa number.
#pragma once

#include "math/lanes_error.hpp"

#ifdef TENON_HAS_LANES
#include "math/lanes_piecewise_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// The number of the quarter of an octave where a >= 0 lies, counted from `first`; 0 below.
template <int K>
TENON_INLINE LaneBits<K> octave_quarter(int first, const Lanes<K>& a) {
  return each(
      [=](Integers number) {
        const __m512i base = _mm512_set1_epi32(first);
        return Integers(
            _mm512_sub_epi32(_mm512_maskz_max_epi32(kAll<Floats>, __m512i(number), base), base));
      },
      shift_right<21>(a));
}

// Of a number in interval `index`, at the distance r from its centre.
template <int K>
TENON_INLINE Lanes<K> piecewise(const Piecewise& table, const LaneBits<K>& index,
                                const Lanes<K>& r) {
  Lanes<K> result = look_up(table.coefficient[5], index);
#pragma GCC unroll 5
  for (int i = 4; i >= 0; --i)
    result = multiply_add(result, r, look_up(table.coefficient[i], index));
  return result;
}

// erfc(a) exp(a^2) for a = factor b <= 10.4, without the rounding error of that product.
template <int K>
TENON_INLINE Lanes<K> erfc_scaled(const Lanes<K>& b, float factor) {
  const LaneBits<K> index = shift_right<20>(multiply_add(b, factor, 1.0f));
  return piecewise(kErfcScaled, index,
                   multiply_subtract(b, factor, look_up(kErfcScaled.centre, index)));
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> erf(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 3.99f);
  const auto index = detail::octave_quarter(detail::kErfFirst, a);
  const Lanes<K> r = a - detail::look_up(detail::kErf.centre, index);
  return detail::with_sign(detail::piecewise(detail::kErf, index, r), x);
}

template <int K>
TENON_INLINE Lanes<K> erfc(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 10.3f);
  const Lanes<K> tail = detail::gaussian(a, 1.0f) * detail::erfc_scaled(a, 1.0f);
  return detail::choose(detail::sign_mask(x), 2.0f - tail, tail);
}

template <int K>
TENON_INLINE Lanes<K> normal_cdf(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 14.5f);
  const Lanes<K> scaled = detail::erfc_scaled(a, 0.707106769f);
  const Lanes<K> tail = detail::gaussian(a, 0.5f) * (0.5f * scaled);
  return detail::choose(detail::sign_mask(x), tail, 1.0f - tail);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
