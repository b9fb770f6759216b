// SPDX-License-Identifier: Apache-2.0
// Panels of the formats with 256 elements in a block. On AVX-512 pieces of 64 elements of 16 rows are transposed as they are
// stored, and the factors of 16 rows are computed side by side; each format tells where the bits of its codes lie.
#pragma once

#include "llm/avx2_formats.hpp"
#include "llm/int8_panels.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

// 16 bytes of each of 16 rows, from `from` on, as four vectors.
struct Sixteens {
  __m512i quads[4];
  [[gnu::always_inline]] Sixteens(const uint8_t* from, int64_t row_bytes) {
    load_transposed(from, row_bytes, quads);
  }
};

[[gnu::always_inline]] inline __m512i field(__m512i bits, int shift, int mask) {
  return _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, bits, static_cast<unsigned>(shift)),
                          _mm512_set1_epi8(static_cast<char>(mask)));
}
[[gnu::always_inline]] inline __m512i shifted_left(__m512i bits, unsigned count) {
  return _mm512_maskz_slli_epi32(0xffff, bits, count);
}
// Bits of each 32: those from `shift` on.
[[gnu::always_inline]] inline __m512i number(__m512i words, int shift, int mask) {
  return _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, words, static_cast<unsigned>(shift)),
                          _mm512_set1_epi32(mask));
}
[[gnu::always_inline]] inline Lanes as_floats(__m512i numbers) {
  return Lanes(_mm512_maskz_cvtepi32_ps(0xffff, numbers));
}

// Factors and offsets of q4_K and q5_K.
struct SixBitScales {
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t block_bytes,
                            int64_t blocks, Int8Panel& to) {
    for (int64_t block = 0; block < blocks; ++block, from += block_bytes) {
      alignas(64) uint16_t units[2][kPanelRows];
      alignas(64) uint32_t stored[3][kPanelRows];
      for (int row = 0; row < kPanelRows; ++row) {
        const uint8_t* at = from + row * row_bytes;
        for (int i = 0; i < 2; ++i) std::memcpy(&units[i][row], at + 2 * i, 2);
        for (int i = 0; i < 3; ++i) std::memcpy(&stored[i][row], at + 4 + 4 * i, 4);
      }
      const auto unit = [&](int i) {
        return Lanes(_mm512_maskz_cvtph_ps(
            0xffff, _mm256_load_si256(reinterpret_cast<const __m256i*>(units[i]))));
      };
      const Lanes factor = unit(0), offset = unit(1);
      const __m512i low = _mm512_load_si512(stored[0]), high = _mm512_load_si512(stored[1]),
                    rest = _mm512_load_si512(stored[2]);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        put(to, block * 8 + i, factor, offset, number(low, 8 * i, 63), number(high, 8 * i, 63));
        const __m512i scale = _mm512_or_si512(number(rest, 8 * i, 15),
                                              shifted_left(number(low, 8 * i + 6, 3), 4)),
                      shift = _mm512_or_si512(number(rest, 8 * i + 4, 15),
                                              shifted_left(number(high, 8 * i + 6, 3), 4));
        put(to, block * 8 + i + 4, factor, offset, scale, shift);
      }
    }
  }

 private:
  static void put(Int8Panel& to, int64_t group, Lanes factor, Lanes offset, __m512i scale,
                  __m512i shift) {
    const Lanes factors = factor * as_floats(scale), offsets = -(offset * as_floats(shift));
    std::memcpy(to.factors[group], &factors, sizeof factors);
    std::memcpy(to.offsets[group], &offsets, sizeof offsets);
  }
};

struct Q4KLayout : PanelFormat<256, 144, 32, 0, true> {
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    SixBitScales::decode_scales(from, row_bytes, kBytes, blocks, to);
  }
  [[gnu::always_inline]] static void load_piece(const uint8_t* block, int64_t row_bytes, int piece,
                                                IntLanes (&quads)[16]) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Sixteens stored(block + 16 + 32 * piece + 16 * half, row_bytes);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        quads[4 * half + i] = IntLanes(field(stored.quads[i], 0, 15));
        quads[8 + 4 * half + i] = IntLanes(field(stored.quads[i], 4, 15));
      }
    }
  }
};

