// SPDX-License-Identifier: Apache-2.0
// Piecewise polynomials on up to 32 intervals (16 for double), whose coefficients are permuted out
// of two registers, and slow paths for the rare arguments outside of the intervals.
#pragma once

#include "math/vec.hpp"

#ifdef TENON_HAS_VEC512
namespace tenon::cpu::TENON_CPU_ISA::math::detail {

// The coefficients of each interval, and the centres of the intervals.
template <class T, int kTerms>
struct Piecewise {
  static constexpr int kIntervals = 128 / sizeof(T);
  alignas(64) T centre[kIntervals];
  alignas(64) T coefficient[kTerms][kIntervals];  // of powers of the distance from the centre
};

// The exponent of a > 0 and so many first bits of its mantissa: intervals that divide octaves into
// 2^kBits. As a number modulo the entries of a table, which is what lookup() takes.
template <int kBits, class V, int K>
TENON_INLINE BitsOf<V, K> octave_part(const Pack<V, K>& a) {
  return shift_right<Format<ElementOf<V>>::kMantissaBits - kBits>(a);
}

// The polynomial of interval `index` of x, coefficients from the constant term upwards.
template <int kTerms, int kIntervals, class V, int K>
TENON_INLINE Pack<V, K> piecewise(const ElementOf<V> (&coefficients)[kTerms][kIntervals],
                                  const BitsOf<V, K>& index, const Pack<V, K>& x) {
  Pack<V, K> result = lookup(coefficients[kTerms - 1], index);
#pragma GCC unroll 16
  for (int i = kTerms - 2; i >= 0; --i)
    result = multiply_add(result, x, lookup(coefficients[i], index));
  return result;
}

// x minus the nearest multiple of 2^-kBits.
template <int kBits, int K>
TENON_INLINE FloatVecs<K> above_nearest_multiple(const FloatVecs<K>& x) {
  return each(
      [](Floats a) {
        return Floats(
            _mm512_maskz_reduce_ps(kAll<Floats>, a, kBits << 4 | _MM_FROUND_TO_NEAREST_INT));
      },
      x);
}

// Whether some |x| > limit, for results of arithmetic: of two operands one of which is NaN the
// instruction takes the other, but not where a NaN from memory may signal.
template <int K>
TENON_INLINE bool is_any_beyond(const FloatVecs<K>& x, float limit) {
  constexpr int kMaxMagnitude = 0b1011;
  const auto max_magnitude = [](Floats a, Floats b) {
    return Floats(_mm512_maskz_range_ps(kAll<Floats>, a, b, kMaxMagnitude));
  };
  Floats maximum = max_magnitude(x.at[0], x.at[K - 1]);
#pragma GCC unroll 4
  for (int k = 1; k < K - 1; ++k) maximum = max_magnitude(maximum, x.at[k]);
  return _mm512_cmp_ps_mask(maximum, _mm512_set1_ps(limit), _CMP_GT_OQ) != 0;
}
// Whether some x > limit > 0, and some x < limit < 0, for any x, by their bits: a NaN may be taken
// for such a number.
template <int K>
TENON_INLINE bool is_any_above(const FloatVecs<K>& x, float limit) {
  __m512i maximum = __m512i(x.at[0]);
#pragma GCC unroll 4
  for (int k = 1; k < K; ++k)
    maximum = _mm512_maskz_max_epi32(kAll<Floats>, maximum, __m512i(x.at[k]));
  return _mm512_cmpgt_epi32_mask(maximum, _mm512_set1_epi32(std::bit_cast<int>(limit))) != 0;
}
template <int K>
TENON_INLINE bool is_any_below(const FloatVecs<K>& x, float limit) {
  __m512i maximum = __m512i(x.at[0]);
#pragma GCC unroll 4
  for (int k = 1; k < K; ++k)
    maximum = _mm512_maskz_max_epu32(kAll<Floats>, maximum, __m512i(x.at[k]));
  return _mm512_cmpgt_epu32_mask(maximum, _mm512_set1_epi32(std::bit_cast<int>(limit))) != 0;
}
// Calls f(x) out of line where some x is beyond a limit. The other elements keep the results of the
// fast path, so that an element has the same result whatever its neighbours are.
template <class F, int K>
[[gnu::noinline]] inline FloatVecs<K> call_slow_path(F f, const FloatVecs<K>& x) {
  return f(x);
}
// Near functions of numbers beyond the limit would make denormals, which take a hundred times as
// long.
template <class Tail, class Measure>
[[gnu::noinline]] inline Floats blend_tail(Tail tail, Measure measure, float limit, Floats near,
                                           Floats x) {
  const Floats measured = measure(FloatVecs<1>{x}).at[0];
  const __mmask16 beyond =
      _mm512_cmp_ps_mask(_mm512_abs_ps(measured), _mm512_set1_ps(limit), _CMP_GT_OQ);
  return Floats(_mm512_mask_mov_ps(near, beyond, tail(FloatVecs<1>{x}).at[0]));
}
// `near`, but far(x) where |measure(x)| > limit. It is a function, which is computed anew where the
// limit is exceeded, so that its results need no registers. `near` should be no denormal there:
// these take a hundred times as long.
template <class Measure, int K, class F>
TENON_INLINE FloatVecs<K> unless_beyond(Measure measure, float limit, const FloatVecs<K>& near,
                                        F tail, const FloatVecs<K>& x) {
  if (is_any_beyond(measure(x), limit)) [[unlikely]] {
    return each(
        [=](Floats result, Floats a) { return blend_tail(tail, measure, limit, result, a); }, near,
        x);
  }
  return near;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math::detail
#endif
