// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function of registers; of floats it is computed in double.
#pragma once

#include "math/gamma.hpp"
#include "math/vec_logarithm.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
#include "math/vec_gamma_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// log(x) - less
template <int K>
TENON_INLINE DoubleVecs<K> log_less(const DoubleVecs<K>& x, const DoubleVecs<K>& less) {
  constexpr auto& table = kLn<double>;
  const auto m = log_mantissa(x);
  const auto index = interval_of(m);
  const auto r = multiply_add(m, lookup(table.inverse, index), -1.0);
  const auto start = multiply_add(exponent_of(x), table.octave, lookup(table.value, index));
  return multiply_add(r, horner(r, table.series), start - less);
}

// Below 8 (u - 1) (u - 2) times a polynomial, whose factors are exact next to the zeros of lgamma;
// below 1/2, lgamma(x) = lgamma(x + 1) - log(x); from 8 on by Stirling's series, as
// (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 + ..., where less cancels.
template <int K>
TENON_INLINE DoubleVecs<K> lgamma_of_positive(const DoubleVecs<K>& x) {
  const auto small = is_less(x, 0.5), middle = is_less(x, 8.0);
  const auto log = log_less(x, blend(middle, 0.0, broadcast_like(1.0, x)));

  const auto u = blend(small, x + 1.0, x);
  const auto index = octave_part<2>(u);
  const auto distance = u - lookup(kGammaRatio.centre, index);
  const auto ratio = piecewise(kGammaRatio.coefficient, index, distance);
  const auto product = multiply_add((u - 1.0) * (u - 2.0), ratio, 0.0);  // +0 of both zeros
  const auto low = blend(small, product - log, product);

  const auto divisor = at_most(x, 0x1p1000);
  const auto rough = reciprocal28(divisor);
  const auto inverse =
      multiply_add(rough, subtract_product(divisor, rough, broadcast_like(1.0, x)), rough);
  const auto series =
      multiply_add(inverse, horner(inverse * inverse, kStirling), 0.41893853320467274);
  return blend(middle, low, multiply_add(x - 0.5, log, series));
}

}  // namespace detail

// Of negative numbers it is libm's.
template <int K>
TENON_INLINE DoubleVecs<K> lgamma(const DoubleVecs<K>& x) {
  return detail::unless(
      detail::sign_mask(x), detail::lgamma_of_positive(x), [](double a) { return math::lgamma(a); },
      x);
}
template <int K>
TENON_INLINE FloatVecs<K> lgamma(const FloatVecs<K>& x) {
  using namespace detail;
  return each([](Floats a) { return narrowed(math::lgamma(widened(a))); }, x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
