// SPDX-License-Identifier: Apache-2.0
// Registers of sixteen floats of AVX-512, for functions that look tables up.
//
// Compilers make gathers of tables; a table of 32 floats fits in two registers, which one
// instruction permutes (vpermi2ps). With such tables polynomials are short, and the operations that
// know exponents (vgetexp, vgetmant, vscalef) give special values their results without selections.
// Several registers go through a function side by side: one after the other, the schedulers fill
// with instructions that wait for the one before.
//
// Other instruction sets, double, and functions inside of larger expressions use the functions of
// one argument, which differ by an ulp or two.
#pragma once

#include "math/bits.hpp"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define TENON_HAS_LANES 1

#include <immintrin.h>

#include <algorithm>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {
using Floats [[gnu::vector_size(64)]] = float;
using Integers [[gnu::vector_size(64)]] = int;
using Unsigned [[gnu::vector_size(64)]] = unsigned;
}  // namespace detail

// K registers.
template <class Register, int K>
struct Pack {
  Register at[K];
};
template <int K>
using Lanes = Pack<detail::Floats, K>;

namespace detail {

template <int K>
using LaneBits = Pack<Integers, K>;
template <int K>
using LaneMask = Pack<__mmask16, K>;

// Registers of an operand; a number has none and goes with any count of them.
template <class X>
inline constexpr int kRegisters = 0;
template <class Register, int K>
inline constexpr int kRegisters<Pack<Register, K>> = K;
template <class... X>
inline constexpr int kMostRegisters = std::max({kRegisters<X>...});
template <class... X>
concept OfLanes = kMostRegisters<X...> >
0;

template <int I, class Register, int K>
TENON_INLINE Register part(const Pack<Register, K>& x) {
  return x.at[I];
}
template <int I>
TENON_INLINE Floats part(float x) {
  return _mm512_set1_ps(x);
}
template <int I, class F, class... X>
TENON_INLINE auto each_part(F f, const X&... x) {
  return f(part<I>(x)...);
}

// f of every register.
template <class F, class... X>
TENON_INLINE auto each(F f, const X&... x) {
  constexpr int K = kMostRegisters<X...>;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return Pack<decltype(each_part<0>(f, x...)), K>{each_part<I>(f, x...)...};
  }
  (std::make_integer_sequence<int, K>{});
}

}  // namespace detail

#define TENON_OPERATOR(SIGN)                                                               \
  template <class X, class Y>                                                              \
  requires detail::OfLanes<X, Y> TENON_INLINE auto operator SIGN(const X& x, const Y& y) { \
    using detail::Floats;                                                                  \
    return detail::each([](Floats a, Floats b) { return a SIGN b; }, x, y);                \
  }
TENON_OPERATOR(+)
TENON_OPERATOR(-)
TENON_OPERATOR(*)
TENON_OPERATOR(/)
#undef TENON_OPERATOR
template <int K>
TENON_INLINE Lanes<K> operator-(const Lanes<K>& x) {
  return -0.0f - x;
}

