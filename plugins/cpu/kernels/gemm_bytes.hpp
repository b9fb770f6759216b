// SPDX-License-Identifier: Apache-2.0
// Formats of products of 8-bit integers, L and R being int8_t or uint8_t, with sums in int32.
#pragma once

#include "gemm_pack.hpp"

#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

// Two int16 along k in 32 bits, lower index first.
struct Int16Pairs {
  using Packed = uint32_t;
  using Sum = int32_t;
  using Vector = VectorOf<int32_t>::type;
  using Operand = VectorOf<uint32_t>::type;
  static constexpr int kDepth = 2;
  static constexpr bool kStart = false;
  [[gnu::always_inline]] static Operand spread(const uint32_t* a) { return *a - Operand{}; }
  [[gnu::always_inline]] static void add(Vector& sum, Operand a, Operand b) {
#if defined(__AVX512F__)
    sum += Vector(_mm512_madd_epi16(__m512i(a), __m512i(b)));
#elif defined(__AVX2__)
    sum += Vector(_mm256_madd_epi16(__m256i(a), __m256i(b)));
#elif defined(__SSE2__)
    sum += Vector(_mm_madd_epi16(__m128i(a), __m128i(b)));
#else
    sum +=
        (Vector(a) << 16 >> 16) * (Vector(b) << 16 >> 16) + (Vector(a) >> 16) * (Vector(b) >> 16);
#endif
  }
};

// Bytes widened to 16 bits, whose products by pairs any instruction set adds up exactly.
template <class L, class R>
struct BytesAsPairs : Int16Pairs {
  using Left = L;
  using Right = R;
  using Product = Int16Pairs;
  using Swapped = BytesAsPairs<R, L>;
  static constexpr int kOperand = kWidth<int16_t>;
  static constexpr int64_t kStreamRows = 2;
  template <class T>
  static int32_t value(T source) {
    return source;
  }
  template <class T>
  [[gnu::always_inline]] static Operand operand(const T* from,
                                                [[maybe_unused]] int64_t count = kOperand) {
    typedef T Bytes __attribute__((vector_size(kOperand), aligned(1), may_alias));
#ifdef __AVX512F__
    const Bytes bytes = Bytes(_mm256_maskz_loadu_epi8(Lanes<int16_t>::below(count), from));
#else
    const Bytes bytes = *reinterpret_cast<const Bytes*>(from);
#endif
    return Operand(__builtin_convertvector(bytes, VectorOf<int16_t>::type));
  }
  [[gnu::always_inline]] static Vector elements(const R* from,
                                                [[maybe_unused]] int64_t count = 64) {
    typedef R Bytes __attribute__((vector_size(kWidth<int32_t>), aligned(1), may_alias));
#ifdef __AVX512F__
    const Bytes bytes = Bytes(_mm_maskz_loadu_epi8(Lanes<int32_t>::below(count), from));
#else
    const Bytes bytes = *reinterpret_cast<const Bytes*>(from);
#endif
    return __builtin_convertvector(bytes, Vector);
  }
  [[gnu::always_inline]] static void dot(Vector& sum, Operand x, Operand y) { add(sum, x, y); }
};

