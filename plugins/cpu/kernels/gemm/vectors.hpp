// SPDX-License-Identifier: Apache-2.0
// The compiler's vector types, as wide as the registers, and masked loads and stores.
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
struct MaskBits;
template <>
struct MaskBits<1> {
  using type = __mmask64;
};
template <>
struct MaskBits<2> {
  using type = __mmask32;
};
template <>
struct MaskBits<4> {
  using type = __mmask16;
};
template <>
struct MaskBits<8> {
  using type = __mmask8;
};
#endif

// A mask for the first `count` elements of a vector in memory, or for elements [begin, end); the
// others read as zeros. Without masks in the instruction set, loads and stores are whole vectors,
// and callers provide the room.
template <class T>
class VecMask {
 public:
  using Vector = typename VectorOf<T>::type;
  using Unaligned = typename VectorOf<T>::unaligned;
  // Loads a whole vector without a mask: setting up a mask takes an issue slot from a
  // multiplication.
  [[gnu::always_inline]] static Vector load_all(const T* from) {
    return *reinterpret_cast<const Unaligned*>(from);
  }
#ifdef __AVX512F__
  using Mask = typename MaskBits<sizeof(T)>::type;
  static constexpr bool kMasked = true;
  VecMask() = default;
  explicit VecMask(int64_t count) : mask_(below(count)) {}
  VecMask(int64_t begin, int64_t end) : mask_(below(end) & ~below(begin)) {}
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
  VecMask() = default;
  explicit VecMask(int64_t) {}
  [[gnu::always_inline]] Vector load(const T* from) const { return load_all(from); }
  [[gnu::always_inline]] void store(T* to, Vector x) const {
    *reinterpret_cast<Unaligned*>(to) = x;
  }
#endif
};

}  // namespace tenon::cpu::TENON_CPU_ISA
