// SPDX-License-Identifier: Apache-2.0
// Vec<T>: a SIMD register of T, with the operations that the vector types of the compiler lack:
// masks of comparisons as bits, and compression (moving selected elements to the front).
#pragma once

#include "simd/isa.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// The register type of T, and the integer vector that a comparison of two such registers returns.
template <class T>
struct Vec {
  static constexpr int count = kVectorBytes / static_cast<int>(sizeof(T));
  using Index =
      std::conditional_t<sizeof(T) == 8, int64_t,
                         std::conditional_t<sizeof(T) == 4, int32_t,
                                            std::conditional_t<sizeof(T) == 2, int16_t, int8_t>>>;
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  typedef Index Indices __attribute__((vector_size(kVectorBytes)));

  static Vector load(const T* from) {
    Vector result;
    std::memcpy(&result, from, sizeof result);
    return result;
  }
  static void store(T* to, Vector x) { std::memcpy(to, &x, sizeof x); }
  static Indices iota() {
    Indices result;
    for (int i = 0; i < count; ++i) result[i] = static_cast<Index>(i);
    return result;
  }
};

// Returns the result of a comparison of elements of 4 or 8 bytes as bits: bit i is element i.
template <class Indices>
inline uint32_t mask_bits(Indices mask) {
  constexpr bool wide = sizeof(mask[0]) == 8;
#if defined(__AVX512F__)
  const __m512i bits = reinterpret_cast<__m512i>(mask);
  if constexpr (wide) return _mm512_movepi64_mask(bits);
  return _mm512_movepi32_mask(bits);
#elif defined(__AVX__)
  const __m256i bits = reinterpret_cast<__m256i>(mask);
  return static_cast<uint32_t>(wide ? _mm256_movemask_pd(_mm256_castsi256_pd(bits))
                                    : _mm256_movemask_ps(_mm256_castsi256_ps(bits)));
#elif defined(__SSE2__)
  const __m128i bits = reinterpret_cast<__m128i>(mask);
  return static_cast<uint32_t>(wide ? _mm_movemask_pd(_mm_castsi128_pd(bits))
                                    : _mm_movemask_ps(_mm_castsi128_ps(bits)));
#elif defined(__aarch64__)
  // NEON moves no mask to a register of integers: each element keeps the bit of its place, and the
  // sum across the register joins them.
  if constexpr (wide) {
    constexpr uint64_t bits[2] = {1, 2};
    return static_cast<uint32_t>(vaddvq_u64(vandq_u64(uint64x2_t(mask), vld1q_u64(bits))));
  } else {
    constexpr uint32_t bits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(uint32x4_t(mask), vld1q_u32(bits)));
  }
#else
  uint32_t result = 0;
  for (size_t i = 0; i < sizeof mask / sizeof mask[0]; ++i) result |= uint32_t{mask[i] != 0} << i;
  return result;
#endif
}

// Compares two registers of floats: true where either element is NaN. Results can be combined with
// |.
template <class Vector>
inline auto unordered(Vector a, Vector b) {
  [[maybe_unused]] constexpr bool wide = sizeof(a[0]) == 8;
#if defined(__AVX512F__)
  if constexpr (wide) {
    return _mm512_cmp_pd_mask(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b),
                              _CMP_UNORD_Q);
  } else {
    return _mm512_cmp_ps_mask(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b),
                              _CMP_UNORD_Q);
  }
#elif defined(__AVX__)
  using Mask = typename Vec<std::remove_cvref_t<decltype(a[0])>>::Indices;
  if constexpr (wide) {
    return reinterpret_cast<Mask>(
        _mm256_cmp_pd(reinterpret_cast<__m256d>(a), reinterpret_cast<__m256d>(b), _CMP_UNORD_Q));
  } else {
    return reinterpret_cast<Mask>(
        _mm256_cmp_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), _CMP_UNORD_Q));
  }
#else
  return (a != a) | (b != b);
#endif
}

// Whether the result of unordered() is true for any element.
template <class Mask>
inline bool any_of(Mask answer) {
  if constexpr (std::is_integral_v<Mask>) {
    return answer != 0;
  } else {
    return mask_bits(answer) != 0;
  }
}

