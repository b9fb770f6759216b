// SPDX-License-Identifier: Apache-2.0
// Instructions on packs of registers of float and double; vec.hpp includes this file.
#pragma once

#include "math/vec.hpp"

#ifdef TENON_HAS_VEC512
namespace tenon::cpu::TENON_CPU_ISA::math::detail {

// The masked forms, with all elements selected: g++ 12 warns of uninitialised values in its own
// headers for the others.
template <class Register>
inline constexpr MaskOf<Register> kAll = static_cast<MaskOf<Register>>(-1);

TENON_INLINE Floats load_register(const float* from) { return _mm512_loadu_ps(from); }
TENON_INLINE Doubles load_register(const double* from) { return _mm512_loadu_pd(from); }
TENON_INLINE Floats load_register(const float* from, __mmask16 mask) {
  return _mm512_maskz_loadu_ps(mask, from);
}
TENON_INLINE Doubles load_register(const double* from, __mmask8 mask) {
  return _mm512_maskz_loadu_pd(mask, from);
}
TENON_INLINE void store_register(float* to, Floats x) { _mm512_storeu_ps(to, x); }
TENON_INLINE void store_register(double* to, Doubles x) { _mm512_storeu_pd(to, x); }
TENON_INLINE void store_register(float* to, Floats x, __mmask16 mask) {
  _mm512_mask_storeu_ps(to, mask, x);
}
TENON_INLINE void store_register(double* to, Doubles x, __mmask8 mask) {
  _mm512_mask_storeu_pd(to, mask, x);
}

// INSTRUCTION with the arguments of its macro, of floats or of doubles.
#define TENON_EITHER(INSTRUCTION, ...)                \
  using V = decltype(a);                              \
  if constexpr (kIsSingle<V>)                         \
    return V(_mm512_##INSTRUCTION##_ps(__VA_ARGS__)); \
  else                                                \
    return V(_mm512_##INSTRUCTION##_pd(__VA_ARGS__))
#define TENON_INSTRUCTION_1(NAME, ...)                              \
  template <class Register, int K>                                  \
  TENON_INLINE Pack<Register, K> NAME(const Pack<Register, K>& x) { \
    return each([](Register a) { TENON_EITHER(__VA_ARGS__); }, x);  \
  }
#define TENON_INSTRUCTION_2(NAME, ...)                                           \
  template <class X, class Y>                                                    \
  requires HasVecs<X, Y> TENON_INLINE auto NAME(const X& x, const Y& y) {        \
    return each([](auto a, decltype(a) b) { TENON_EITHER(__VA_ARGS__); }, x, y); \
  }
#define TENON_INSTRUCTION_3(NAME, ...)                                                             \
  template <class X, class Y, class Z>                                                             \
  requires HasVecs<X, Y, Z> TENON_INLINE auto NAME(const X& x, const Y& y, const Z& z) {           \
    return each([](auto a, decltype(a) b, decltype(a) c) { TENON_EITHER(__VA_ARGS__); }, x, y, z); \
  }

TENON_INSTRUCTION_1(absolute, abs, a)
TENON_INSTRUCTION_1(exact_root, maskz_sqrt, kAll<V>, a)
// 2^-14
TENON_INSTRUCTION_1(reciprocal14, maskz_rcp14, kAll<V>, a)
TENON_INSTRUCTION_1(rsqrt14, maskz_rsqrt14, kAll<V>, a)
TENON_INSTRUCTION_1(exponent_of, maskz_getexp, kAll<V>, a)
// x - floor(x); 0 of infinities.
TENON_INSTRUCTION_1(fraction_of, maskz_reduce, kAll<V>, a, _MM_FROUND_TO_NEG_INF)
TENON_INSTRUCTION_1(round_to_integer, maskz_roundscale, kAll<V>, a, _MM_FROUND_TO_NEAREST_INT)
// In [1, 2). Zero and infinity have the mantissa 1 and the exponents -inf and inf; of negative
// numbers it is NaN, or that of the number without its sign.
TENON_INSTRUCTION_1(log_mantissa, maskz_getmant, kAll<V>, a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan)
TENON_INSTRUCTION_1(mantissa, maskz_getmant, kAll<V>, a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero)

// NaN stays NaN: these instructions return their second operand then.
TENON_INSTRUCTION_2(at_most, maskz_min, kAll<V>, b, a)
TENON_INSTRUCTION_2(at_least, maskz_max, kAll<V>, b, a)
// x 2^floor(y)
TENON_INSTRUCTION_2(scale_by, maskz_scalef, kAll<V>, a, b)

// x * y + z, x * y - z and z - x * y, rounded once.
TENON_INSTRUCTION_3(multiply_add, fmadd, a, b, c)
TENON_INSTRUCTION_3(multiply_subtract, fmsub, a, b, c)
TENON_INSTRUCTION_3(subtract_product, fnmadd, a, b, c)
#undef TENON_INSTRUCTION_1
#undef TENON_INSTRUCTION_2
#undef TENON_INSTRUCTION_3
#undef TENON_EITHER

template <class V, int K>
TENON_INLINE BitsOf<V, K> as_bits(const Pack<V, K>& x) {
  return each([](V a) { return IntegerOf<V>(a); }, x);
}

#define TENON_COMPARISON(NAME, PREDICATE)                                 \
  template <class X, class Y>                                             \
  requires HasVecs<X, Y> TENON_INLINE auto NAME(const X& x, const Y& y) { \
    return each(                                                          \
        [](auto a, decltype(a) b) {                                       \
          if constexpr (kIsSingle<decltype(a)>)                           \
            return _mm512_cmp_ps_mask(a, b, PREDICATE);                   \
          else                                                            \
            return _mm512_cmp_pd_mask(a, b, PREDICATE);                   \
        },                                                                \
        x, y);                                                            \
  }
TENON_COMPARISON(is_less, _CMP_LT_OQ)
TENON_COMPARISON(is_equal, _CMP_EQ_OQ)
TENON_COMPARISON(is_unordered, _CMP_UNORD_Q)
#undef TENON_COMPARISON
template <class V, int K>
TENON_INLINE auto is_nan(const Pack<V, K>& x) {
  return is_unordered(x, x);
}
// Infinities are whole, and even.
template <class V, int K>
TENON_INLINE auto is_integer(const Pack<V, K>& x) {
  return is_equal(round_to_integer(x), x);
}
// Bit 0, and the sign.
template <class V, int K>
TENON_INLINE auto is_odd(const Pack<V, K>& x) {
  return each(
      [](V a) {
        if constexpr (kIsSingle<V>)
          return _mm512_test_epi32_mask(__m512i(a), _mm512_set1_epi32(1));
        else
          return _mm512_test_epi64_mask(__m512i(a), _mm512_set1_epi64(1));
      },
      x);
}
template <class V, int K>
TENON_INLINE auto sign_mask(const Pack<V, K>& x) {
  return each(
      [](V a) {
        if constexpr (kIsSingle<V>)
          return _mm512_movepi32_mask(__m512i(a));
        else
          return _mm512_movepi64_mask(__m512i(a));
      },
      x);
}

// x with the sign of y.
template <class V, int K>
TENON_INLINE Pack<V, K> with_sign(const Pack<V, K>& x, const Pack<V, K>& y) {
  return each(
      [](V a, V b) {
        if constexpr (kIsSingle<V>)
          return V(_mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN), __m512i(b), __m512i(a),
                                             0xca));
        else
          return V(_mm512_ternarylogic_epi64(_mm512_set1_epi64(INT64_MIN), __m512i(b), __m512i(a),
                                             0xca));
      },
      x, y);
}
// The other sign where bit 0 of y is set.
template <class V, int K>
TENON_INLINE Pack<V, K> flip_sign(const Pack<V, K>& x, const Pack<V, K>& y) {
  return each(
      [](V a, V b) {
        if constexpr (kIsSingle<V>)
          return V(__m512i(a) ^ _mm512_maskz_slli_epi32(kAll<V>, __m512i(b), 31));
        else
          return V(__m512i(a) ^ _mm512_maskz_slli_epi64(kAll<V>, __m512i(b), 63));
      },
      x, y);
}

template <class Mask, int K>
TENON_INLINE bool any(const Pack<Mask, K>& mask) {
  unsigned found = 0;
  for (int k = 0; k < K; ++k) found |= mask.at[k];
  return found != 0;
}

// x where the mask is set, else y.
template <class Mask, int K, class X, class Y>
requires HasVecs<X, Y> TENON_INLINE auto blend(const Pack<Mask, K>& mask, const X& x, const Y& y) {
  return each(
      [](Mask m, auto a, decltype(a) b) {
        if constexpr (kIsSingle<decltype(a)>)
          return decltype(a)(_mm512_mask_blend_ps(m, b, a));
        else
          return decltype(a)(_mm512_mask_blend_pd(m, b, a));
      },
      mask, x, y);
}

// Computes f element by element where the mask is set. The other elements compute f(0), which is
// fast.
template <class V, class F, class... X>
[[gnu::noinline]] inline V scalar_fallback(F f, MaskOf<V> mask, V result, X... x) {
  constexpr int count = 64 / sizeof(ElementOf<V>);
  alignas(64) ElementOf<V> out[count], in[sizeof...(X)][count];
  int argument = 0;
  const auto masked = [mask](V number) {
    return blend(Pack<MaskOf<V>, 1>{mask}, Pack<V, 1>{number}, Pack<V, 1>{}).at[0];
  };
  (store_register(in[argument++], masked(x)), ...);
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    if constexpr (sizeof...(X) == 1)
      out[i] = f(in[0][i]);
    else
      out[i] = f(in[0][i], in[1][i]);
  }
  if constexpr (kIsSingle<V>)
    return _mm512_mask_load_ps(result, mask, out);
  else
    return _mm512_mask_load_pd(result, mask, out);
}
// Returns `result`; if any bit of the mask is set, f(mask, result, x...) instead. For arguments
// that are rare. Assigning to a result would move it through memory.
template <class Mask, class V, int K, class F, class... X>
TENON_INLINE Pack<V, K> corrected(const Pack<Mask, K>& mask, const Pack<V, K>& result, F f,
                                  const X&... x) {
  if (any(mask)) [[unlikely]] {
    return each(f, mask, result, x...);
  }
  return result;
}
// Returns `result`, with f(x...) computed element by element where the mask is set.
template <class Mask, class V, int K, class F, class... X>
TENON_INLINE Pack<V, K> unless(const Pack<Mask, K>& mask, const Pack<V, K>& result, F f,
                               const X&... x) {
  return corrected(
      mask, result, [f](Mask m, V r, auto... v) { return scalar_fallback(f, m, r, v...); }, x...);
}

