// SPDX-License-Identifier: Apache-2.0
// Codes and factors of weights in blocks in the registers of AVX2. A format tells, of a block of one row, 32 codes at a time
// and the factors of its groups; panels of 16 rows are made of these, and so are products of one row of x. The build for
// AVX-512 takes them for formats whose bits it does not gather itself.
#pragma once

#include "llm/int8_panels.hpp"

#ifdef __AVX2__

namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int kRowsOfRegister = 8;

[[gnu::always_inline]] inline __m128i load_16(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
[[gnu::always_inline]] inline __m256i load_32(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
// Of each byte the bits from `shift` on that `mask` has.
[[gnu::always_inline]] inline __m256i bits_of(__m256i bytes, int shift, int mask) {
  return _mm256_and_si256(_mm256_srli_epi16(bytes, shift),
                          _mm256_set1_epi8(static_cast<char>(mask)));
}
// 16 bytes: the lower halves are the first 16 codes, the upper ones the next.
[[gnu::always_inline]] inline __m256i halves_of(const uint8_t* from) {
  const __m128i pairs = load_16(from);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(pairs, 4), pairs), _mm256_set1_epi8(15));
}
[[gnu::always_inline]] inline __m256i looked_up(const int8_t (&table)[16], __m256i codes) {
  const __m128i numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(numbers), codes);
}
// Bit i of four bytes as 16 in byte i.
[[gnu::always_inline]] inline __m256i sixteens_of(const uint8_t* from) {
  int32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  const __m256i of_byte = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                           2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i of_bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), of_byte);
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, of_bit), of_bit);
  return _mm256_and_si256(is_set, _mm256_set1_epi8(16));
}

[[gnu::always_inline]] inline void transpose_8(__m256i (&rows)[8]) {
  __m256i pairs[8], fours[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    fours[4 * i] = _mm256_unpacklo_epi64(pairs[4 * i], pairs[4 * i + 2]);
    fours[4 * i + 1] = _mm256_unpackhi_epi64(pairs[4 * i], pairs[4 * i + 2]);
    fours[4 * i + 2] = _mm256_unpacklo_epi64(pairs[4 * i + 1], pairs[4 * i + 3]);
    fours[4 * i + 3] = _mm256_unpackhi_epi64(pairs[4 * i + 1], pairs[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

// Factors of a format with 32 elements in a block: a float16 at `at`.
template <int at, int block_bytes>
inline void load_float16(const uint8_t* from, int64_t row_bytes, int64_t blocks,
                         float (*to)[kPanelRows]) {
  // All are gathered before the first is converted: a load must not catch up with stores of parts of it.
  alignas(16) uint16_t gathered[kPanelDepth / 32][kPanelRows];
  for (int64_t block = 0; block < blocks; ++block) {
#pragma GCC unroll 16
    for (int row = 0; row < kPanelRows; ++row)
      std::memcpy(&gathered[block][row], from + row * row_bytes + block * block_bytes + at, 2);
  }
  for (int64_t block = 0; block < blocks; ++block) {
    for (int row = 0; row < kPanelRows; row += kRowsOfRegister)
      _mm256_store_ps(
          to[block] + row,
          _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<__m128i*>(gathered[block] + row))));
  }
}

template <class Format>
struct SmallScales : Format {
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    load_float16<0, Format::kBytes>(from, row_bytes, blocks, to.factors);
    if constexpr (Format::kOffsets)
      load_float16<2, Format::kBytes>(from, row_bytes, blocks, to.offsets);
  }
};

// `kMaxCode`: the largest magnitude of a code. Codes of formats whose zero point is 0 and that have no offsets are signed.
struct Q80Codes : PanelFormat<32, 34, 32, 0, false> {
  static constexpr int kMaxCode = 128;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return load_32(block + 2);
  }
};
struct Q40Codes : PanelFormat<32, 18, 32, 8, false> {
  static constexpr int kMaxCode = 15;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return halves_of(block + 2);
  }
};
struct Q41Codes : PanelFormat<32, 20, 32, 0, true> {
  static constexpr int kMaxCode = 15;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return halves_of(block + 4);
  }
};
struct Q50Codes : PanelFormat<32, 22, 32, 16, false> {
  static constexpr int kMaxCode = 31;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return _mm256_or_si256(halves_of(block + 6), sixteens_of(block + 2));
  }
};
struct Q51Codes : PanelFormat<32, 24, 32, 0, true> {
  static constexpr int kMaxCode = 31;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return _mm256_or_si256(halves_of(block + 8), sixteens_of(block + 4));
  }
};
struct Iq4NlCodes : PanelFormat<32, 18, 32, 0, false> {
  static constexpr int kMaxCode = 127;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return looked_up(block_formats::kNonLinear, halves_of(block + 2));
  }
};
struct Mxfp4Codes : PanelFormat<32, 17, 32, 0, false> {
  static constexpr int kMaxCode = 12;
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    for (int64_t block = 0; block < blocks; ++block) {
      for (int row = 0; row < kPanelRows; ++row)
        to.factors[block][row] =
            block_formats::half_of_power(from[row * row_bytes + block * kBytes]);
    }
  }
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int) {
    return looked_up(block_formats::kTwiceFloat4, halves_of(block + 1));
  }
};