struct Q5KLayout : PanelFormat<256, 176, 32, 0, true> {
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    SixBitScales::decode_scales(from, row_bytes, kBytes, blocks, to);
  }
  [[gnu::always_inline]] static void load_piece(const uint8_t* block, int64_t row_bytes, int piece,
                                                IntLanes (&quads)[16]) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Sixteens fifth(block + 16 + 16 * half, row_bytes);
      const Sixteens stored(block + 48 + 32 * piece + 16 * half, row_bytes);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m512i first = shifted_left(field(fifth.quads[i], 2 * piece, 1), 4),
                      second = shifted_left(field(fifth.quads[i], 2 * piece + 1, 1), 4);
        quads[4 * half + i] = IntLanes(_mm512_or_si512(field(stored.quads[i], 0, 15), first));
        quads[8 + 4 * half + i] = IntLanes(_mm512_or_si512(field(stored.quads[i], 4, 15), second));
      }
    }
  }
};

struct Q6KLayout : PanelFormat<256, 210, 16, 32, false> {
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    for (int64_t block = 0; block < blocks; ++block, from += kBytes) {
      alignas(64) uint16_t units[kPanelRows];
      for (int row = 0; row < kPanelRows; ++row)
        std::memcpy(&units[row], from + row * row_bytes + 208, 2);
      const Lanes factor(_mm512_maskz_cvtph_ps(
          0xffff, _mm256_load_si256(reinterpret_cast<const __m256i*>(units))));
      const Sixteens scales(from + 192, row_bytes);
#pragma GCC unroll 16
      for (int group = 0; group < 16; ++group) {
        // The sign is carried by an arithmetic shift.
        const __m512i top =
            shifted_left(scales.quads[group / 4], static_cast<unsigned>(24 - 8 * (group % 4)));
        const Lanes factors = factor * as_floats(_mm512_maskz_srai_epi32(0xffff, top, 24));
        std::memcpy(to.factors[block * 16 + group], &factors, sizeof factors);
      }
    }
  }
  [[gnu::always_inline]] static void load_piece(const uint8_t* block, int64_t row_bytes, int piece,
                                                IntLanes (&quads)[16]) {
    const uint8_t *low = block + piece / 2 * 64, *high = block + 128 + piece / 2 * 32;
    const int second = piece % 2;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Sixteens two(high + 16 * half, row_bytes);
#pragma GCC unroll 2
      for (int part = 0; part < 2; ++part) {
        const Sixteens four(low + 32 * part + 16 * half, row_bytes);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m512i bits = shifted_left(field(two.quads[i], 4 * second + 2 * part, 3), 4);
          quads[8 * part + 4 * half + i] =
              IntLanes(_mm512_or_si512(field(four.quads[i], 4 * second, 15), bits));
        }
      }
    }
  }
};