template <int kBits, class V, int K>
TENON_INLINE BitsOf<V, K> shift_right(const Pack<V, K>& x) {
  return each(
      [](V a) {
        if constexpr (kIsSingle<V>)
          return Integers(_mm512_maskz_srli_epi32(kAll<V>, __m512i(a), kBits));
        else
          return Longs(_mm512_maskz_srli_epi64(kAll<V>, __m512i(a), kBits));
      },
      x);
}

template <int kBits, int K>
TENON_INLINE FloatVecs<K> shift_left(const FloatVecs<K>& x) {
  return each(
      [](Floats a) { return Floats(_mm512_maskz_slli_epi32(kAll<Floats>, __m512i(a), kBits)); }, x);
}

// table[index % N], where the table fits into one register or two.
template <int N, int K>
TENON_INLINE FloatVecs<K> lookup(const float (&table)[N], const Pack<Integers, K>& index) {
  const Floats low = _mm512_load_ps(table), high = _mm512_load_ps(table + N - 16);
  return each(
      [=](Integers i) {
        if constexpr (N == 16)
          return Floats(_mm512_maskz_permutexvar_ps(kAll<Floats>, __m512i(i), low));
        else
          return Floats(_mm512_permutex2var_ps(low, __m512i(i), high));
      },
      index);
}
template <int N, int K>
TENON_INLINE DoubleVecs<K> lookup(const double (&table)[N], const Pack<Longs, K>& index) {
  const Doubles low = _mm512_load_pd(table), high = _mm512_load_pd(table + N - 8);
  return each(
      [=](Longs i) {
        if constexpr (N == 8)
          return Doubles(_mm512_maskz_permutexvar_pd(kAll<Doubles>, __m512i(i), low));
        else
          return Doubles(_mm512_permutex2var_pd(low, __m512i(i), high));
      },
      index);
}