[[gnu::always_inline]] inline __m256 unit_of(const uint8_t* from) {
  return _mm256_set1_ps(block_formats::read_float16(from));
}
// The first eight bytes, signed or not, as floats.
[[gnu::always_inline]] inline __m256 signed_floats(__m128i bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
[[gnu::always_inline]] inline __m128i second_half(__m128i bytes) {
  return _mm_unpackhi_epi64(bytes, bytes);
}
[[gnu::always_inline]] inline __m256 negated(__m256 x) {
  return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

// Formats with 256 elements in a block tell the factors of a row's block, eight in a register.
template <class Format>
struct LargeScales : Format {
  using Format::kBytes, Format::kOffsets;
  static constexpr int kGroups = 256 / Format::kGroup;
  static void decode_scales(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    for (int64_t block = 0; block < blocks; ++block, from += kBytes) {
      for (int first = 0; first < kPanelRows; first += kRowsOfRegister) {
        __m256i factors[kGroups / 8][8], offsets[kGroups / 8][8];
#pragma GCC unroll 8
        for (int row = 0; row < kRowsOfRegister; ++row) {
          __m256 made[2], moved[2];
          Format::scales(from + (first + row) * row_bytes, made, moved);
          for (int part = 0; part < kGroups / 8; ++part) {
            factors[part][row] = _mm256_castps_si256(made[part]);
            if constexpr (kOffsets) offsets[part][row] = _mm256_castps_si256(moved[part]);
          }
        }
        for (int part = 0; part < kGroups / 8; ++part) {
          put(factors[part], to.factors + block * kGroups + 8 * part, first);
          if constexpr (kOffsets)
            put(offsets[part], to.offsets + block * kGroups + 8 * part, first);
        }
      }
    }
  }

 private:
  static void put(__m256i (&rows)[8], float (*to)[kPanelRows], int first) {
    transpose_8(rows);
#pragma GCC unroll 8
    for (int group = 0; group < 8; ++group)
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[group] + first), rows[group]);
  }
};

// The eight factors and offsets of q4_K and q5_K, of six bits each in twelve bytes.
struct SixBits {
  [[gnu::always_inline]] static void scales(const uint8_t* block, __m256 (&factors)[2],
                                            __m256 (&offsets)[2]) {
    uint32_t words[3];
    std::memcpy(words, block + 4, sizeof words);
    constexpr uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTwo = 0x03030303;
    const auto scale = eight(words[0] & kSix, (words[2] & kFour) | (words[0] >> 6 & kTwo) << 4),
               shift =
                   eight(words[1] & kSix, (words[2] >> 4 & kFour) | (words[1] >> 6 & kTwo) << 4);
    factors[0] = _mm256_mul_ps(unit_of(block), signed_floats(scale));
    offsets[0] = negated(_mm256_mul_ps(unit_of(block + 2), signed_floats(shift)));
  }