namespace detail {

// With the lanes chosen, by a mask, g++ 12 does not warn of its own headers.
inline constexpr __mmask16 kAll = 0xffff;

// Instructions, for every register. RESULT: what one of them makes.
#define TENON_INSTRUCTION_1(NAME, FROM, RESULT, CALL)    \
  template <int K>                                       \
  TENON_INLINE auto NAME(const Pack<FROM, K>& x) {       \
    return each([](FROM a) { return RESULT(CALL); }, x); \
  }
#define TENON_INSTRUCTION_2(NAME, RESULT, CALL)                           \
  template <class X, class Y>                                             \
  requires OfLanes<X, Y> TENON_INLINE auto NAME(const X& x, const Y& y) { \
    return each([](Floats a, Floats b) { return RESULT(CALL); }, x, y);   \
  }
#define TENON_INSTRUCTION_3(NAME, CALL)                                                  \
  template <class X, class Y, class Z>                                                   \
  requires OfLanes<X, Y, Z> TENON_INLINE auto NAME(const X& x, const Y& y, const Z& z) { \
    return each([](Floats a, Floats b, Floats c) { return Floats(CALL); }, x, y, z);     \
  }

TENON_INSTRUCTION_1(lane_bits, Floats, Integers, a)
TENON_INSTRUCTION_1(lanes_of_bits, Integers, Floats, a)
TENON_INSTRUCTION_1(absolute, Floats, Floats, _mm512_abs_ps(a))
TENON_INSTRUCTION_1(root, Floats, Floats, _mm512_maskz_sqrt_ps(kAll, a))
// 2^-14
TENON_INSTRUCTION_1(rough_inverse, Floats, Floats, _mm512_maskz_rcp14_ps(kAll, a))
TENON_INSTRUCTION_1(rough_inverse_root, Floats, Floats, _mm512_maskz_rsqrt14_ps(kAll, a))
TENON_INSTRUCTION_1(exponent_of, Floats, Floats, _mm512_maskz_getexp_ps(kAll, a))
// x - floor(x); 0 of infinities.
TENON_INSTRUCTION_1(fraction_of, Floats, Floats,
                    _mm512_maskz_reduce_ps(kAll, a, _MM_FROUND_TO_NEG_INF))
TENON_INSTRUCTION_1(is_odd, Floats, __mmask16,
                    _mm512_test_epi32_mask(__m512i(a), _mm512_set1_epi32(1)))
TENON_INSTRUCTION_1(is_nan, Floats, __mmask16, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q))
TENON_INSTRUCTION_1(sign_mask, Floats, __mmask16, _mm512_movepi32_mask(__m512i(a)))

// NaN stays NaN: these instructions return their second operand then.
TENON_INSTRUCTION_2(at_most, Floats, _mm512_maskz_min_ps(kAll, b, a))
TENON_INSTRUCTION_2(at_least, Floats, _mm512_maskz_max_ps(kAll, b, a))
// x 2^floor(y)
TENON_INSTRUCTION_2(scale_by, Floats, _mm512_maskz_scalef_ps(kAll, a, b))
TENON_INSTRUCTION_2(is_less, __mmask16, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ))
TENON_INSTRUCTION_2(is_equal, __mmask16, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ))
// Bits of y under the mask of signs, else of x.
TENON_INSTRUCTION_2(with_sign, Floats,
                    _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN),
                                                                  __m512i(b), __m512i(a), 0xca)))

// x * y + z, x * y - z and z - x * y, rounded once.
TENON_INSTRUCTION_3(multiply_add, _mm512_fmadd_ps(a, b, c))
TENON_INSTRUCTION_3(multiply_subtract, _mm512_fmsub_ps(a, b, c))
TENON_INSTRUCTION_3(subtract_product, _mm512_fnmadd_ps(a, b, c))
#undef TENON_INSTRUCTION_1
#undef TENON_INSTRUCTION_2
#undef TENON_INSTRUCTION_3

// The other sign where bit 0 of y is set.
template <int K>
TENON_INLINE Lanes<K> flip_sign(const Lanes<K>& x, const Lanes<K>& y) {
  return each(
      [](Floats a, Floats b) {
        return Floats(__m512i(a) ^ _mm512_maskz_slli_epi32(kAll, __m512i(b), 31));
      },
      x, y);
}

template <int K>
TENON_INLINE bool any(const LaneMask<K>& mask) {
  unsigned found = 0;
  for (int k = 0; k < K; ++k) found |= mask.at[k];
  return found != 0;
}

// x where the mask is set, else y.
template <int K, class X, class Y>
TENON_INLINE Lanes<K> choose(const LaneMask<K>& mask, const X& x, const Y& y) {
  return each([](__mmask16 m, Floats a, Floats b) { return Floats(_mm512_mask_blend_ps(m, b, a)); },
              mask, x, y);
}