// x 2^-64 for 0 <= x < 2^64. Denormals are counted: they are integers times the smallest of them.
template <int K>
TENON_INLINE FloatVecs<K> lowered(const FloatVecs<K>& x) {
  return each(
      [](Floats a) {
        const __mmask16 normal = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0x1p-62f), _CMP_NLT_UQ);
        const __m512i counted = _mm512_maskz_cvtps_epi32(static_cast<__mmask16>(~normal),
                                                         Floats(a * _mm512_set1_ps(0x1p85f)));
        return Floats(_mm512_mask_mul_ps(__m512(counted), normal, a, _mm512_set1_ps(0x1p-64f)));
      },
      x);
}

// Floats as two registers of doubles, and back.
TENON_INLINE DoubleVecs<2> widened(Floats x) {
  const auto half = [](__m256d bits) {
    return Doubles(_mm512_maskz_cvtps_pd(kAll<Doubles>, _mm256_castpd_ps(bits)));
  };
  return {half(_mm512_maskz_extractf64x4_pd(__mmask8(15), __m512d(x), 0)),
          half(_mm512_maskz_extractf64x4_pd(__mmask8(15), __m512d(x), 1))};
}
TENON_INLINE Floats narrowed(const DoubleVecs<2>& x) {
  const auto half = [](Doubles part) {
    return _mm256_castps_pd(_mm512_maskz_cvtpd_ps(kAll<Doubles>, part));
  };
  const __m512d low = _mm512_maskz_insertf64x4(kAll<Doubles>, __m512d{}, half(x.at[0]), 0);
  return Floats(_mm512_maskz_insertf64x4(kAll<Doubles>, low, half(x.at[1]), 1));
}

