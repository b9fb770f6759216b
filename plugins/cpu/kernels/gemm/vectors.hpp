// SPDX-License-Identifier: Apache-2.0
// The compiler's vector types, as wide as the registers, and parts of them in memory.
#pragma once

#include "simd/isa.hpp"

#include <cstdint>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

template <int64_t Unit>
constexpr int64_t rounded_up(int64_t n) {
  return (n + Unit - 1) / Unit * Unit;
}

// Elements of T in one vector.
template <class T>
inline constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), may_alias));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

#ifdef __AVX512F__
template <int Bytes>
struct MaskOf;
template <>
struct MaskOf<1> {
  using type = __mmask64;
};
template <>
struct MaskOf<2> {
  using type = __mmask32;
};
template <>
struct MaskOf<4> {
  using type = __mmask16;
};
template <>
struct MaskOf<8> {
  using type = __mmask8;
};
#endif

// Some lanes of a vector in memory: the first `count`, or those from `begin` to `end`; the others
// read as zeros. Where the instruction set has no masks, it is always whole vectors: callers
// provide the room.
template <class T>
class Lanes {
 public:
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  // A whole vector, without a mask: those take the place of a multiplication.
  [[gnu::always_inline]] static Vector load_all(const T* from) {
    return *reinterpret_cast<const Unaligned*>(from);
  }
#ifdef __AVX512F__
  using Mask = typename MaskOf<sizeof(T)>::type;
  static constexpr bool kMasked = true;
  Lanes() = default;
  explicit Lanes(int64_t count) : mask_(below(count)) {}
  Lanes(int64_t begin, int64_t end) : mask_(below(end) & ~below(begin)) {}
  static Mask below(int64_t count) {
    if (count <= 0) return 0;
    return static_cast<Mask>(count >= kWidth<T> ? ~uint64_t{0} : (uint64_t{1} << count) - 1);
  }
  Mask mask() const { return mask_; }
  [[gnu::always_inline]] Vector load(const T* from) const {
    if constexpr (sizeof(T) == 1) return Vector(_mm512_maskz_loadu_epi8(mask_, from));
    if constexpr (sizeof(T) == 2) return Vector(_mm512_maskz_loadu_epi16(mask_, from));
    if constexpr (sizeof(T) == 4) return Vector(_mm512_maskz_loadu_epi32(mask_, from));
    if constexpr (sizeof(T) == 8) return Vector(_mm512_maskz_loadu_epi64(mask_, from));
  }
  [[gnu::always_inline]] void store(T* to, Vector x) const {
    if constexpr (sizeof(T) == 1) _mm512_mask_storeu_epi8(to, mask_, __m512i(x));
    if constexpr (sizeof(T) == 2) _mm512_mask_storeu_epi16(to, mask_, __m512i(x));
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_epi32(to, mask_, __m512i(x));
    if constexpr (sizeof(T) == 8) _mm512_mask_storeu_epi64(to, mask_, __m512i(x));
  }

 private:
  Mask mask_;
#else
  static constexpr bool kMasked = false;
  Lanes() = default;
  explicit Lanes(int64_t) {}
  [[gnu::always_inline]] Vector load(const T* from) const { return load_all(from); }
  [[gnu::always_inline]] void store(T* to, Vector x) const {
    *reinterpret_cast<Unaligned*>(to) = x;
  }
#endif
};

}  // namespace tenon::cpu::TENON_CPU_ISA
