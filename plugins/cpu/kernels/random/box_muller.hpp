// SPDX-License-Identifier: Apache-2.0
// Normal numbers from random words by the transform of Box and Muller, in operations that IEEE 754 rounds in
// one way, so that every device has the same bits: sums and products that a compiler cannot contract, fma(), and
// square roots; in float64 quotients, too. plugins/kernel_c/kernels/random.c does the same.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace tenon::cpu {
namespace detail {

// c[0] + x * (c[1] + ...), by recursion: loops around it would not be vectorised with a loop inside.
template <int kFirst = 0, class T, int kCount>
[[gnu::always_inline]] inline T polynomial(T x, const T (&c)[kCount]) {
  if constexpr (kFirst == kCount - 1)
    return c[kFirst];
  else
    return std::fma(x, polynomial<kFirst + 1>(x, c), c[kFirst]);
}

// sin(pi/2 y) = y P(y^2) and cos(pi/2 y) = 1 + y^2 Q(y^2) for y in [-1/2, 1/2], times `radius`, turned by
// `quarter` quarters of a circle: the cosine of the angle and its sine.
template <class T, class Bits, int kSine, int kCosine>
[[gnu::always_inline]] inline void turned(T y, Bits quarter, T radius, const T (&p)[kSine],
                                          const T (&q)[kCosine], T* out) {
  using Unsigned = std::make_unsigned_t<Bits>;
  constexpr int kSign = 8 * sizeof(T) - 2;
  const T square = y * y;
  const T sine = y * polynomial(square, p), cosine = std::fma(square, polynomial(square, q), T(1));
  const bool odd = quarter & 1;
  const auto signed_by = [](T x, Bits bit) {
    return std::bit_cast<T>(std::bit_cast<Unsigned>(x) ^ (static_cast<Unsigned>(bit & 2) << kSign));
  };
  out[0] = radius * signed_by(odd ? sine : cosine, quarter + 1);
  out[1] = radius * signed_by(odd ? cosine : sine, quarter);
}

// Two normal numbers of two words. The uniform number 1 - u is above 0.
[[gnu::always_inline]] inline void normal_pair(uint32_t for_radius, uint32_t for_angle,
                                               float* out) {
  // (log(1 + f) - f) / f^2 for 1 + f from sqrt(1/2) to sqrt(2).
  constexpr float kLog[] = {-0.4999999765f, 0.3333333003f,  -0.2500078124f,
                            0.2000123446f,  -0.1662664563f, 0.1420485595f,
                            -0.1312755565f, 0.1272267279f,  -0.07673641502f};
  constexpr float kSine[] = {1.570796321953237f, -0.6459634776648118f, 0.07968021764775541f,
                             -0.004602149212814176f};
  constexpr float kCosine[] = {-1.233700549374219f, 0.2536694103571085f, -0.02086152834219997f,
                               0.0009067398984032666f};
  const float v = 1 - static_cast<float>(static_cast<int32_t>(for_radius >> 8)) * 0x1p-24f;
  const auto bits = std::bit_cast<int32_t>(v);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float f = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1;
  const auto e = static_cast<float>(exponent);
  float log = std::fma(f * f, polynomial(f, kLog), f);
  log = std::fma(e, 0.693147182f, std::fma(e, -1.904654323e-9f, log));
  const auto angle = static_cast<int32_t>(for_angle >> 8);
  const int32_t quarter = (angle + (1 << 21)) >> 22;
  const float y = static_cast<float>(angle - quarter * (1 << 22)) * 0x1p-22f;
  turned(y, quarter, std::sqrt(-2 * log), kSine, kCosine, out);
}

// The same of twice two words, in float64: the logarithm as 2 atanh(f / (2 + f)).
[[gnu::always_inline]] inline void normal_pair(uint64_t for_radius, uint64_t for_angle,
                                               double* out) {
  constexpr double kLog[] = {0.6666666666666666646, 0.4000000000000087698, 0.2857142857080361181,
                             0.2222222239171391744, 0.1818179564013290628, 0.1538623970281465819,
                             0.1326877313865688518, 0.1308662614784010214};
  constexpr double kSine[] = {1.570796326794896614,     -0.6459640975062443157,
                              0.07969262624604300313,   -0.004681754132340975992,
                              0.0001604411507421909105, -3.598643352982309702e-6,
                              5.633933781537853954e-8};
  constexpr double kCosine[] = {-1.233700550136169827,      0.2536695079010478232,
                                -0.02086348076334077252,    0.0009192602745468446187,
                                -0.00002520203902802917611, 4.710678405505227106e-7,
                                -6.329396344967423512e-9};
  const double v = 1 - static_cast<double>(static_cast<int64_t>(for_radius >> 11)) * 0x1p-53;
  const auto bits = std::bit_cast<int64_t>(v);
  const int64_t exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;
  const double f = std::bit_cast<double>(bits - exponent * (int64_t{1} << 52)) - 1;
  const auto e = static_cast<double>(exponent);
  const double s = f / (2 + f), z = s * s;
  double log = std::fma(s * z, polynomial(z, kLog), 2 * s);
  log = std::fma(e, 0.693147180559945286, std::fma(e, 2.31904681384629956e-17, log));
  const auto angle = static_cast<int64_t>(for_angle >> 11);
  const int64_t quarter = (angle + (int64_t{1} << 50)) >> 51;
  const double y = static_cast<double>(angle - quarter * (int64_t{1} << 51)) * 0x1p-51;
  turned(y, quarter, std::sqrt(-2 * log), kSine, kCosine, out);
}

// out[i] = mean + std * normal number i, for `pairs` pairs: in loops that compilers vectorise.
template <class T>
[[gnu::always_inline]] inline void fill_normal(const uint32_t* words, int64_t pairs, T mean, T std,
                                               T* out) {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int64_t kPairs = 64;
  Word for_radius[kPairs], for_angle[kPairs];
  T cosines[kPairs], sines[kPairs];
  for (int64_t first = 0; first < pairs; first += kPairs) {
    const int64_t count = std::min(kPairs, pairs - first);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (sizeof(T) == 4) {
        const uint32_t* of = words + 2 * (first + i);
        for_radius[i] = of[0];
        for_angle[i] = of[1];
      } else {
        const uint32_t* of = words + 4 * (first + i);
        for_radius[i] = uint64_t{of[1]} << 32 | of[0];
        for_angle[i] = uint64_t{of[3]} << 32 | of[2];
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      T numbers[2];
      normal_pair(for_radius[i], for_angle[i], numbers);
      cosines[i] = std::fma(std, numbers[0], mean);
      sines[i] = std::fma(std, numbers[1], mean);
    }
    T* to = out + 2 * first;
    for (int64_t i = 0; i < count; ++i) {
      to[2 * i] = cosines[i];
      to[2 * i + 1] = sines[i];
    }
  }
}

template <class T>
using FillNormal = void (*)(const uint32_t* words, int64_t pairs, T mean, T std, T* out);
template <class T>
void fill_normal_plain(const uint32_t* words, int64_t pairs, T mean, T std, T* out) {
  fill_normal(words, pairs, mean, std, out);
}
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
// All of it is rounded alike in registers of any width, so these functions alone are compiled for wide ones in a
// file that is compiled once.
template <class T>
[[gnu::target("avx2,fma")]] void fill_normal_avx2(const uint32_t* words, int64_t pairs, T mean,
                                                  T std, T* out) {
  fill_normal(words, pairs, mean, std, out);
}
template <class T>
[[gnu::target("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")]] void
fill_normal_avx512(const uint32_t* words, int64_t pairs, T mean, T std, T* out) {
  fill_normal(words, pairs, mean, std, out);
}
template <class T>
FillNormal<T> widest_normal() {
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2"))
    return fill_normal_plain<T>;
  return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512bw")
             ? fill_normal_avx512<T>
             : fill_normal_avx2<T>;
}
#else
template <class T>
FillNormal<T> widest_normal() {
  return fill_normal_plain<T>;
}
#endif

}  // namespace detail

// mean + std * x for normal numbers x: out[2 i] and out[2 i + 1] from two words in float32, and from four in
// float64.
template <class T>
void normal_numbers(const uint32_t* words, int64_t pairs, T mean, T std, T* out) {
  static const detail::FillNormal<T> widest = detail::widest_normal<T>();
  widest(words, pairs, mean, std, out);
}

}  // namespace tenon::cpu