// f of numbers, where the mask is set.
template <class F, class... X>
[[gnu::noinline]] inline Floats number_by_number(F f, __mmask16 mask, Floats result, X... x) {
  alignas(64) float out[16], in[sizeof...(X)][16];
  int argument = 0;
  (_mm512_store_ps(in[argument++], x), ...);
#pragma GCC ivdep
  for (int i = 0; i < 16; ++i) {
    if constexpr (sizeof...(X) == 1)
      out[i] = f(in[0][i]);
    else
      out[i] = f(in[0][i], in[1][i]);
  }
  return _mm512_mask_load_ps(result, mask, out);
}
// `result`, but f of the numbers of x where the mask is set: for arguments that are rare.
template <int K, class F, class... X>
TENON_INLINE Lanes<K> unless(const LaneMask<K>& mask, Lanes<K> result, F f, const X&... x) {
  if (any(mask)) [[unlikely]] {
    for (int k = 0; k < K; ++k)
      result.at[k] = number_by_number(f, mask.at[k], result.at[k], x.at[k]...);
  }
  return result;
}

template <int kBits, int K>
TENON_INLINE LaneBits<K> shift_right(const Lanes<K>& x) {
  return each([](Floats a) { return Integers(_mm512_maskz_srli_epi32(kAll, __m512i(a), kBits)); },
              x);
}

// table[index % 32]
template <int K>
TENON_INLINE Lanes<K> look_up(const float (&table)[32], const LaneBits<K>& index) {
  const Floats low = _mm512_load_ps(table), high = _mm512_load_ps(table + 16);
  return each([=](Integers i) { return Floats(_mm512_permutex2var_ps(low, __m512i(i), high)); },
              index);
}

// table[index % 16]
template <int K>
TENON_INLINE Lanes<K> look_up(const float (&table)[16], const LaneBits<K>& index) {
  const Floats all = _mm512_load_ps(table);
  return each(
      [=](Integers i) { return Floats(_mm512_maskz_permutexvar_ps(kAll, __m512i(i), all)); },
      index);
}

// Coefficients from the constant term upwards.
template <int K>
TENON_INLINE float horner(const Lanes<K>&, float c0) {
  return c0;
}
template <int K, class... C>
TENON_INLINE Lanes<K> horner(const Lanes<K>& x, float c0, float c1, C... rest) {
  return multiply_add(x, horner(x, c1, rest...), c0);
}

// y in every lane of as many registers as x has.
template <int K>
TENON_INLINE Lanes<K> spread(float y, const Lanes<K>&) {
  return each([=](int) { return Floats(_mm512_set1_ps(y)); }, Pack<int, K>{});
}

// f of K registers of every x, from element i on.
template <int K, class F, class... X>
TENON_INLINE void run_registers(F f, float* out, const X*... x) {
  const auto load = [](const float* from) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return Lanes<K>{_mm512_loadu_ps(from + 16 * I)...};
    }
    (std::make_integer_sequence<int, K>{});
  };
  const Lanes<K> result = f(load(x)...);
#pragma GCC unroll 4
  for (int k = 0; k < K; ++k) _mm512_storeu_ps(out + 16 * k, result.at[k]);
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> abs(const Lanes<K>& x) {
  return detail::absolute(x);
}
// NaN if either is.
template <int K>
TENON_INLINE Lanes<K> max(const Lanes<K>& x, const Lanes<K>& y) {
  return detail::choose(detail::is_equal(y, y), detail::at_least(x, y), y);
}
template <int K>
TENON_INLINE Lanes<K> max(const Lanes<K>& x, float y) {
  return math::max(x, detail::spread(y, x));
}
template <int K>
TENON_INLINE Lanes<K> max(float x, const Lanes<K>& y) {
  return math::max(detail::spread(x, y), y);
}

// out[i] = f(x[i]...), K registers at a time. The last elements take the same way as the others.
template <int K, class F, class... X>
[[gnu::flatten]] inline void run_lanes(F f, float* out, int64_t n, const X*... x) {
  int64_t i = 0;
#pragma GCC unroll 1
  for (; i + 16 * K <= n; i += 16 * K) detail::run_registers<K>(f, out + i, x + i...);
#pragma GCC unroll 1
  for (; i < n; i += 16) {
    const auto rest = static_cast<__mmask16>((1u << std::min<int64_t>(n - i, 16)) - 1);
    const Lanes<1> result = f(Lanes<1>{_mm512_maskz_loadu_ps(rest, x + i)}...);
    _mm512_mask_storeu_ps(out + i, rest, result.at[0]);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
