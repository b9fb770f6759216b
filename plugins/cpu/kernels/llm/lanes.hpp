// SPDX-License-Identifier: Apache-2.0
// 16 floats, in as many registers as they need.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// Sums have the same order on every instruction set.
inline constexpr int kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));

[[gnu::always_inline]] inline Lanes load_lanes(const float* from) {
  Lanes result;
  std::memcpy(&result, from, sizeof result);
  return result;
}

// a * b + c, rounded once where the processor has the instruction.
[[gnu::always_inline]] inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX512F__)
  return Lanes(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#elif defined(__FMA__)
  __m256 x[2], y[2], z[2];
  std::memcpy(x, &a, sizeof x);
  std::memcpy(y, &b, sizeof y);
  std::memcpy(z, &c, sizeof z);
  for (int half = 0; half < 2; ++half) z[half] = _mm256_fmadd_ps(x[half], y[half], z[half]);
  std::memcpy(&c, z, sizeof c);
  return c;
#else
  return a * b + c;
#endif
}

[[gnu::always_inline]] inline float sum_of(Lanes lanes) {
  float sums[kLanes];
  std::memcpy(sums, &lanes, sizeof sums);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

[[gnu::always_inline]] inline Lanes numbers_of(const int8_t* codes) {
#ifdef __AVX512F__
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  return Lanes(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
#else
  Lanes numbers;
  for (int i = 0; i < kLanes; ++i) numbers[i] = static_cast<float>(codes[i]);
  return numbers;
#endif
}

}  // namespace tenon::cpu::TENON_CPU_ISA
