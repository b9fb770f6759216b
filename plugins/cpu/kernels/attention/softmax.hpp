// SPDX-License-Identifier: Apache-2.0
// Maximum of a row of scores, exp((score - maximum) * scale), and the sum of these: the steps of
// the online softmax. The difference comes first, and is exactly 0 for the maximum: in
// score * scale - maximum * scale a rounding of the products remains, which leaves the range of
// exp where a mask adds numbers such as -1e30.
#pragma once

#include "gemm/small_m.hpp"
#include "norm/softmax_exp.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// Whether probabilities are rounded to pairs of 16-bit floats before they are multiplied.
template <class Format>
inline constexpr bool rounds_probs = Format::kDepth > 1;

// The maximum of n scores. n is a multiple of the vector width.
template <class Sum>
Sum max_score(const Sum* x, int64_t n) {
  using Vector = typename VectorOf<Sum>::type;
  constexpr int64_t width = kWidth<Sum>;
  const auto at = [=](int64_t j) { return VecMask<Sum>::load_all(x + j); };
  const auto larger = [](Vector a, Vector b) { return a > b ? a : b; };
  Vector first = at(0), second = first;
  int64_t j = width;
  for (; j + width < n; j += 2 * width) {
    first = larger(first, at(j));
    second = larger(second, at(j + width));
  }
  if (j < n) first = larger(first, at(j));
  first = larger(first, second);
  alignas(kVectorBytes) Sum partial[width];
  VecMask<Sum>(width).store(partial, first);
#pragma GCC unroll 6
  for (int half = width / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) partial[l] = std::max(partial[l], partial[l + half]);
  }
  return partial[0];
}

// Replaces n scores by exp((score - largest) * scale) and returns the sum. n is a multiple of the vector
// width.
template <class Sum>
Sum exp_scores(Sum* x, int64_t n, Sum scale, Sum largest) {
#pragma GCC ivdep
  for (int64_t j = 0; j < n; ++j) x[j] = softmax_exp((x[j] - largest) * scale);
  const VecMask<Sum> all(kWidth<Sum>);
  typename VectorOf<Sum>::type sum{};
  for (int64_t j = 0; j < n; j += kWidth<Sum>) sum += all.load(x + j);
  return sum_of<Sum>(sum);
}

#ifdef __AVX512F__
// The same, rounded to bfloat16 into `to`. 2^x comes from a polynomial with an error of 2^-18.5,
// which is enough for 8 bits. Needs AVX512-BF16.
inline float exp_scores(const float* x, int64_t n, float scale, float largest, BFloat16* to) {
  using Vector = VectorOf<float>::type;
  constexpr float log2e = 1.44269504f, lowest = -125.0f;
  const float factor = scale * log2e;
  const auto probs = [=](int64_t j) {
    const Vector power = (VecMask<float>::load_all(x + j) - largest) * factor;
    const __m512 whole = _mm512_maskz_roundscale_ps(0xffff, __m512(power), 0);
    const Vector r = power - Vector(whole);
    const Vector part = ((0.0095701f * r + 0.05591786f) * r + 0.24024744f) * (r * r) +
                        (0.6931218f * r + 0.9999993f);
    // Not less, so that NaN stays.
    const __mmask16 visible =
        _mm512_cmp_ps_mask(__m512(power), _mm512_set1_ps(lowest), _CMP_NLT_UQ);
    return Vector(_mm512_maskz_scalef_ps(visible, __m512(part), whole));
  };
  Vector first{}, second{};
  const auto store = [=](int64_t j, Vector w) {
    __m256i rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(w));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j), rounded);
  };
  int64_t j = 0;
  for (; j + 16 < n; j += 32) {
    const Vector a = probs(j), b = probs(j + 16);
    first += a;
    second += b;
    store(j, a);
    store(j + 16, b);
  }
  if (j < n) {
    const Vector a = probs(j);
    first += a;
    store(j, a);
  }
  return sum_of<float>(first + second);
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
