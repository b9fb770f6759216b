// SPDX-License-Identifier: Apache-2.0
// Vectors of the instruction set that this is compiled for, and complex numbers of them.
#pragma once

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define TENON_FFT_INLINE [[gnu::always_inline]] inline

namespace tenon::fft::TENON_FFT_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// A complex number of scalars, or a vector of complex numbers: the real parts, then the imaginary ones.
template <class V>
struct Complex {
  V re, im;
};
template <class V>
TENON_FFT_INLINE Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
TENON_FFT_INLINE Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {a.re - b.re, a.im - b.im};
}
// W is V, or the scalar of its elements.
template <class V, class W>
TENON_FFT_INLINE Complex<V> operator*(Complex<V> a, Complex<W> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class V>
TENON_FFT_INLINE Complex<V> times_minus_i(Complex<V> a) {
  return {a.im, -a.re};
}
template <class V>
TENON_FFT_INLINE Complex<V> swapped(Complex<V> a) {
  return {a.im, a.re};
}

#if defined(__AVX__) && !defined(__AVX512F__)
// kLanes elements with all bits, then as many with none.
template <class T>
using MaskElement = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
template <class T>
inline constexpr auto kMask = [] {
  std::array<MaskElement<T>, 2 * kLanes<T>> mask{};
  for (int l = 0; l < kLanes<T>; ++l) mask[static_cast<size_t>(l)] = -1;
  return mask;
}();
#endif

// Memory need not be aligned to vectors.
template <class T>
TENON_FFT_INLINE Vector<T> load(const T* at) {
  Vector<T> v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
TENON_FFT_INLINE void store(T* at, Vector<T> v) {
  std::memcpy(at, &v, sizeof v);
}

// The first `count` elements, which may be none or more than there are; the others are zeros, or stay. Masks where the
// instruction set has them: a loop here would be compiled into every load of every butterfly.
template <class T>
TENON_FFT_INLINE Vector<T> load_first(const T* at, int64_t count) {
  constexpr int n = kLanes<T>;
  count = std::clamp<int64_t>(count, 0, n);
#if defined(__AVX512F__)
  const uint32_t mask = (uint32_t{1} << count) - 1;
  if constexpr (n == 16)
    return (Vector<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), at);
  else
    return (Vector<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), at);
#elif defined(__AVX__)
  const __m256i mask =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask<T>.data() + n - count));
  if constexpr (n == 8)
    return (Vector<T>)_mm256_maskload_ps(at, mask);
  else
    return (Vector<T>)_mm256_maskload_pd(at, mask);
#else
  Vector<T> v{};
  for (int64_t l = 0; l < count; ++l) v[l] = at[l];
  return v;
#endif
}
template <class T>
TENON_FFT_INLINE void store_first(T* at, Vector<T> v, int64_t count) {
  constexpr int n = kLanes<T>;
  count = std::clamp<int64_t>(count, 0, n);
#if defined(__AVX512F__)
  const uint32_t mask = (uint32_t{1} << count) - 1;
  if constexpr (n == 16)
    _mm512_mask_storeu_ps(at, static_cast<__mmask16>(mask), (__m512)v);
  else
    _mm512_mask_storeu_pd(at, static_cast<__mmask8>(mask), (__m512d)v);
#elif defined(__AVX__)
  const __m256i mask =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask<T>.data() + n - count));
  if constexpr (n == 8)
    _mm256_maskstore_ps(at, mask, (__m256)v);
  else
    _mm256_maskstore_pd(at, mask, (__m256d)v);
#else
  for (int64_t l = 0; l < count; ++l) at[l] = v[l];
#endif
}

// Element i of the result is element index(i) of `a` followed by `b`.
template <class T, class Index>
TENON_FFT_INLINE Vector<T> shuffle(Vector<T> a, Vector<T> b, Index) {
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, Index{}(I)...);
  }
  (std::make_integer_sequence<int, kLanes<T>>{});
}

// kLanes complex numbers that lie one after another.
template <class T>
TENON_FFT_INLINE Complex<Vector<T>> load_interleaved(const T* at) {
  const Vector<T> low = load(at), high = load(at + kLanes<T>);
  return {shuffle<T>(low, high, [](int i) { return 2 * i; }),
          shuffle<T>(low, high, [](int i) { return 2 * i + 1; })};
}
template <class T>
TENON_FFT_INLINE void store_interleaved(T* at, Complex<Vector<T>> z) {
  constexpr int n = kLanes<T>;
  store(at, shuffle<T>(z.re, z.im, [](int i) { return i / 2 + i % 2 * n; }));
  store(at + n, shuffle<T>(z.re, z.im, [](int i) { return (n + i) / 2 + i % 2 * n; }));
}

// The first `count` of them.
template <class T>
TENON_FFT_INLINE Complex<Vector<T>> load_interleaved(const T* at, int64_t count) {
  constexpr int n = kLanes<T>;
  const Vector<T> low = load_first(at, 2 * count), high = load_first(at + n, 2 * count - n);
  return {shuffle<T>(low, high, [](int i) { return 2 * i; }),
          shuffle<T>(low, high, [](int i) { return 2 * i + 1; })};
}
template <class T>
TENON_FFT_INLINE void store_interleaved(T* at, Complex<Vector<T>> z, int64_t count) {
  constexpr int n = kLanes<T>;
  store_first(at, shuffle<T>(z.re, z.im, [](int i) { return i / 2 + i % 2 * n; }), 2 * count);
  store_first(at + n, shuffle<T>(z.re, z.im, [](int i) { return (n + i) / 2 + i % 2 * n; }),
              2 * count - n);
}

// Exchanges element j of vector i and element i of vector j: blocks of half the size, then of a quarter, ...
template <class T, int kBlock = kLanes<T> / 2>
TENON_FFT_INLINE void transpose(Vector<T>* rows) {
  constexpr int n = kLanes<T>;
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (i & kBlock) continue;
    const Vector<T> a = rows[i], b = rows[i + kBlock];
    rows[i] = shuffle<T>(a, b, [](int l) { return l & kBlock ? n + l - kBlock : l; });
    rows[i + kBlock] = shuffle<T>(a, b, [](int l) { return l & kBlock ? n + l : l + kBlock; });
  }
  if constexpr (kBlock > 1) transpose<T, kBlock / 2>(rows);
}

}  // namespace tenon::fft::TENON_FFT_ISA
