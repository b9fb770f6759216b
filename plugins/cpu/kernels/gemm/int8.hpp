// SPDX-License-Identifier: Apache-2.0
// Formats for GEMM of 8-bit integers: L and R are int8_t or uint8_t, accumulators are int32.
#pragma once

#include "gemm/pack.hpp"
#include "gemm/small_m.hpp"

#include <type_traits>

#ifdef __aarch64__
#include <arm_neon.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

// Pairs of int16 along k in 32 bits, lower index first.
struct Int16Pairs {
  static constexpr const char* kName = "int16 pairs";
  using Packed = uint32_t;
  using Accumulator = int32_t;
  using Vector = VectorOf<int32_t>::type;
  using Operand = VectorOf<uint32_t>::type;
  static constexpr int kDepth = 2;
  static constexpr bool kStart = false;
  [[gnu::always_inline]] static Operand broadcast(const uint32_t* a) { return *a - Operand{}; }
  [[gnu::always_inline]] static void add(Vector& acc, Operand a, Operand b) {
#if defined(__AVX512F__)
    acc += Vector(_mm512_madd_epi16(__m512i(a), __m512i(b)));
#elif defined(__AVX2__)
    acc += Vector(_mm256_madd_epi16(__m256i(a), __m256i(b)));
#elif defined(__SSE2__)
    acc += Vector(_mm_madd_epi16(__m128i(a), __m128i(b)));
#elif defined(__aarch64__)
    const int16x8_t x = int16x8_t(a), y = int16x8_t(b);
    acc += Vector(vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
#else
    acc +=
        (Vector(a) << 16 >> 16) * (Vector(b) << 16 >> 16) + (Vector(a) >> 16) * (Vector(b) >> 16);
#endif
  }
};

// 8-bit integers widened to 16 bits. Every instruction set multiplies such pairs and adds the two
// products exactly.
template <class L, class R>
struct Int8Pairs : Int16Pairs {
  using Left = L;
  using Right = R;
  using Product = Int16Pairs;
  using Swapped = Int8Pairs<R, L>;
  static constexpr int kOperand = kWidth<int16_t>;
  static constexpr int64_t kMaxStreamRows = 2;
  template <class T>
  static int32_t value(T source) {
    return source;
  }
  template <class T>
  [[gnu::always_inline]] static Operand operand(const T* from,
                                                [[maybe_unused]] int64_t count = kOperand) {
    typedef T Bytes __attribute__((vector_size(kOperand), aligned(1), may_alias));
#ifdef __AVX512F__
    const Bytes bytes = Bytes(_mm256_maskz_loadu_epi8(VecMask<int16_t>::below(count), from));
#else
    const Bytes bytes = *reinterpret_cast<const Bytes*>(from);
#endif
    return Operand(__builtin_convertvector(bytes, VectorOf<int16_t>::type));
  }
  [[gnu::always_inline]] static Vector elements(const R* from,
                                                [[maybe_unused]] int64_t count = 64) {
    typedef R Bytes __attribute__((vector_size(kWidth<int32_t>), aligned(1), may_alias));
#ifdef __AVX512F__
    const Bytes bytes = Bytes(_mm_maskz_loadu_epi8(VecMask<int32_t>::below(count), from));
#else
    const Bytes bytes = *reinterpret_cast<const Bytes*>(from);
#endif
    return __builtin_convertvector(bytes, Vector);
  }
  [[gnu::always_inline]] static void dot(Vector& acc, Operand x, Operand y) { add(acc, x, y); }
};

template <class L, class R>
void pack_panel(Int8Pairs<L, R>, Matrix<R> b, int64_t k, int64_t n, uint32_t* to) {
  constexpr int64_t panel = kNR<uint32_t>;
  const int64_t pairs = (k + 1) / 2;
  if (n < panel) std::fill_n(to, pairs * panel, 0);
  if (b.row == 1 && b.column != 1) {
    pack_columns<uint32_t>(pairs, n, to,
                           [&](int64_t j, int64_t p, int64_t count, uint32_t* column) {
                             const int64_t sources = std::min(2 * count, k - 2 * p);
                             auto* pairs = reinterpret_cast<uint16_t*>(column);
                             pairs[2 * count - 1] = 0;
                             const R* from = b.data + j * b.column + 2 * p;
                             for (int64_t s = 0; s < sources; ++s)
                               pairs[s] = static_cast<uint16_t>(from[s]);
                           });
    return;
  }
  const auto row = [&](int64_t p, auto&& pair) {
    const R* from = b.data + 2 * p * b.row;
    if (b.column == 1) {
      for (int64_t j = 0; j < n; ++j) to[p * panel + j] = pair(from + j);
    } else {
      for (int64_t j = 0; j < n; ++j) to[p * panel + j] = pair(from + j * b.column);
    }
  };
  for (int64_t p = 0; p < k / 2; ++p) {
    row(p, [&](const R* at) {
      return pair_of(static_cast<uint16_t>(at[0]), static_cast<uint16_t>(at[b.row]));
    });
  }
  if (k % 2) row(k / 2, [&](const R* at) { return pair_of(static_cast<uint16_t>(at[0]), 0); });
}

template <int64_t KC, class L, class R>
PackedRows<uint32_t, KC> pack_rows(Int8Pairs<L, R>, Matrix<L> a, int64_t m, int64_t k,
                                   uint32_t* to) {
  using Rows = PackedRows<uint32_t, KC>;
  for (int64_t i = 0; i < m; ++i) {
    const L* row = a.data + i * a.row;
    auto* pairs = reinterpret_cast<uint16_t*>(to + i * Rows::kRowStride);
    if (a.column == 1) {
      for (int64_t p = 0; p < k; ++p) pairs[p] = static_cast<uint16_t>(row[p]);
    } else {
      for (int64_t p = 0; p < k; ++p) pairs[p] = static_cast<uint16_t>(row[p * a.column]);
    }
    if (k % 2) pairs[k] = 0;
  }
  return {to, false};
}

#ifdef __AVX512F__
// Quads of 8-bit integers along k in 32 bits, lowest index first, for AVX512-VNNI. The build does
// not assume VNNI, so inline assembly names the instruction, which multiplies unsigned by signed
// 8-bit integers.
template <bool LeftSigned, bool Start>
struct Int8QuadPanels : Int16Pairs {
  static constexpr int kDepth = 4;
  static constexpr bool kStart = Start;
  [[gnu::always_inline]] static void add(Vector& acc, Operand a, Operand b) {
    Vector result = acc;  // A local variable, for the reason that Bfloat16Pairs::add gives.
    if constexpr (LeftSigned) {
      asm("vpdpbusd %1, %2, %0" : "+v"(result) : "v"(a), "v"(b));
    } else {
      asm("vpdpbusd %2, %1, %0" : "+v"(result) : "v"(a), "v"(b));
    }
    acc = result;
  }
};

// If both operands are signed or both unsigned, the right operand is shifted by 128 into the other
// range. Accumulators then start from the compensation: the negated contribution of a column of
// shifted zeros. A is read as it is.
template <class L, class R>
struct Int8Quads : Int8Pairs<L, R> {
  static constexpr const char* kName = "AVX512-VNNI";
  static constexpr bool kMoves = std::is_same_v<L, R>;
  static constexpr uint32_t kZero = kMoves ? 0x80808080 : 0;
  using Product = Int8QuadPanels<std::is_signed_v<L>, kMoves>;
  using Swapped = Int8Quads<R, L>;
  static constexpr int kDepth = 4;
  static constexpr bool kStart = kMoves;
  using Operand = VectorOf<uint32_t>::type;
  static constexpr int kOperand = kWidth<uint8_t>;
  template <class T>
  [[gnu::always_inline]] static Operand operand(const T* from, int64_t count = kOperand) {
    return Operand(VecMask<uint8_t>(count).load(reinterpret_cast<const uint8_t*>(from)));
  }
  [[gnu::always_inline]] static void dot(VectorOf<int32_t>::type& acc, Operand x, Operand y) {
    Product::add(acc, x, y ^ kZero);
  }
};

// Interleaves up to four rows of up to 32 bytes, `stride` apart, as one row of quads. Missing
// elements read as zeros. `flip` is XORed into the bits.
inline void interleave_rows(const void* first, int64_t stride, int64_t rows, int64_t n,
                            uint32_t* to, uint32_t flip) {
  // The pairs of column j lie in the 128-bit lanes 2 (s / 2) + j / 16 of `low` or, from j % 16 = 8,
  // of `high`.
  static constexpr Order first_half = Order::from(
                             [](int l) { return l / 2 % 8 + l % 2 * 16 + l / 16 * 32; }),
                         second_half = Order::from(
                             [](int l) { return 8 + l / 2 % 8 + l % 2 * 16 + l / 16 * 32; });
  const auto row = [&](int s) {
    const auto some = static_cast<__mmask32>(VecMask<uint8_t>::below(n));
    return s < rows ? _mm256_maskz_loadu_epi8(some, static_cast<const char*>(first) + s * stride)
                    : __m256i{};
  };
  const auto both = [](__m256i low, __m256i high) {
    return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1);
  };
  const __m512i even = both(row(0), row(2)), odd = both(row(1), row(3)),
                low = _mm512_maskz_unpacklo_epi8(~__mmask64{0}, even, odd),
                high = _mm512_maskz_unpackhi_epi8(~__mmask64{0}, even, odd);
  using Vector = VectorOf<uint32_t>::type;
  _mm512_store_si512(to, __m512i(Vector(first_half(low, high)) ^ flip));
  _mm512_store_si512(to + 16, __m512i(Vector(second_half(low, high)) ^ flip));
}

