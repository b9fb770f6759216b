// SPDX-License-Identifier: Apache-2.0
#include "elementwise/low_precision.hpp"

#include "simd/low_precision.hpp"

#include <tenon/storage_float.hpp>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class T>
void widen_as(const char* from, int64_t stride, float* to, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    const T* dense = reinterpret_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = dense[i];
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const T*>(from + i * stride);
  }
}

template <class T>
void narrow_as(const float* from, char* to, int64_t stride, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    T* dense = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) dense[i] = T(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * stride) = T(from[i]);
  }
}

#ifdef __F16C__
// Convert 16 or 8 elements per instruction. They return the number of elements done; the caller
// converts the rest.
int64_t widen_half(const char* from, float* to, int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 2 * i));
    _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xffff, half));
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  return i;
}
int64_t narrow_half(const float* from, char* to, int64_t n) {
  int64_t i = 0;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16) {
    const __m256i half =
        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 2 * i), half);
  }
#endif
  for (; i + 8 <= n; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), half);
  }
  return i;
}
#elif defined(__aarch64__)
// Eight elements at a time, so that two conversions are under way.
int64_t widen_half(const char* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const float16x8_t half =
        vreinterpretq_f16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(from + 2 * i)));
    vst1q_f32(to + i, vcvt_f32_f16(vget_low_f16(half)));
    vst1q_f32(to + i + 4, vcvt_high_f32_f16(half));
  }
  return i;
}
int64_t narrow_half(const float* from, char* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const float16x8_t half =
        vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(from + i)), vld1q_f32(from + i + 4));
    vst1q_u8(reinterpret_cast<uint8_t*>(to + 2 * i), vreinterpretq_u8_f16(half));
  }
  return i;
}
#else
int64_t widen_half(const char*, float*, int64_t) { return 0; }
int64_t narrow_half(const float*, char*, int64_t) { return 0; }
#endif

#ifdef __AVX512BW__
// Converts 32 elements at a time. The pack instruction interleaves quarters of both registers,
// which the permutation undoes.
int64_t narrow_bfloat(const float* from, char* to, int64_t n) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const auto upper = [](const float* at) {
    return _mm512_maskz_srli_epi32(0xffff, round_to_upper_half(_mm512_loadu_ps(at)), 16);
  };
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m512i packed = _mm512_packus_epi32(upper(from + i), upper(from + i + 16));
    _mm512_storeu_si512(to + 2 * i, _mm512_maskz_permutexvar_epi64(0xff, order, packed));
  }
  return i;
}
#else
int64_t narrow_bfloat(const float*, char*, int64_t) { return 0; }
#endif

}  // namespace

// What the processor has instructions for, in vectors; then the rest, one by one.
void widen(int dtype, const char* from, int64_t stride, float* to, int64_t n) {
  const int64_t done = dtype == TENON_DTYPE_F16 && stride == 2 ? widen_half(from, to, n) : 0;
  from += done * stride;
  switch (dtype) {
#define TENON_CASE(id, Type) \
  case TENON_DTYPE_##id:     \
    return widen_as<Type>(from, stride, to + done, n - done);
    TENON_SMALL_FLOATS(TENON_CASE)
#undef TENON_CASE
  }
}

void narrow(int dtype, const float* from, char* to, int64_t stride, int64_t n) {
  const int64_t done = stride != 2                 ? 0
                       : dtype == TENON_DTYPE_F16  ? narrow_half(from, to, n)
                       : dtype == TENON_DTYPE_BF16 ? narrow_bfloat(from, to, n)
                                                   : 0;
  to += done * stride;
  switch (dtype) {
#define TENON_CASE(id, Type) \
  case TENON_DTYPE_##id:     \
    return narrow_as<Type>(from + done, to, stride, n - done);
    TENON_SMALL_FLOATS(TENON_CASE)
#undef TENON_CASE
  }
}

float widen_one(int dtype, const void* from) {
  float result;
  widen(dtype, static_cast<const char*>(from), 0, &result, 1);
  return result;
}

void narrow_one(int dtype, float x, void* to) { narrow(dtype, &x, static_cast<char*>(to), 0, 1); }

}  // namespace tenon::cpu::TENON_CPU_ISA
