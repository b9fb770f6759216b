// SPDX-License-Identifier: Apache-2.0
// Rows of weights in blocks as panels for products of 8-bit integers: 16 rows side by side, and of each row four codes along
// k in 32 bits. Codes are unsigned: what a format's codes stand for is `factor * (code - zero) + offset`.
#pragma once

#include "llm/block_weights.hpp"
#include "simd/transpose.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

typedef int32_t IntLanes __attribute__((vector_size(64)));

inline constexpr int kPanelRows = kLanes;
// Elements of a row that a panel holds: its codes and the same part of eight rows of x fit the L1 cache.
inline constexpr int kPanelDepth = 512;

struct Int8Panel {
  alignas(64) uint32_t codes[kPanelDepth / 4][kPanelRows];
  alignas(64) float factors[kPanelDepth / kElementsOfFactor][kPanelRows];
  alignas(64) float offsets[kPanelDepth / kElementsOfFactor][kPanelRows];
};

// What a format tells of itself. `group`: the elements that share a factor.
template <int elements, int bytes, int group, int zero, bool has_offsets>
struct PanelFormat {
  static constexpr int kElements = elements, kBytes = bytes, kGroup = group, kZero = zero;
  static constexpr bool kOffsets = has_offsets;
};

// Decodes each block by the function of the format, and transposes what it gives.
template <class Format, void (*decode_codes)(const uint8_t*, DecodedBlock&)>
struct TransposedPanels : Format {
  using Format::kElements, Format::kBytes, Format::kGroup, Format::kZero, Format::kOffsets;
  static void decode(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    constexpr int quads = kElements / 4, groups = kElements / kGroup,
                  factors = kGroup / kElementsOfFactor;
    for (int64_t block = 0; block < blocks; ++block) {
      alignas(64) uint8_t codes[kPanelRows][kElements];
      for (int row = 0; row < kPanelRows; ++row) {
        DecodedBlock decoded;
        decode_codes(from + row * row_bytes + block * kBytes, decoded);
        for (int i = 0; i < kElements; ++i)
          codes[row][i] = static_cast<uint8_t>(decoded.codes[i] + kZero);
        for (int group = 0; group < groups; ++group) {
          to.factors[block * groups + group][row] = decoded.factors[group * factors];
          if (kOffsets) to.offsets[block * groups + group][row] = decoded.offsets[group * factors];
        }
      }
      transpose_block<uint32_t>(reinterpret_cast<const uint32_t*>(codes), quads,
                                to.codes[block * quads], kPanelRows, kPanelRows, quads);
    }
  }
};

#ifdef __AVX512F__
// 16 bytes of each of 16 rows as four vectors of 32 bits of each row.
[[gnu::always_inline]] inline void load_transposed(const uint8_t* from, int64_t row_bytes,
                                                   __m512i (&to)[4]) {
  const auto row = [&](int i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * row_bytes));
  };
  __m512i rows[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_castsi128_si512(row(i));
    rows[i] = _mm512_maskz_inserti32x4(0xffff, rows[i], row(i + 4), 1);
    rows[i] = _mm512_maskz_inserti32x4(0xffff, rows[i], row(i + 8), 2);
    rows[i] = _mm512_maskz_inserti32x4(0xffff, rows[i], row(i + 12), 3);
  }
  const __m512i low0 = _mm512_maskz_unpacklo_epi32(0xffff, rows[0], rows[1]),
                low1 = _mm512_maskz_unpacklo_epi32(0xffff, rows[2], rows[3]),
                high0 = _mm512_maskz_unpackhi_epi32(0xffff, rows[0], rows[1]),
                high1 = _mm512_maskz_unpackhi_epi32(0xffff, rows[2], rows[3]);
  to[0] = _mm512_maskz_unpacklo_epi64(0xff, low0, low1);
  to[1] = _mm512_maskz_unpackhi_epi64(0xff, low0, low1);
  to[2] = _mm512_maskz_unpacklo_epi64(0xff, high0, high1);
  to[3] = _mm512_maskz_unpackhi_epi64(0xff, high0, high1);
}

// float16 numbers at `at` of each block of 16 rows.
template <int block_bytes>
[[gnu::always_inline]] inline void load_float16(const uint8_t* from, int64_t row_bytes,
                                                int64_t blocks, float (*to)[kPanelRows]) {
  // All are gathered before the first is converted: a load must not catch up with stores of parts of it.
  alignas(64) uint16_t gathered[kPanelDepth / 32][kPanelRows];
  for (int64_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 16
    for (int row = 0; row < kPanelRows; ++row)
      std::memcpy(&gathered[block][row], from + row * row_bytes + block * block_bytes, 2);
  }
  for (int64_t block = 0; block < blocks; ++block)
    _mm512_store_ps(
        to[block],
        _mm512_maskz_cvtph_ps(
            0xffff, _mm256_load_si256(reinterpret_cast<const __m256i*>(gathered[block]))));
}

// The numbers, with `zero` added, that codes of four bits stand for.
template <int zero>
[[gnu::always_inline]] inline __m512i looked_up(const int8_t (&table)[16], __m512i codes) {
  const __m128i numbers = _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)),
                                       _mm_set1_epi8(static_cast<char>(zero)));
  return _mm512_maskz_shuffle_epi8(~__mmask64{0}, _mm512_maskz_broadcast_i32x4(0xffff, numbers),
                                   codes);
}

enum class Codes { kNibbles, kLookedUp, kFifthBit, kBytes };