 private:
  static __m128i eight(uint32_t low, uint32_t high) {
    return _mm_cvtsi64_si128(static_cast<int64_t>(low | uint64_t{high} << 32));
  }
};

struct Q4KCodes : PanelFormat<256, 144, 32, 0, true>, SixBits {
  static constexpr int kMaxCode = 15;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int part) {
    return bits_of(load_32(block + 16 + 32 * (part / 2)), 4 * (part % 2), 15);
  }
};
struct Q5KCodes : PanelFormat<256, 176, 32, 0, true>, SixBits {
  static constexpr int kMaxCode = 31;
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int part) {
    const __m256i four = bits_of(load_32(block + 48 + 32 * (part / 2)), 4 * (part % 2), 15);
    return _mm256_or_si256(four, _mm256_slli_epi16(bits_of(load_32(block + 16), part, 1), 4));
  }
};
struct Q6KCodes : PanelFormat<256, 210, 16, 32, false> {
  static constexpr int kMaxCode = 63;
  [[gnu::always_inline]] static void scales(const uint8_t* block, __m256 (&factors)[2],
                                            __m256 (&)[2]) {
    const __m128i bytes = load_16(block + 192);
    factors[0] = _mm256_mul_ps(unit_of(block + 208), signed_floats(bytes));
    factors[1] = _mm256_mul_ps(unit_of(block + 208), signed_floats(second_half(bytes)));
  }
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int part) {
    const __m256i four =
        bits_of(load_32(block + 64 * (part / 4) + 32 * (part % 2)), 4 * (part / 2 % 2), 15);
    const __m256i two = bits_of(load_32(block + 128 + 32 * (part / 4)), 2 * (part % 4), 3);
    return _mm256_or_si256(four, _mm256_slli_epi16(two, 4));
  }
};
struct Q2KCodes : PanelFormat<256, 84, 16, 0, true> {
  static constexpr int kMaxCode = 3;
  [[gnu::always_inline]] static void scales(const uint8_t* block, __m256 (&factors)[2],
                                            __m256 (&offsets)[2]) {
    const __m128i bytes = load_16(block), low = _mm_set1_epi8(15);
    const __m128i scale = _mm_and_si128(bytes, low),
                  shift = _mm_and_si128(_mm_srli_epi16(bytes, 4), low);
    const __m256 factor = unit_of(block + 80), offset = unit_of(block + 82);
    factors[0] = _mm256_mul_ps(factor, signed_floats(scale));
    factors[1] = _mm256_mul_ps(factor, signed_floats(second_half(scale)));
    offsets[0] = negated(_mm256_mul_ps(offset, signed_floats(shift)));
    offsets[1] = negated(_mm256_mul_ps(offset, signed_floats(second_half(shift))));
  }
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int part) {
    return bits_of(load_32(block + 16 + 32 * (part / 4)), 2 * (part % 4), 3);
  }
};
struct Q3KCodes : PanelFormat<256, 110, 16, 4, false> {
  static constexpr int kMaxCode = 7;
  // Scales have six bits: four of them in bytes 0 to 7, two in bytes 8 to 11.
  [[gnu::always_inline]] static void scales(const uint8_t* block, __m256 (&factors)[2],
                                            __m256 (&)[2]) {
    int64_t fours;
    int32_t twos;
    std::memcpy(&fours, block + 96, sizeof fours);
    std::memcpy(&twos, block + 104, sizeof twos);
    const __m128i low = _mm_set_epi64x(fours >> 4, fours);
    const __m128i high = _mm_srlv_epi32(_mm_set1_epi32(twos), _mm_setr_epi32(0, 2, 4, 6));
    const __m128i six = _mm_or_si128(_mm_and_si128(low, _mm_set1_epi8(15)),
                                     _mm_slli_epi16(_mm_and_si128(high, _mm_set1_epi8(3)), 4));
    const __m128i bytes = _mm_sub_epi8(six, _mm_set1_epi8(32));
    factors[0] = _mm256_mul_ps(unit_of(block + 108), signed_floats(bytes));
    factors[1] = _mm256_mul_ps(unit_of(block + 108), signed_floats(second_half(bytes)));
  }
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int part) {
    const __m256i two = bits_of(load_32(block + 32 + 32 * (part / 4)), 2 * (part % 4), 3);
    const __m256i third = bits_of(load_32(block), part, 1);
    return _mm256_or_si256(two, _mm256_slli_epi16(third, 2));
  }
};
struct Iq4XsCodes : PanelFormat<256, 136, 32, 0, false> {
  static constexpr int kMaxCode = 127;
  [[gnu::always_inline]] static void scales(const uint8_t* block, __m256 (&factors)[2],
                                            __m256 (&)[2]) {
    const int high = block_formats::read_16(block + 2);
    alignas(8) int8_t numbers[8];
    for (int i = 0; i < 8; ++i) {
      const int scale = (block[4 + i / 2] >> i % 2 * 4 & 15) | (high >> 2 * i & 3) << 4;
      numbers[i] = static_cast<int8_t>(scale - 32);
    }
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(numbers));
    factors[0] = _mm256_mul_ps(unit_of(block), signed_floats(bytes));
  }
  [[gnu::always_inline]] static __m256i codes(const uint8_t* block, int part) {
    return looked_up(block_formats::kNonLinear, halves_of(block + 8 + 16 * part));
  }
};

