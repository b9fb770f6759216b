// SPDX-License-Identifier: Apache-2.0
// The innermost loop of matrix products: an M x V tile of C, V in vectors, kept in registers while
// it runs along k. Written with the compiler's vector types, so that one source serves every
// instruction set and every element type that vectors exist for.
#pragma once

#include "isa.hpp"

#include <bit>
#include <cstdint>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// Elements of T in one vector.
template <class T>
inline constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));

// The register tile: accumulators, two vectors of B and one of A fill the registers.
inline constexpr int kTileRows = kVectorBytes == 64 ? 12 : 6;
inline constexpr int kTileVectors = 2;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes), may_alias));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// How a product multiplies. Source: elements of A and B as they lie in memory. Packed: elements
// after packing, each of kDepth sources along k. Sum: elements of C.
template <class T>
struct Plain {
  using Source = T;
  using Packed = T;
  using Sum = T;
  static constexpr int kDepth = 1;
  using Vector = typename VectorOf<T>::type;
  static T value(T source) { return source; }
  [[gnu::always_inline]] static T spread(const T* a) { return *a; }
  // `a` is a number or a vector.
  template <class A>
  [[gnu::always_inline]] static void add(Vector& sum, A a, Vector b) {
    sum += a * b;
  }
};

#ifdef __AVX512F__
// Two bfloat16 along k in 32 bits, lower index first; sums in float32. Needs AVX512-BF16, which the
// build does not ask of the processor: hence the instruction by name. Whoever uses it has asked.
struct Bfloat16Pairs {
  using Source = uint16_t;
  using Packed = uint32_t;
  using Sum = float;
  static constexpr int kDepth = 2;
  using Vector = VectorOf<uint32_t>::type;
  static float value(uint16_t source) {
    return std::bit_cast<float>(static_cast<uint32_t>(source) << 16);
  }
  [[gnu::always_inline]] static Vector spread(const uint32_t* a) { return *a - Vector{}; }
  [[gnu::always_inline]] static void add(VectorOf<float>::type& sum, Vector a, Vector b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};
#endif

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
#ifdef __AVX512F__
  static constexpr bool kMasked = true;
  Lanes() = default;
  explicit Lanes(int64_t count) : mask_(static_cast<Mask>(below(count))) {}
  Lanes(int64_t begin, int64_t end) : mask_(static_cast<Mask>(below(end) & ~below(begin))) {}
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
  using Mask = typename MaskOf<sizeof(T)>::type;
  static uint64_t below(int64_t count) {
    return count <= 0 ? 0 : count >= kWidth<T> ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  }
  Mask mask_;
#else
  static constexpr bool kMasked = false;
  Lanes() = default;
  explicit Lanes(int64_t) {}
  [[gnu::always_inline]] Vector load(const T* from) const {
    return *reinterpret_cast<const Unaligned*>(from);
  }
  [[gnu::always_inline]] void store(T* to, Vector x) const {
    *reinterpret_cast<Unaligned*>(to) = x;
  }
#endif
};

// C[0..M) x [0..V vectors) = A * B, plus C where `accumulate`; of the last vector only the first
// `last` columns, where the instruction set has masks. k and strides are in packed elements, c_row
// in sums; rows of B are dense.
template <class Format, int M, int V>
[[gnu::noinline]] void micro_kernel(int64_t k, const typename Format::Packed* a, int64_t a_row,
                                    int64_t a_column, const typename Format::Packed* b,
                                    int64_t b_row, typename Format::Sum* c, int64_t c_row,
                                    int64_t last, bool accumulate) {
  using Packed = typename Format::Packed;
  using Sum = typename Format::Sum;
  using Vector = typename VectorOf<Sum>::type;
  constexpr int width = kWidth<Packed>;
  static_assert(sizeof(Packed) == sizeof(Sum));
  const Lanes<Packed> all(width), some(last);
  const Lanes<Sum> all_sums(width), some_sums(last);
  Vector sum[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(c + i * c_row + v * width, 1);
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = Vector{};
  }
  for (int64_t p = 0; p < k; ++p) {
    typename VectorOf<Packed>::type row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = (v + 1 < V ? all : some).load(b + v * width);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) {
      const auto element = Format::spread(a + i * a_row);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) Format::add(sum[i][v], element, row[v]);
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      Sum* to = c + i * c_row + v * width;
      const Lanes<Sum>& lanes = v + 1 < V ? all_sums : some_sums;
      lanes.store(to, accumulate ? lanes.load(to) + sum[i][v] : sum[i][v]);
    }
  }
}

// The kernels of one column count, for every number of rows that a tile may have.
template <class Format>
struct Micro {
  using Packed = typename Format::Packed;
  using Sum = typename Format::Sum;
  void (*run)(int64_t, const Packed*, int64_t, int64_t, const Packed*, int64_t, Sum*, int64_t,
              int64_t, bool);
  int rows;
};

// The largest kernel of at most `rows` rows.
template <class Format, int V>
Micro<Format> choose_micro(int64_t rows) {
  if (rows >= kTileRows) return {micro_kernel<Format, kTileRows, V>, kTileRows};
  if constexpr (kTileRows > 8) {
    if (rows >= 8) return {micro_kernel<Format, 8, V>, 8};
  }
  if (rows >= 4) return {micro_kernel<Format, 4, V>, 4};
  if (rows >= 2) return {micro_kernel<Format, 2, V>, 2};
  return {micro_kernel<Format, 1, V>, 1};
}

// Columns of one panel of B.
template <class Packed>
inline constexpr int64_t kPanel = kTileVectors* kWidth<Packed>;

}  // namespace tenon::cpu::TENON_CPU_ISA