// A format of 32 elements in a block, with its codes behind `at` bytes. Rows are transposed as they are stored.
template <class Format, int at, Codes codes>
struct StoredPanels : Format {
  using Format::kElements, Format::kBytes, Format::kZero, Format::kOffsets;
  [[gnu::always_inline]] static __m512i code(__m512i nibbles) {
    nibbles = _mm512_and_si512(nibbles, _mm512_set1_epi8(15));
    if constexpr (codes == Codes::kLookedUp) return looked_up<kZero>(Format::kNumbers, nibbles);
    return nibbles;
  }
  // Whether the codes of a block come from its bytes alone, so that a single row of x takes them from registers.
  static constexpr bool kInRegisters = codes != Codes::kFifthBit;
  // Four bits of each row, from bit `shift`, as 16 in each of four bytes.
  [[gnu::always_inline]] static __m512i sixteens(__m512i bits, int shift) {
    const __m512i four =
        _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, bits, shift), _mm512_set1_epi32(15));
    const __m512i spread = _mm512_mullo_epi32(four, _mm512_set1_epi32(0x02040810));
    return _mm512_and_si512(spread, _mm512_set1_epi8(16));
  }
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    if constexpr (requires { Format::factor(from); }) {
      for (int64_t block = 0; block < blocks; ++block) {
        for (int row = 0; row < kPanelRows; ++row)
          to.factors[block][row] = Format::factor(from + row * row_bytes + block * kBytes);
      }
    } else {
      load_float16<kBytes>(from, row_bytes, blocks, to.factors);
    }
    if constexpr (kOffsets) load_float16<kBytes>(from + 2, row_bytes, blocks, to.offsets);
  }
  // The codes of one block of 16 rows, but for their fifth bits.
  [[gnu::always_inline]] static void load_codes(const uint8_t* from, int64_t row_bytes,
                                                IntLanes (&quads)[8]) {
    __m512i stored[4];
    load_transposed(from + at, row_bytes, stored);
    if constexpr (codes == Codes::kBytes) {
      __m512i second[4];
      load_transposed(from + at + 16, row_bytes, second);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        quads[i] = IntLanes(_mm512_xor_si512(stored[i], _mm512_set1_epi8(-128)));
        quads[i + 4] = IntLanes(_mm512_xor_si512(second[i], _mm512_set1_epi8(-128)));
      }
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        quads[i] = IntLanes(code(stored[i]));
        quads[i + 4] = IntLanes(code(_mm512_maskz_srli_epi16(~__mmask32{0}, stored[i], 4)));
      }
    }
  }
  static void decode(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    decode_scales(from, row_bytes, blocks, to);
    alignas(64) uint32_t fifth[codes == Codes::kFifthBit ? kPanelDepth / 32 : 1][kPanelRows];
    for (int64_t block = 0; codes == Codes::kFifthBit && block < blocks; ++block) {
      for (int row = 0; row < kPanelRows; ++row)
        std::memcpy(&fifth[block][row], from + row * row_bytes + block * kBytes + at - 4, 4);
    }
    for (int64_t block = 0; block < blocks; ++block, from += kBytes) {
      IntLanes quads[8];
      load_codes(from, row_bytes, quads);
      if constexpr (codes == Codes::kFifthBit) {
        const __m512i bits = _mm512_load_si512(fifth[block]);
        for (int i = 0; i < 8; ++i) quads[i] |= IntLanes(sixteens(bits, 4 * i));
      }
      std::memcpy(to.codes[block * 8], quads, sizeof quads);
    }
  }
};

struct Iq4NlPanel : PanelFormat<32, 18, 32, 128, false> {
  static constexpr auto& kNumbers = block_formats::kNonLinear;
};
struct Mxfp4Panel : PanelFormat<32, 17, 32, 12, false> {
  static constexpr auto& kNumbers = block_formats::kTwiceFloat4;
  static float factor(const uint8_t* block) { return block_formats::half_of_power(block[0]); }
};
using Q80Panels = StoredPanels<PanelFormat<32, 34, 32, 128, false>, 2, Codes::kBytes>;
using Q40Panels = StoredPanels<PanelFormat<32, 18, 32, 8, false>, 2, Codes::kNibbles>;
using Q41Panels = StoredPanels<PanelFormat<32, 20, 32, 0, true>, 4, Codes::kNibbles>;
using Iq4NlPanels = StoredPanels<Iq4NlPanel, 2, Codes::kLookedUp>;
using Mxfp4Panels = StoredPanels<Mxfp4Panel, 1, Codes::kLookedUp>;
#elif !defined(__AVX2__)  // whose panels are those of avx2_formats.hpp
using Q80Panels = TransposedPanels<PanelFormat<32, 34, 32, 128, false>, block_formats::decode_q8_0>;
using Q40Panels = TransposedPanels<PanelFormat<32, 18, 32, 8, false>, block_formats::decode_q4_0>;
using Q41Panels = TransposedPanels<PanelFormat<32, 20, 32, 0, true>, block_formats::decode_q4_1>;
using Q50Panels = TransposedPanels<PanelFormat<32, 22, 32, 16, false>, block_formats::decode_q5_0>;
using Q51Panels = TransposedPanels<PanelFormat<32, 24, 32, 0, true>, block_formats::decode_q5_1>;
using Iq4NlPanels =
    TransposedPanels<PanelFormat<32, 18, 32, 128, false>, block_formats::decode_iq4_nl>;
using Mxfp4Panels =
    TransposedPanels<PanelFormat<32, 17, 32, 12, false>, block_formats::decode_mxfp4>;
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