// Broadcasts y to as many registers as x has.
template <class T, class V, int K>
TENON_INLINE Pack<V, K> broadcast_like(T y, const Pack<V, K>&) {
  return each([=](int) { return broadcast<V>(y); }, Pack<int, K>{});
}

// Coefficients from the constant term upwards.
template <class V, int K>
TENON_INLINE auto horner(const Pack<V, K>&, ElementOf<V> c0) {
  return c0;
}
template <class V, int K, class... C>
TENON_INLINE Pack<V, K> horner(const Pack<V, K>& x, ElementOf<V> c0, ElementOf<V> c1, C... rest) {
  return multiply_add(x, horner(x, c1, rest...), c0);
}

template <class V, int K, int N>
TENON_INLINE Pack<V, K> horner(const Pack<V, K>& x, const ElementOf<V> (&coefficients)[N]) {
  Pack<V, K> result = broadcast_like(coefficients[N - 1], x);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) result = multiply_add(result, x, coefficients[i]);
  return result;
}
// The same by even and odd powers, for polynomials so long that one chain of sums would wait.
template <class V, int K, int N>
TENON_INLINE Pack<V, K> polynomial_of(const Pack<V, K>& x, const ElementOf<V> (&coefficients)[N]) {
  constexpr int last_odd = N - 1 - N % 2, last_even = N - 2 + N % 2;
  const auto square = x * x;
  Pack<V, K> odd = broadcast_like(coefficients[last_odd], x),
             even = broadcast_like(coefficients[last_even], x);
#pragma GCC unroll 16
  for (int i = last_odd - 2; i > 0; i -= 2) odd = multiply_add(odd, square, coefficients[i]);
#pragma GCC unroll 16
  for (int i = last_even - 2; i >= 0; i -= 2) even = multiply_add(even, square, coefficients[i]);
  return multiply_add(odd, x, even);
}

// Whether x is not in [2^-96, 2^125]: zero, denormal, very large, infinite, NaN or negative.
template <class V, int K>
TENON_INLINE auto is_other_size(const Pack<V, K>& x) {
  return each(
      [](V a) {
        using T = ElementOf<V>;
        constexpr auto low = bits_of(T(0x1p-96f)), range = bits_of(T(0x1p125f)) - low;
        const __m512i above = __m512i(IntegerOf<V>(a) - ElementOf<IntegerOf<V>>(low));
        if constexpr (kIsSingle<V>)
          return _mm512_cmpgt_epu32_mask(above, _mm512_set1_epi32(int(range)));
        else
          return _mm512_cmpgt_epu64_mask(above, _mm512_set1_epi64(int64_t(range)));
      },
      x);
}

// Square roots, and quotients of doubles, by Newton's iteration from approximate reciprocals take
// less than half of the time of the instructions for them.
//
// 1 / y with an error of 2^-28.
template <int K>
TENON_INLINE DoubleVecs<K> reciprocal28(const DoubleVecs<K>& y) {
  const auto rough = reciprocal14(y);
  return multiply_add(rough, subtract_product(y, rough, broadcast_like(1, y)), rough);
}
// x / y, 0.6 ulp, where 1 / y is a normal number and x is not nearly denormal.
template <class X, int K>
TENON_INLINE DoubleVecs<K> quotient(const X& x, const DoubleVecs<K>& y) {
  const auto inverse = reciprocal28(y), near = x * inverse;
  return subtract_product(inverse, multiply_subtract(y, near, x), near);
}
template <class X, int K>
TENON_INLINE FloatVecs<K> quotient(const X& x, const FloatVecs<K>& y) {
  return x / y;
}
// sqrt(x), 0.6 ulp, of numbers in [1e-30, 1e36], or negative.
template <class V, int K>
TENON_INLINE Pack<V, K> root_by(const Pack<V, K>& reciprocal14, const Pack<V, K>& x) {
  const auto start = x * reciprocal14, half = reciprocal14 * 0.5f;
  const auto better = multiply_add(half, subtract_product(start, start, x), start);
  if constexpr (kIsSingle<V>) {
    return better;
  } else {
    const auto lost = subtract_product(start, half, broadcast_like(0.5, x));
    return multiply_add(multiply_add(half, lost, half), subtract_product(better, better, x),
                        better);
  }
}
template <class V, int K>
TENON_INLINE Pack<V, K> root_of_positive(const Pack<V, K>& x) {
  return root_by(rsqrt14(x), x);
}
// Of 0, too.
template <class V, int K>
TENON_INLINE Pack<V, K> root(const Pack<V, K>& x) {
  return root_by(at_most(rsqrt14(x), 1e20f), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math::detail
#endif