// Packs a panel of quads along k; `flip` is XORed into the bits.
template <class R>
void pack_quads(Matrix<R> b, int64_t k, int64_t n, uint32_t* to, uint32_t flip) {
  constexpr int64_t panel = kNR<uint32_t>;
  if (b.row == 1 && b.column != 1) return transpose_panel(b.data, b.column, k, n, to, flip);
  for (int64_t p = 0; p < k; p += 4, to += panel) {
    const R* from = b.data + p * b.row;
    const int64_t rows = std::min<int64_t>(4, k - p);
    if (b.column == 1) {
      interleave_rows(from, b.row, rows, n, to, flip);
    } else {
      R gathered[4][panel];
      for (int64_t s = 0; s < rows; ++s) {
        for (int64_t j = 0; j < n; ++j) gathered[s][j] = from[s * b.row + j * b.column];
      }
      interleave_rows(gathered, panel, rows, n, to, flip);
    }
  }
}

template <class L, class R>
void pack_panel(Int8Quads<L, R>, Matrix<R> b, int64_t k, int64_t n, uint32_t* to) {
  pack_quads(b, k, n, to, Int8Quads<L, R>::kZero);
}

// Computes the compensation of each row: the negated contribution of a column of shifted zeros.
template <class Format, class Rows>
void find_starts(const Rows& rows, int64_t m, int64_t quads, int32_t* starts) {
  using Accumulator = VectorOf<int32_t>::type;
  const typename Format::Operand zeros{};
  for (int64_t i = 0; rows.by_columns && i < m; i += kMR) {
    Accumulator acc{};
    for (int64_t p = 0; p < quads; ++p) {
      Format::dot(acc, VecMask<uint32_t>(kMR).load(rows.from(i) + p * kMR), zeros);
    }
    VecMask<int32_t>(std::min<int64_t>(kMR, m - i)).store(starts + i, -acc);
  }
  for (int64_t i = 0; !rows.by_columns && i < m; ++i) {
    Accumulator acc{};
    for (int64_t p = 0; p < quads; p += 16) {
      Format::dot(acc, VecMask<uint32_t>(quads - p).load(rows.from(i) + p), zeros);
    }
    starts[i] = -sum_of<int32_t>(acc);
  }
}

