// SPDX-License-Identifier: Apache-2.0
// Formats describe the arithmetic of a GEMM: the element types of the operands, their packed form,
// and one multiply-accumulate step. A format has these members:
//
//   kName              name of the arithmetic, for trace.hpp
//   Left, Right        element types of A and B in memory
//   Packed             packed element, which holds kDepth sources along k
//   Accumulator        element type of C
//   Product            format whose micro-kernel multiplies what this one packs
//   Swapped            format of B A
//   kStart             accumulators of a row of A start from a number that belongs to the row
//   broadcast, add     one step of the micro-kernel: an element of A times a vector of B
//   Operand, operand   for dot products: a vector of kOperand sources along k, and its load
//   elements           loads sources as a vector of accumulators
//   kMaxStreamRows     up to this many rows of A, packing B does not pay off
//   kAmx               (optional) the format multiplies AMX tiles: amx_formats.hpp
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
inline constexpr bool uses_amx = requires {
  Format::kAmx;
};

// Stores a vector of accumulators to elements of C, plus what lies at `addend`.
template <class T>
[[gnu::always_inline]] inline void store_accumulators(const VecMask<T>& mask, T* to,
                                                      typename VectorOf<T>::type acc,
                                                      const T* addend) {
  mask.store(to, addend ? mask.load(addend) + acc : acc);
}

template <class T>
struct Plain {
  static constexpr const char* kName = "native";
  using Left = T;
  using Right = T;
  using Packed = T;
  using Accumulator = T;
  using Product = Plain;
  using Swapped = Plain;
  using Vector = typename VectorOf<T>::type;
  using Operand = Vector;
  static constexpr int kDepth = 1;
  static constexpr bool kStart = false;
  static constexpr int kOperand = kWidth<T>;
  static constexpr int64_t kMaxStreamRows = 8;
  static T value(T source) { return source; }
  [[gnu::always_inline]] static T broadcast(const T* a) { return *a; }
  // `a` is a number or a vector.
  template <class A>
  [[gnu::always_inline]] static void add(Vector& acc, A a, Vector b) {
    acc += a * b;
  }
  [[gnu::always_inline]] static Operand operand(const T* from, int64_t count = kOperand) {
    return VecMask<T>(count).load(from);
  }
  [[gnu::always_inline]] static Vector elements(const T* from, int64_t count = kOperand) {
    return operand(from, count);
  }
  [[gnu::always_inline]] static void dot(Vector& acc, Operand x, Operand y) { acc += x * y; }
};

// T16 is Float16 or BFloat16; its elements are converted and multiplied as float32.
template <class T16>
struct Widened : Plain<float> {
  static constexpr const char* kName = "float32";
  using Left = T16;
  using Right = T16;
  using Product = Plain<float>;
  using Swapped = Widened;
  static float value(T16 source) { return source; }
  [[gnu::always_inline]] static Operand operand(const T16* from, int64_t count = kOperand) {
    return operand(from, VecMask<float>(count));
  }
  [[gnu::always_inline]] static Operand operand(const T16* from,
                                                [[maybe_unused]] const VecMask<float>& mask) {
    typedef uint16_t Bits __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
#ifdef __AVX512F__
    const auto bits = _mm256_maskz_loadu_epi16(mask.mask(), from);
#else
    const Bits bits = *reinterpret_cast<const Bits*>(from);
#endif
    if constexpr (std::is_same_v<T16, BFloat16>) {
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
  [[gnu::always_inline]] static Vector elements(const T16* from, int64_t count = kOperand) {
    return operand(from, count);
  }
};

#ifdef __AVX512F__
// Pairs of bfloat16 along k in 32 bits, lower index first, with float32 accumulators. This needs
// AVX512-BF16, which the build does not assume, so inline assembly names the instruction. The
// caller has checked has_avx512_bf16().
struct Bfloat16Pairs : Widened<BFloat16> {
  static constexpr const char* kName = "AVX512-BF16";
  using Packed = uint32_t;
  using Product = Bfloat16Pairs;
  using Swapped = Bfloat16Pairs;
  using Operand = VectorOf<uint32_t>::type;
  static constexpr int kDepth = 2;
  static constexpr int kOperand = kWidth<uint16_t>;
  static constexpr int64_t kMaxStreamRows = 2;
  [[gnu::always_inline]] static Operand broadcast(const uint32_t* a) { return *a - Operand{}; }
  [[gnu::always_inline]] static void add(Vector& acc, Operand a, Operand b) {
    // The operand is a local variable: an array element that the statement wrote in place would
    // stay in memory, because the compiler replaces arrays by registers only where assignments
    // write them.
    Vector result = acc;
    asm("vdpbf16ps %2, %1, %0" : "+v"(result) : "v"(a), "v"(b));
    acc = result;
  }
  [[gnu::always_inline]] static Operand operand(const BFloat16* from, int64_t count = kOperand) {
    return Operand(VecMask<uint16_t>(count).load(reinterpret_cast<const uint16_t*>(from)));
  }
  [[gnu::always_inline]] static void dot(Vector& acc, Operand x, Operand y) { add(acc, x, y); }
};

[[gnu::always_inline]] inline void store_accumulators(const VecMask<float>& mask, BFloat16* to,
                                                      VectorOf<float>::type acc,
                                                      const BFloat16* addend) {
  if (addend) acc += Widened<BFloat16>::operand(addend, mask);
  __m256i rounded;
  asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(acc));
  _mm256_mask_storeu_epi16(to, mask.mask(), rounded);
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