struct Iq4XsLayout : PanelFormat<256, 136, 32, 128, false> {
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    for (int64_t block = 0; block < blocks; ++block, from += kBytes) {
      alignas(64) uint32_t heads[kPanelRows], fours[kPanelRows];
      for (int row = 0; row < kPanelRows; ++row) {
        std::memcpy(&heads[row], from + row * row_bytes, 4);
        std::memcpy(&fours[row], from + row * row_bytes + 4, 4);
      }
      // The lower half of a head is the unit, the upper one two bits of each of the eight scales.
      const __m512i head = _mm512_load_si512(heads), four = _mm512_load_si512(fours);
      const Lanes unit(_mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_cvtepi32_epi16(0xffff, head)));
#pragma GCC unroll 8
      for (int group = 0; group < 8; ++group) {
        const __m512i scale = _mm512_or_si512(number(four, 4 * group, 15),
                                              shifted_left(number(head, 16 + 2 * group, 3), 4));
        const Lanes factors = unit * as_floats(_mm512_sub_epi32(scale, _mm512_set1_epi32(32)));
        std::memcpy(to.factors[block * 8 + group], &factors, sizeof factors);
      }
    }
  }
  [[gnu::always_inline]] static void load_piece(const uint8_t* block, int64_t row_bytes, int piece,
                                                IntLanes (&quads)[16]) {
#pragma GCC unroll 2
    for (int group = 0; group < 2; ++group) {
      const Sixteens stored(block + 8 + 16 * (2 * piece + group), row_bytes);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        quads[8 * group + i] =
            IntLanes(looked_up<kZero>(block_formats::kNonLinear, field(stored.quads[i], 0, 15)));
        quads[8 * group + 4 + i] =
            IntLanes(looked_up<kZero>(block_formats::kNonLinear, field(stored.quads[i], 4, 15)));
      }
    }
  }
};

template <class Layout>
struct LargePanels : Layout {
  using Layout::kBytes, Layout::kElements;
  static constexpr bool kInPieces = true;
  static constexpr int kPieces = kElements / 64;
  static void decode(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    Layout::decode_scales(from, row_bytes, blocks, to);
    for (int64_t block = 0; block < blocks; ++block, from += kBytes) {
#pragma GCC unroll 4
      for (int piece = 0; piece < kPieces; ++piece) {
        IntLanes quads[16];
        Layout::load_piece(from, row_bytes, piece, quads);
        std::memcpy(to.codes[block * kElements / 4 + piece * 16], quads, sizeof quads);
      }
    }
  }
};
using Q4KPanels = LargePanels<Q4KLayout>;
using Q5KPanels = LargePanels<Q5KLayout>;
using Q6KPanels = LargePanels<Q6KLayout>;
using Iq4XsPanels = LargePanels<Iq4XsLayout>;
#elif !defined(__AVX2__)
using Q4KPanels = TransposedPanels<PanelFormat<256, 144, 32, 0, true>, block_formats::decode_q4_k>;
using Q5KPanels = TransposedPanels<PanelFormat<256, 176, 32, 0, true>, block_formats::decode_q5_k>;
using Q6KPanels =
    TransposedPanels<PanelFormat<256, 210, 16, 32, false>, block_formats::decode_q6_k>;
#endif
#ifndef __AVX2__
using Q2KPanels = TransposedPanels<PanelFormat<256, 84, 16, 0, true>, block_formats::decode_q2_k>;
using Q3KPanels = TransposedPanels<PanelFormat<256, 110, 16, 4, false>, block_formats::decode_q3_k>;
using Iq4XsPanels =
    TransposedPanels<PanelFormat<256, 136, 32, 128, false>, block_formats::decode_iq4_xs>;
#endif

// Calls f(format) with the type of a format whose name the shape rule has checked.
template <class F>
void with_panel_format(std::string_view name, F&& f) {
  if (name == "q8_0") return f(Q80Panels{});
  if (name == "q4_0") return f(Q40Panels{});
  if (name == "q4_1") return f(Q41Panels{});
  if (name == "q5_0") return f(Q50Panels{});
  if (name == "q5_1") return f(Q51Panels{});
  if (name == "iq4_nl") return f(Iq4NlPanels{});
  if (name == "mxfp4") return f(Mxfp4Panels{});
  if (name == "q2_K") return f(Q2KPanels{});
  if (name == "q3_K") return f(Q3KPanels{});
  if (name == "q4_K") return f(Q4KPanels{});
  if (name == "q5_K") return f(Q5KPanels{});
  if (name == "q6_K") return f(Q6KPanels{});
  if (name == "iq4_xs") return f(Iq4XsPanels{});
}

}  // namespace tenon::cpu::TENON_CPU_ISA