// Returns a word whose bit i says that byte i of 64 is not zero.
inline uint64_t nonzero_bits(const uint8_t* bytes) {
#if defined(__AVX512BW__)
  const __m512i all = _mm512_loadu_si512(bytes);
  return _mm512_test_epi8_mask(all, all);
#elif defined(__SSE2__)
  uint64_t zero = 0;
  for (int i = 0; i < 64; i += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
    const int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(part, _mm_setzero_si128()));
    zero |= static_cast<uint64_t>(static_cast<uint32_t>(bits)) << i;
  }
  return ~zero;
#elif defined(__aarch64__)
  // Each byte keeps the bit of its place within eight; three sums of neighbours join eight bytes.
  constexpr uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto part = [bytes, place = vld1q_u8(bits)](int i) {
    const uint8x16_t x = vld1q_u8(bytes + i);
    return vandq_u8(vtstq_u8(x, x), place);
  };
  const uint8x16_t pairs = vpaddq_u8(part(0), part(16)), others = vpaddq_u8(part(32), part(48));
  const uint8x16_t fours = vpaddq_u8(pairs, others);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)), 0);
#else
  uint64_t result = 0;
  for (int i = 0; i < 64; ++i) result |= uint64_t{bytes[i] != 0} << i;
  return result;
#endif
}

// Whether the instruction set can compress registers of elements of this size.
#if defined(__AVX512F__) || defined(__AVX2__) || defined(__aarch64__)
inline constexpr bool can_compress(int bytes) { return bytes == 4 || bytes == 8; }
#else
inline constexpr bool can_compress(int) { return false; }
#endif

#if !defined(__AVX512F__) && defined(__AVX2__)
// For each mask of eight elements of 4 bytes: the indices of the selected elements, in order. AVX2
// has no compress instruction; a permutation by this table takes its place.
struct CompressOrders {
  alignas(64) uint8_t of[256][8] = {};
  constexpr CompressOrders() {
    for (int choice = 0; choice < 256; ++choice) {
      for (int lane = 0, at = 0; lane < 8; ++lane) {
        if (choice >> lane & 1) of[choice][at++] = static_cast<uint8_t>(lane);
      }
    }
  }
};
inline constexpr CompressOrders kCompressOrders;
// Masks of four elements of 8 bytes as masks of eight elements of 4.
inline constexpr uint8_t kPairs[16] = {0x00, 0x03, 0x0c, 0x0f, 0x30, 0x33, 0x3c, 0x3f,
                                       0xc0, 0xc3, 0xcc, 0xcf, 0xf0, 0xf3, 0xfc, 0xff};
#elif defined(__aarch64__)
// For each mask of four elements of 4 bytes: where the bytes of the selected elements are, in order.
// Bytes from a place outside of the register are zero.
struct CompressOrders {
  alignas(64) uint8_t of[16][16];
  constexpr CompressOrders() {
    for (int choice = 0; choice < 16; ++choice) {
      int at = 0;
      for (int byte = 0; byte < 16; ++byte) {
        if (choice >> byte / 4 & 1) of[choice][at++] = static_cast<uint8_t>(byte);
      }
      while (at < 16) of[choice][at++] = 0xff;
    }
  }
};
inline constexpr CompressOrders kCompressOrders;
// Masks of two elements of 8 bytes as masks of four elements of 4.
inline constexpr uint8_t kPairs[4] = {0x0, 0x3, 0xc, 0xf};
#endif

// Moves the elements selected by `mask` to the front, in order. The remaining elements are
// undefined.
template <class Vector>
inline Vector compressed(Vector x, uint32_t mask) {
  constexpr bool wide = sizeof(x[0]) == 8;
#if defined(__AVX512F__)
  const __m512i bits = reinterpret_cast<__m512i>(x);
  if constexpr (wide) {
    return reinterpret_cast<Vector>(_mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), bits));
  }
  return reinterpret_cast<Vector>(_mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), bits));
#elif defined(__AVX2__)
  const uint8_t* order = kCompressOrders.of[wide ? kPairs[mask] : mask];
  const __m256i shuffle =
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(order)));
  return reinterpret_cast<Vector>(
      _mm256_permutevar8x32_epi32(reinterpret_cast<__m256i>(x), shuffle));
#elif defined(__aarch64__)
  const uint8_t* order = kCompressOrders.of[wide ? kPairs[mask] : mask];
  return Vector(vqtbl1q_u8(uint8x16_t(x), vld1q_u8(order)));
#else
  static_assert(wide && !wide, "no instructions to pack with");
#endif
}

}  // namespace tenon::cpu::TENON_CPU_ISA
