// SPDX-License-Identifier: Apache-2.0
// How products multiply: which elements the operands have, what they are packed into, and what one
// step of the sums is. A format says:
//
//   kName        which arithmetic it is, for trace.hpp
//   Left, Right  elements of A and B as they lie in memory
//   Packed       elements after packing, each of kDepth sources along k
//   Sum          elements of C
//   Product      the format whose micro-kernel multiplies what this one packs
//   Swapped      the format of B A
//   kStart       sums of a row of A start from a number that comes with it
//   spread, add  the step of the micro-kernel: one element of A, a vector of B
//   Operand      for dot products: kOperand sources along k; operand() reads them
//   elements     sources as a vector of sums
//   kStreamRows  up to so many rows of A, elements of B are not worth packing
//   kTiles       (optional) the processor multiplies whole tiles: gemm_amx.hpp
#pragma once

#include "elementwise/low_precision.hpp"
#include "gemm/vectors.hpp"

#include <bit>
#include <cstdint>
#include <type_traits>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

template <class Format>
inline constexpr bool by_tiles = requires {
  Format::kTiles;
};

// A vector of sums to elements of C.
template <class T>
[[gnu::always_inline]] inline void store_sums(const Lanes<T>& lanes, T* to,
                                              typename VectorOf<T>::type sum, bool accumulate) {
  lanes.store(to, accumulate ? lanes.load(to) + sum : sum);
}

template <class T>
struct Plain {
  static constexpr const char* kName = "native";
  using Left = T;
  using Right = T;
  using Packed = T;
  using Sum = T;
  using Product = Plain;
  using Swapped = Plain;
  using Vector = typename VectorOf<T>::type;
  using Operand = Vector;
  static constexpr int kDepth = 1;
  static constexpr bool kStart = false;
  static constexpr int kOperand = kWidth<T>;
  static constexpr int64_t kStreamRows = 8;
  static T value(T source) { return source; }
  [[gnu::always_inline]] static T spread(const T* a) { return *a; }
  // `a` is a number or a vector.
  template <class A>
  [[gnu::always_inline]] static void add(Vector& sum, A a, Vector b) {
    sum += a * b;
  }
  [[gnu::always_inline]] static Operand operand(const T* from, int64_t count = kOperand) {
    return Lanes<T>(count).load(from);
  }
  [[gnu::always_inline]] static Vector elements(const T* from, int64_t count = kOperand) {
    return operand(from, count);
  }
  [[gnu::always_inline]] static void dot(Vector& sum, Operand x, Operand y) { sum += x * y; }
};

// Half is Float16 or BFloat16, multiplied as float32.
template <class Half>
struct Widened : Plain<float> {
  static constexpr const char* kName = "float32";
  using Left = Half;
  using Right = Half;
  using Product = Plain<float>;
  using Swapped = Widened;
  static float value(Half source) { return source; }
  [[gnu::always_inline]] static Operand operand(const Half* from, int64_t count = kOperand) {
    return operand(from, Lanes<float>(count));
  }
  [[gnu::always_inline]] static Operand operand(const Half* from,
                                                [[maybe_unused]] const Lanes<float>& lanes) {
    typedef uint16_t Bits __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
#ifdef __AVX512F__
    const auto bits = _mm256_maskz_loadu_epi16(lanes.mask(), from);
#else
    const Bits bits = *reinterpret_cast<const Bits*>(from);
#endif
    if constexpr (std::is_same_v<Half, BFloat16>) {
      using Wide = VectorOf<uint32_t>::type;
      return Operand(__builtin_convertvector(Bits(bits), Wide) << 16);
    } else {
#if defined(__AVX512F__)
      return Operand(_mm512_maskz_cvtph_ps(0xffff, bits));
#elif defined(__F16C__)
      return Operand(_mm256_cvtph_ps(__m128i(bits)));
#else
      Operand wide{};
      for (int l = 0; l < kOperand; ++l) wide[l] = from[l];
      return wide;
#endif
    }
  }
  [[gnu::always_inline]] static Vector elements(const Half* from, int64_t count = kOperand) {
    return operand(from, count);
  }
};

#ifdef __AVX512F__
// Two bfloat16 along k in 32 bits, lower index first; sums in float32. Needs AVX512-BF16, which the
// build does not ask of the processor: hence the instruction by name. Whoever uses it has asked.
struct Bfloat16Pairs : Widened<BFloat16> {
  static constexpr const char* kName = "AVX512-BF16";
  using Packed = uint32_t;
  using Product = Bfloat16Pairs;
  using Swapped = Bfloat16Pairs;
  using Operand = VectorOf<uint32_t>::type;
  static constexpr int kDepth = 2;
  static constexpr int kOperand = kWidth<uint16_t>;
  static constexpr int64_t kStreamRows = 2;
  [[gnu::always_inline]] static Operand spread(const uint32_t* a) { return *a - Operand{}; }
  [[gnu::always_inline]] static void add(Vector& sum, Operand a, Operand b) {
    // The operand is a local variable: an array element that the statement wrote in place would stay
    // in memory, because the compiler replaces arrays by registers only where assignments write them.
    Vector result = sum;
    asm("vdpbf16ps %2, %1, %0" : "+v"(result) : "v"(a), "v"(b));
    sum = result;
  }
  [[gnu::always_inline]] static Operand operand(const BFloat16* from, int64_t count = kOperand) {
    return Operand(Lanes<uint16_t>(count).load(reinterpret_cast<const uint16_t*>(from)));
  }
  [[gnu::always_inline]] static void dot(Vector& sum, Operand x, Operand y) { add(sum, x, y); }
};

[[gnu::always_inline]] inline void store_sums(const Lanes<float>& lanes, BFloat16* to,
                                              VectorOf<float>::type sum, bool accumulate) {
  if (accumulate) sum += Widened<BFloat16>::operand(to, lanes);
  __m256i rounded;
  asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(sum));
  _mm256_mask_storeu_epi16(to, lanes.mask(), rounded);
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
