// SPDX-License-Identifier: Apache-2.0
// LowPrecisionVec: a register of float32 whose elements are float16 or bfloat16 in memory. Loops of
// cheap operators are instantiated with it: converting blocks to float32 first would take twice as
// long as the conversions in registers.
#pragma once

#include "simd/isa.hpp"

#include <tenon/reduced_float.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX2__) && defined(__F16C__)
#define TENON_HAS_LOW_PRECISION_VEC 1
#include <immintrin.h>
#elif defined(__aarch64__)
#define TENON_HAS_LOW_PRECISION_VEC 1
#include <arm_neon.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__
// Rounds float32 to bfloat16, to nearest even, and leaves the result in the upper 16 bits. NaN
// becomes a quiet NaN, since rounding its mantissa could make it infinite.
inline __m512i round_to_upper_half(__m512 x) {
  constexpr __mmask16 all = 0xffff;
  const __m512i bits = _mm512_castps_si512(x), half = _mm512_set1_epi32(0x7fff);
  const __m512i below = _mm512_maskz_add_epi32(all, bits, half);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i nearest = _mm512_mask_add_epi32(below, odd, below, _mm512_set1_epi32(1));
  const __m512i quiet_for_both_kinds = _mm512_set1_epi32(0x22);
  return _mm512_castps_si512(
      _mm512_fixupimm_ps(_mm512_castsi512_ps(nearest), x, quiet_for_both_kinds, 0));
}
#endif

// An entry of a table of loops; nullptr where the instruction set cannot convert registers.
#ifdef TENON_HAS_LOW_PRECISION_VEC
#define TENON_LOW_PRECISION_LOOP(LOOP, ELEMENT) LOOP<LowPrecisionVec<ELEMENT>>
#else
#define TENON_LOW_PRECISION_LOOP(LOOP, ELEMENT) nullptr
#endif

#ifdef TENON_HAS_LOW_PRECISION_VEC

template <class Element>
struct LowPrecisionVec {
  typedef float Vector __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Bits __attribute__((vector_size(kVectorBytes)));
  typedef uint16_t Stored __attribute__((vector_size(kVectorBytes / 2)));
  static constexpr int count = kVectorBytes / sizeof(float);

  Vector values;

  LowPrecisionVec() = default;
  LowPrecisionVec(Vector from) : values(from) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit LowPrecisionVec(Number x) : values(static_cast<float>(x) - Vector{}) {}

  static LowPrecisionVec load(const uint16_t* from) {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    return widened(stored);
  }
  void store(uint16_t* to) const {
    const Stored stored = narrowed();
    std::memcpy(to, &stored, sizeof stored);
  }
  // Broadcasts one element.
  static LowPrecisionVec repeat(const uint16_t* from) { return widened(*from - Stored{}); }
  // Loads n elements, fewer than a register holds.
  static LowPrecisionVec load_part(const uint16_t* from, int64_t n) {
    uint16_t part[count] = {};
    std::memcpy(part, from, static_cast<size_t>(n) * sizeof(uint16_t));
    return load(part);
  }
  void store_part(uint16_t* to, int64_t n) const {
    const Stored stored = narrowed();
    std::memcpy(to, &stored, static_cast<size_t>(n) * sizeof(uint16_t));
  }

 private:
#ifdef __AVX512F__
  // The masked forms, with all elements selected: g++ 12 warns of uninitialised values in its own
  // headers for the others.
  static constexpr __mmask16 kAll = 0xffff;
  static LowPrecisionVec widened(Stored stored) {
    if constexpr (std::is_same_v<Element, Float16>) {
      return Vector(_mm512_maskz_cvtph_ps(kAll, __m256i(stored)));
    } else {
      return Vector(
          _mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, __m256i(stored)), 16));
    }
  }
  Stored narrowed() const {
    if constexpr (std::is_same_v<Element, Float16>) {
      return Stored(_mm512_maskz_cvtps_ph(kAll, __m512(values), _MM_FROUND_TO_NEAREST_INT));
    } else {
      const __m512i bits = round_to_upper_half(__m512(values));
      return Stored(_mm512_maskz_cvtepi32_epi16(kAll, _mm512_maskz_srli_epi32(kAll, bits, 16)));
    }
  }
#elif defined(__aarch64__)
  static LowPrecisionVec widened(Stored stored) {
    if constexpr (std::is_same_v<Element, Float16>) {
      return Vector(vcvt_f32_f16(float16x4_t(stored)));
    } else {
      return Vector(vshll_n_u16(uint16x4_t(stored), 16));
    }
  }
  Stored narrowed() const {
    if constexpr (std::is_same_v<Element, Float16>) {
      return Stored(vcvt_f16_f32(float32x4_t(values)));
    } else {
      return Stored(vmovn_u32(uint32x4_t(rounded())));
    }
  }