template <class L, class R>
void pack_panel(BytesAsPairs<L, R>, Matrix<R> b, int64_t k, int64_t n, uint32_t* to) {
  constexpr int64_t panel = kPanel<uint32_t>;
  const int64_t pairs = (k + 1) / 2;
  if (n < panel) std::fill_n(to, pairs * panel, 0);
  if (b.row == 1 && b.column != 1) {
    pack_columns<uint32_t>(pairs, n, to,
                           [&](int64_t j, int64_t p, int64_t count, uint32_t* column) {
                             const int64_t sources = std::min(2 * count, k - 2 * p);
                             auto* halves = reinterpret_cast<uint16_t*>(column);
                             halves[2 * count - 1] = 0;
                             const R* from = b.data + j * b.column + 2 * p;
                             for (int64_t s = 0; s < sources; ++s)
                               halves[s] = static_cast<uint16_t>(from[s]);
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

template <int64_t BlockK, class L, class R>
PackedRows<uint32_t, BlockK> pack_rows(BytesAsPairs<L, R>, Matrix<L> a, int64_t m, int64_t k,
                                       uint32_t* to) {
  using Rows = PackedRows<uint32_t, BlockK>;
  for (int64_t i = 0; i < m; ++i) {
    const L* row = a.data + i * a.row;
    auto* halves = reinterpret_cast<uint16_t*>(to + i * Rows::kRowStride);
    if (a.column == 1) {
      for (int64_t p = 0; p < k; ++p) halves[p] = static_cast<uint16_t>(row[p]);
    } else {
      for (int64_t p = 0; p < k; ++p) halves[p] = static_cast<uint16_t>(row[p * a.column]);
    }
    if (k % 2) halves[k] = 0;
  }
  return {to, false};
}

#ifdef __AVX512F__
// Four bytes along k in 32 bits, lowest index first, for AVX512-VNNI, which the build does not ask
// of the processor: hence the instruction by name. It multiplies an unsigned byte by a signed one.
template <bool LeftSigned, bool Start>
struct ByteQuads : Int16Pairs {
  static constexpr int kDepth = 4;
  static constexpr bool kStart = Start;
  [[gnu::always_inline]] static void add(Vector& sum, Operand a, Operand b) {
    if constexpr (LeftSigned) {
      asm("vpdpbusd %1, %2, %0" : "+v"(sum) : "v"(a), "v"(b));
    } else {
      asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    }
  }
};

// If both sides are signed or both are not, the left one moves by 128 to the other kind, and sums
// start from what a row of zeros, so moved, would add to them.
template <class L, class R>
struct BytesAsQuads : BytesAsPairs<L, R> {
  static constexpr bool kMoves = std::is_same_v<L, R>;
  static constexpr uint8_t kZero = kMoves ? 0x80 : 0;
  using Product = ByteQuads<std::is_same_v<R, uint8_t>, kMoves>;
  using Swapped = BytesAsQuads<R, L>;
  static constexpr int kDepth = 4;
  static constexpr bool kStart = kMoves;
  using Operand = VectorOf<uint32_t>::type;
  static constexpr int kOperand = kWidth<uint8_t>;
  template <class T>
  [[gnu::always_inline]] static Operand operand(const T* from, int64_t count = kOperand) {
    return Operand(Lanes<uint8_t>(count).load(reinterpret_cast<const uint8_t*>(from)));
  }
  [[gnu::always_inline]] static void dot(VectorOf<int32_t>::type& sum, Operand x, Operand y) {
    Product::add(sum, x ^ (0x01010101u * kZero), y);
  }
};

// Four bytes `stride` apart, of which `count` are there.
inline uint32_t quad_of(const void* first, int64_t stride, int64_t count = 4) {
  const auto* bytes = static_cast<const uint8_t*>(first);
  uint32_t quad = 0;
  for (int s = 0; s < 4; ++s) {
    if (s < count) quad |= static_cast<uint32_t>(bytes[s * stride]) << 8 * s;
  }
  return quad;
}

// The same of 16 columns that lie side by side.
inline void interleave_16(const void* first, int64_t stride, uint32_t* to) {
  const auto row = [&](int s) {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(static_cast<const uint8_t*>(first) + s * stride));
  };
  const __m128i low01 = _mm_unpacklo_epi8(row(0), row(1)),
                high01 = _mm_unpackhi_epi8(row(0), row(1)),
                low23 = _mm_unpacklo_epi8(row(2), row(3)),
                high23 = _mm_unpackhi_epi8(row(2), row(3));
  auto* quads = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(quads, _mm_unpacklo_epi16(low01, low23));
  _mm_storeu_si128(quads + 1, _mm_unpackhi_epi16(low01, low23));
  _mm_storeu_si128(quads + 2, _mm_unpacklo_epi16(high01, high23));
  _mm_storeu_si128(quads + 3, _mm_unpackhi_epi16(high01, high23));
}

template <class L, class R>
void pack_panel(BytesAsQuads<L, R>, Matrix<R> b, int64_t k, int64_t n, uint32_t* to) {
  using Product = typename BytesAsQuads<L, R>::Product;
  constexpr int64_t panel = kPanel<uint32_t>, width = kWidth<uint32_t>;
  uint32_t* start = to;
  if constexpr (Product::kStart) to += panel;
  const int64_t whole = k / 4, quads = (k + 3) / 4;
  if (n < panel) std::fill_n(to, quads * panel, 0);
  if (b.row == 1 && b.column != 1) {
    pack_columns<uint32_t>(
        whole, n, to, [&](int64_t j, int64_t p, int64_t count, uint32_t* column) {
          std::memcpy(column, b.data + j * b.column + 4 * p, static_cast<size_t>(count) * 4);
        });
  } else if (b.column == 1) {
    for (int64_t p = 0; p < whole; ++p) {
      const R* from = b.data + 4 * p * b.row;
      int64_t j = 0;
      for (; j + 16 <= n; j += 16) interleave_16(from + j, b.row, to + p * panel + j);
      for (; j < n; ++j) to[p * panel + j] = quad_of(from + j, b.row);
    }
  } else {
    for (int64_t p = 0; p < whole; ++p) {
      const R* from = b.data + 4 * p * b.row;
      for (int64_t j = 0; j < n; ++j) to[p * panel + j] = quad_of(from + j * b.column, b.row);
    }
  }
  for (int64_t j = 0; k % 4 && j < n; ++j) {
    to[whole * panel + j] = quad_of(b.data + 4 * whole * b.row + j * b.column, b.row, k % 4);
  }
  if constexpr (Product::kStart) {
    const uint32_t zeros = 0x80808080;
    typename Product::Vector sum[kTileVectors] = {};
    const Lanes<uint32_t> all(width);
    for (int64_t p = 0; p < quads; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) {
        Product::add(sum[v], Product::spread(&zeros), all.load(to + p * panel + v * width));
      }
    }
    for (int v = 0; v < kTileVectors; ++v) {
      all.store(start + v * width, typename Product::Operand(-sum[v]));
    }
  }
}

template <int64_t BlockK, class L, class R>
PackedRows<uint32_t, BlockK> pack_rows(BytesAsQuads<L, R>, Matrix<L> a, int64_t m, int64_t k,
                                       uint32_t* to) {
  using Rows = PackedRows<uint32_t, BlockK>;
  for (int64_t i = 0; i < m; ++i) {
    const auto* row = reinterpret_cast<const uint8_t*>(a.data + i * a.row);
    auto* bytes = reinterpret_cast<uint8_t*>(to + i * Rows::kRowStride);
    constexpr uint8_t zero = BytesAsQuads<L, R>::kZero;
    if (a.column == 1) {
      for (int64_t p = 0; p < k; ++p) bytes[p] = row[p] ^ zero;
    } else {
      for (int64_t p = 0; p < k; ++p) bytes[p] = row[p * a.column] ^ zero;
    }
    for (int64_t p = k; p % 4 != 0; ++p) bytes[p] = 0;  // B has zeros there
  }
  return {to, false};
}
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