template <int64_t KC, class L, class R>
PackedRows<uint32_t, KC> pack_rows(Int8Quads<L, R>, Matrix<L> a, int64_t m, int64_t k,
                                   uint32_t* to) {
  using Format = Int8Quads<L, R>;
  using Rows = PackedRows<uint32_t, KC>;
  Rows rows{to, a.column != 1 && a.row == 1};
  if (is_packed<KC, 4>(a, k)) {
    rows.data = reinterpret_cast<const uint32_t*>(a.data);
    rows.stride = a.row / 4;
  } else if (rows.by_columns) {
    for (int64_t i = 0; i < m; i += kMR) {
      const int64_t n = std::min<int64_t>(kMR, m - i);
      uint32_t* tile = to + i * KC;
      alignas(64) uint32_t quads[kNR<uint32_t>];
      for (int64_t p = 0; p < k; p += 4, tile += kMR) {
        interleave_rows(a.data + i + p * a.column, a.column, std::min<int64_t>(4, k - p), n, quads,
                        0);
        std::copy_n(quads, kMR, tile);
      }
    }
  } else {
    for (int64_t i = 0; i < m; ++i) {
      const L* row = a.data + i * a.row;
      L* bytes = reinterpret_cast<L*>(to + i * Rows::kRowStride);
      if (a.column == 1) {
        std::memcpy(bytes, row, static_cast<size_t>(k));
      } else {
        for (int64_t p = 0; p < k; ++p) bytes[p] = row[p * a.column];
      }
      for (int64_t p = k; p % 4 != 0; ++p) bytes[p] = 0;
    }
  }
  if constexpr (Format::kMoves) {
    auto* starts = reinterpret_cast<int32_t*>(to + (m + kMR - 1) / kMR * kMR * Rows::kRowStride);
    find_starts<Format>(rows, m, (k + 3) / 4, starts);
    rows.starts = starts;  // The starts follow the last row.
  }
  return rows;
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