#else
  static LowPrecisionVec widened(Stored stored) {
    if constexpr (std::is_same_v<Element, Float16>) {
      return Vector(_mm256_cvtph_ps(__m128i(stored)));
    } else {
      return Vector(_mm256_slli_epi32(_mm256_cvtepu16_epi32(__m128i(stored)), 16));
    }
  }
  Stored narrowed() const {
    if constexpr (std::is_same_v<Element, Float16>) {
      return Stored(_mm256_cvtps_ph(__m256(values), _MM_FROUND_TO_NEAREST_INT));
    } else {
      const __m256i bits = __m256i(rounded());
      return Stored(
          _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1)));
    }
  }
#endif
#ifndef __AVX512F__
  // Rounds to nearest even and keeps the upper 16 bits of each element.
  Bits rounded() const {
    const Bits bits = reinterpret_cast<Bits>(values);
    const Bits nearest = bits + 0x7fffu + (bits >> 16 & 1u);
    return (values != values ? bits | 0x400000u : nearest) >> 16;
  }
#endif
};

template <class Element>
inline LowPrecisionVec<Element> operator-(LowPrecisionVec<Element> x) {
  return -x.values;
}
#define TENON_OPERATOR(SIGN)                                                  \
  template <class Element>                                                    \
  inline LowPrecisionVec<Element> operator SIGN(LowPrecisionVec<Element> x,   \
                                                LowPrecisionVec<Element> y) { \
    return x.values SIGN y.values;                                            \
  }
TENON_OPERATOR(+)
TENON_OPERATOR(-)
TENON_OPERATOR(*)
TENON_OPERATOR(/)
#undef TENON_OPERATOR
// A comparison returns a mask with one element per element of the operands.
#define TENON_OPERATOR(SIGN)                                                          \
  template <class Element>                                                            \
  inline auto operator SIGN(LowPrecisionVec<Element> x, LowPrecisionVec<Element> y) { \
    return x.values SIGN y.values;                                                    \
  }
TENON_OPERATOR(<)
TENON_OPERATOR(>)
TENON_OPERATOR(<=)
TENON_OPERATOR(>=)
#undef TENON_OPERATOR

namespace math {

template <class Answers, class Element>
inline LowPrecisionVec<Element> select(Answers condition, LowPrecisionVec<Element> x,
                                       LowPrecisionVec<Element> y) {
  return condition ? x.values : y.values;
}
template <class Element>
inline LowPrecisionVec<Element> min(LowPrecisionVec<Element> x, LowPrecisionVec<Element> y) {
  return x.values != x.values ? x.values : x.values < y.values ? x.values : y.values;
}
template <class Element>
inline LowPrecisionVec<Element> max(LowPrecisionVec<Element> x, LowPrecisionVec<Element> y) {
  return x.values != x.values ? x.values : x.values > y.values ? x.values : y.values;
}
template <class Element>
inline LowPrecisionVec<Element> abs(LowPrecisionVec<Element> x) {
  using Vector = typename LowPrecisionVec<Element>::Vector;
  using Bits = typename LowPrecisionVec<Element>::Bits;
  return reinterpret_cast<Vector>(reinterpret_cast<Bits>(x.values) & 0x7fffffffu);
}
template <class Element>
inline LowPrecisionVec<Element> real(LowPrecisionVec<Element> x) {
  return x;
}

}  // namespace math

// out[i] = f(in[i]...), one register at a time. The last elements are computed first, since `out`
// may be one of the inputs, and stored last, in a register that overlaps the one before.
template <class Element, class F, class... In>
requires(std::is_same_v<In, LowPrecisionVec<Element>>&&...) inline void run_dense(
    LowPrecisionVec<Element>* out, int64_t n, F f, const In*... in) {
  constexpr int count = LowPrecisionVec<Element>::count;
  uint16_t* to = reinterpret_cast<uint16_t*>(out);
  if (n < count) {
    if (n == 0) return;  // empty tensors have no memory to copy from
    return LowPrecisionVec<Element>(f(In::load_part(reinterpret_cast<const uint16_t*>(in), n)...))
        .store_part(to, n);
  }
  const LowPrecisionVec<Element> last =
      f(In::load(reinterpret_cast<const uint16_t*>(in) + n - count)...);
  for (int64_t i = 0; i + count <= n; i += count) {
    LowPrecisionVec<Element>(f(In::load(reinterpret_cast<const uint16_t*>(in) + i)...))
        .store(to + i);
  }
  last.store(to + n - count);
}

// The element that goes with every other.
template <class Element>
inline LowPrecisionVec<Element> repeated(const LowPrecisionVec<Element>* from) {
  return LowPrecisionVec<Element>::repeat(reinterpret_cast<const uint16_t*>(from));
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
