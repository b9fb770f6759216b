// SPDX-License-Identifier: Apache-2.0
// Logarithms of sixteen floats, and the inverse hyperbolic functions made of them.
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

// m. Zero and infinity have the mantissa 1 and the exponents -inf and inf; of negative numbers it
// is NaN.
template <int K>
TENON_INLINE Lanes<K> log_mantissa(const Lanes<K>& x) {
  return each(
      [](Floats a) {
        return Floats(_mm512_maskz_getmant_ps(kAll, a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan));
      },
      x);
}
// The number of the interval in the low bits.
template <int K>
TENON_INLINE LaneBits<K> log_index(const Lanes<K>& m) {
  return shift_right<18>(m);
}

// log(2^e c (1 + r))
template <int K>
TENON_INLINE Lanes<K> log_of_parts(const LogTable& table, const Lanes<K>& e,
                                   const LaneBits<K>& index, const Lanes<K>& r) {
  const auto& c = table.series;
  const Lanes<K> start = multiply_add(e, table.octave, look_up(table.value, index));
  return multiply_add(r, horner(r, c[0], c[1], c[2], c[3]), start);
}
template <int K>
TENON_INLINE Lanes<K> log_by(const LogTable& table, const Lanes<K>& x) {
  const Lanes<K> m = log_mantissa(x);
  const LaneBits<K> index = log_index(m);
  const Lanes<K> r = multiply_add(m, look_up(table.inverse, index), -1.0f);
  return log_of_parts(table, exponent_of(x), index, r);
}

// 2^-e for the exponent e of u, 0 < u < infinity.
template <int K>
TENON_INLINE Lanes<K> inverse_octave(const Lanes<K>& u) {
  return each([](Integers bits) { return Floats((254 << 23) - (bits & (255 << 23))); },
              lane_bits(u));
}

// log(u + lost) + (e - exponent of u) ln(2), where `lost` is what rounding took off u.
template <int K>
TENON_INLINE Lanes<K> log_of_sum(const Lanes<K>& u, const Lanes<K>& lost, const Lanes<K>& e) {
  const Lanes<K> m = log_mantissa(u);
  const LaneBits<K> index = log_index(m);
  const Lanes<K> inverse = look_up(kLn.inverse, index);
  const Lanes<K> r = multiply_add(m, inverse, -1.0f);
  // r + lost * 2^-e / c, but not where u is infinite.
  const Lanes<K> exact = each([](__mmask16 mask, Floats a, Floats b,
                                 Floats c) { return Floats(_mm512_mask3_fmadd_ps(a, b, c, mask)); },
                              is_less(u, kInfinity<float>), lost * inverse_octave(u), inverse, r);
  return log_of_parts(kLn, e, index, exact);
}

// log(1 + x)
template <int K>
TENON_INLINE Lanes<K> log_of_one_and(const Lanes<K>& x) {
  const Lanes<K> u = x + 1.0f;
  return log_of_sum(u, x - (u - 1.0f), exponent_of(u));
}

// With the root s of a^2 + 1, log(1 + a + a^2 / (s + 1)). Steps of Newton's iteration for the root
// and the quotient take less than half of the time of the instructions for them.
template <int K>
TENON_INLINE Lanes<K> small_asinh(const Lanes<K>& x) {
  const Lanes<K> a = absolute(x), square = a * a, t = square + 1.0f;
  const Lanes<K> rough = rough_inverse_root(t), near = t * rough;
  const Lanes<K> s = multiply_add(rough * 0.5f, subtract_product(near, near, t), near);
  const Lanes<K> divisor = s + 1.0f, inverse = rough_inverse(divisor), part = square * inverse;
  const Lanes<K> lost = subtract_product(divisor, inverse, spread(1.0f, x));
  return with_sign(log_of_one_and(Lanes<K>(a + multiply_add(part, lost, part))), x);
}

// log(1 + y) of y >= 0, or log(2 x) where x is so large that y may have overflowed.
template <int K>
TENON_INLINE Lanes<K> log1p_or_log2x(const Lanes<K>& y, const Lanes<K>& x) {
  const LaneMask<K> huge = is_less(Lanes<K>{} + 1e6f, x);
  const Lanes<K> sum = y + 1.0f;
  const Lanes<K> u = choose(huge, x, sum);
  return log_of_sum(u, choose(huge, 0.0f, y - (sum - 1.0f)),
                    exponent_of(u) + choose(huge, 1.0f, Lanes<K>{}));
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> log(const Lanes<K>& x) {
  return detail::log_by(detail::kLn, x);
}
template <int K>
TENON_INLINE Lanes<K> log2(const Lanes<K>& x) {
  return detail::log_by(detail::kLog2, x);
}
template <int K>
TENON_INLINE Lanes<K> log10(const Lanes<K>& x) {
  return detail::log_by(detail::kLog10, x);
}

template <int K>
TENON_INLINE Lanes<K> log1p(const Lanes<K>& x) {
  return detail::with_sign(detail::log_of_one_and(x), x);
}

template <int K>
TENON_INLINE Lanes<K> asinh(const Lanes<K>& x) {
  const auto huge = detail::is_less(detail::spread(1e18f, x), detail::absolute(x));
  return detail::unless(
      huge, detail::small_asinh(x), [](float v) { return math::asinh(v); }, x);
}

template <int K>
TENON_INLINE Lanes<K> acosh(const Lanes<K>& x) {
  const Lanes<K> t = x - 1.0f;
  const Lanes<K> y = t + detail::root(t * (x + 1.0f));
  const Lanes<K> result = detail::log1p_or_log2x(y, x);
  return detail::choose(detail::is_less(x, 1.0f), kNan<float>, result);
}

// log((1 + a) / (1 - a)) / 2
template <int K>
TENON_INLINE Lanes<K> atanh(const Lanes<K>& x) {
  const Lanes<K> a = detail::absolute(x);
  return detail::with_sign(0.5f * log1p((a + a) / (1.0f - a)), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