// Panels of any of these formats.
template <class Format>
struct Avx2Panels : Format {
  using Format::kBytes, Format::kElements;
  static void decode(const uint8_t* from, int64_t row_bytes, int64_t blocks, Int8Panel& to) {
    Format::decode_scales(from, row_bytes, blocks, to);
    for (int64_t block = 0; block < blocks; ++block, from += kBytes) {
#pragma GCC unroll 8
      for (int part = 0; part < kElements / 32; ++part) {
        auto* quads = to.codes + (block * kElements / 32 + part) * 8;
#pragma GCC unroll 2
        for (int first = 0; first < kPanelRows; first += kRowsOfRegister) {
          __m256i rows[8];
#pragma GCC unroll 8
          for (int row = 0; row < kRowsOfRegister; ++row)
            rows[row] = Format::codes(from + (first + row) * row_bytes, part);
          transpose_8(rows);
#pragma GCC unroll 8
          for (int quad = 0; quad < 8; ++quad)
            _mm256_store_si256(reinterpret_cast<__m256i*>(quads[quad] + first), rows[quad]);
        }
      }
    }
  }
};
using Q2KPanels = Avx2Panels<LargeScales<Q2KCodes>>;
using Q3KPanels = Avx2Panels<LargeScales<Q3KCodes>>;
#ifdef __AVX512F__
// Panels by AVX-512, a single row by AVX2.
using Q50Panels = StoredPanels<Q50Codes, 6, Codes::kFifthBit>;
using Q51Panels = StoredPanels<Q51Codes, 8, Codes::kFifthBit>;
#else
using Q80Panels = Avx2Panels<SmallScales<Q80Codes>>;
using Q40Panels = Avx2Panels<SmallScales<Q40Codes>>;
using Q41Panels = Avx2Panels<SmallScales<Q41Codes>>;
using Q50Panels = Avx2Panels<SmallScales<Q50Codes>>;
using Q51Panels = Avx2Panels<SmallScales<Q51Codes>>;
using Iq4NlPanels = Avx2Panels<SmallScales<Iq4NlCodes>>;
using Mxfp4Panels = Avx2Panels<Mxfp4Codes>;
using Q4KPanels = Avx2Panels<LargeScales<Q4KCodes>>;
using Q5KPanels = Avx2Panels<LargeScales<Q5KCodes>>;
using Q6KPanels = Avx2Panels<LargeScales<Q6KCodes>>;
using Iq4XsPanels = Avx2Panels<LargeScales<Iq4XsCodes>>;
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif
