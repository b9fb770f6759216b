// SPDX-License-Identifier: Apache-2.0
// GGUF's formats of weights in blocks. Every format is decoded into one form: a code of 8 bits for each element, and for
// each 16 elements a factor and, in some formats, an offset, so that an element is `factor * code + offset`, in float32
// and rounded after each of the two operations. Blocks are read in place, from any address.
#pragma once

#include "simd/isa.hpp"

#include <tenon/reduced_float.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int kElementsOfFactor = 16;
inline constexpr int kMaxBlockElements = 256;

// A decoded block; `offsets` is written by formats that have them.
struct DecodedBlock {
  alignas(64) int8_t codes[kMaxBlockElements];
  float factors[kMaxBlockElements / kElementsOfFactor];
  float offsets[kMaxBlockElements / kElementsOfFactor];
};

namespace block_formats {

// The numbers that the codes of iq4_nl and iq4_xs stand for, and twice those of mxfp4 (float4_e2m1).
inline constexpr int8_t kNonLinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kTwiceFloat4[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

inline uint16_t read_16(const uint8_t* from) {
  return static_cast<uint16_t>(from[0] | from[1] << 8);
}
inline float read_float16(const uint8_t* from) {
#ifdef __F16C__
  return _cvtsh_ss(read_16(from));
#else
  Float16 half;
  half.bits = read_16(from);
  return half;
#endif
}

// Factors of a block of 32 elements.
inline void set_factor(DecodedBlock& out, float factor) {
  out.factors[0] = out.factors[1] = factor;
}
inline void set_offset(DecodedBlock& out, float offset) {
  out.offsets[0] = out.offsets[1] = offset;
}

// 16 bytes: the lower halves are the first 16 codes, the upper ones the next.
inline void decode_halves(const uint8_t* bytes, int zero, int8_t* codes) {
  uint8_t pairs[16];  // a copy, which codes cannot overlap
  std::memcpy(pairs, bytes, sizeof pairs);
  for (int i = 0; i < 16; ++i) codes[i] = static_cast<int8_t>((pairs[i] & 15) - zero);
  for (int i = 0; i < 16; ++i) codes[i + 16] = static_cast<int8_t>((pairs[i] >> 4) - zero);
}
inline void look_up_halves(const int8_t (&table)[16], const uint8_t* bytes, int8_t* codes) {
#ifdef __SSSE3__
  const auto* from = reinterpret_cast<const __m128i*>(bytes);
  auto* to = reinterpret_cast<__m128i*>(codes);
  const __m128i numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  const __m128i pairs = _mm_loadu_si128(from), low = _mm_set1_epi8(15);
  _mm_storeu_si128(to, _mm_shuffle_epi8(numbers, _mm_and_si128(pairs, low)));
  _mm_storeu_si128(to + 1, _mm_shuffle_epi8(numbers, _mm_and_si128(_mm_srli_epi16(pairs, 4), low)));
#elif defined(__aarch64__)
  const int8x16_t numbers = vld1q_s8(table);
  const uint8x16_t pairs = vld1q_u8(bytes);
  vst1q_s8(codes, vqtbl1q_s8(numbers, vandq_u8(pairs, vdupq_n_u8(15))));
  vst1q_s8(codes + 16, vqtbl1q_s8(numbers, vshrq_n_u8(pairs, 4)));
#else
  for (int i = 0; i < 16; ++i) {
    codes[i] = table[bytes[i] & 15];
    codes[i + 16] = table[bytes[i] >> 4];
  }
#endif
}
// The same with a fifth bit for each code, in four bytes.
inline void decode_five_bits(const uint8_t* fifth, const uint8_t* bytes, int zero, int8_t* codes) {
#ifdef __AVX512BW__
  const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  const __m128i nibble = _mm_set1_epi8(15), zeros = _mm_set1_epi8(static_cast<char>(zero));
  const __m128i four[2] = {_mm_and_si128(pairs, nibble),
                           _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble)};
  for (int half = 0; half < 2; ++half) {
    const __m128i sixteens = _mm_maskz_set1_epi8(read_16(fifth + 2 * half), 16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes) + half,
                     _mm_sub_epi8(_mm_add_epi8(four[half], sixteens), zeros));
  }
#else
  decode_halves(bytes, zero, codes);
  const uint32_t bits = read_16(fifth) | uint32_t{read_16(fifth + 2)} << 16;
  for (uint32_t i = 0; i < 32; ++i)
    codes[i] = static_cast<int8_t>(codes[i] + static_cast<int>(bits >> i & 1) * 16);
#endif
}

inline void decode_q8_0(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, read_float16(block));
  std::memcpy(out.codes, block + 2, 32);
}
inline void decode_q4_0(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, read_float16(block));
  decode_halves(block + 2, 8, out.codes);
}
inline void decode_q4_1(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, read_float16(block));
  set_offset(out, read_float16(block + 2));
  decode_halves(block + 4, 0, out.codes);
}
inline void decode_q5_0(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, read_float16(block));
  decode_five_bits(block + 2, block + 6, 16, out.codes);
}
inline void decode_q5_1(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, read_float16(block));
  set_offset(out, read_float16(block + 2));
  decode_five_bits(block + 4, block + 8, 0, out.codes);
}
inline void decode_iq4_nl(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, read_float16(block));
  look_up_halves(kNonLinear, block + 2, out.codes);
}
// The factor of mxfp4: half of 2^(exponent - 127), as codes are doubled.
inline float half_of_power(uint32_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? uint32_t{0x00200000} << exponent
                                           : (exponent - 1) << 23);
}
inline void decode_mxfp4(const uint8_t* block, DecodedBlock& out) {
  set_factor(out, half_of_power(block[0]));
  look_up_halves(kTwiceFloat4, block + 1, out.codes);
}

// Calls f(round, shift, codes) for each 32 of 256 codes that lie in rounds of 32 bytes: the codes of a round are first
// those in the lowest `bits` of each byte, then those in the next.
template <int bits, class F>
[[gnu::always_inline]] inline void for_codes(int8_t* codes, F&& f) {
#pragma GCC unroll 8
  for (int part = 0; part < 8; ++part) f(part * bits / 8, part * bits % 8, codes + 32 * part);
}

[[gnu::noinline]] inline void decode_q2_k(const uint8_t* block, DecodedBlock& out) {
  const uint8_t *scales = block, *low = block + 16;
  const float factor = read_float16(block + 80), offset = read_float16(block + 82);
  for (int group = 0; group < 16; ++group) {
    out.factors[group] = factor * static_cast<float>(scales[group] & 15);
    out.offsets[group] = -(offset * static_cast<float>(scales[group] >> 4));
  }
  for_codes<2>(out.codes, [&](int round, int shift, int8_t* __restrict codes) {
    for (int i = 0; i < 32; ++i) codes[i] = static_cast<int8_t>(low[32 * round + i] >> shift & 3);
  });
}

// Scales have six bits: four of them in bytes 0 to 7, two in bytes 8 to 11.
[[gnu::noinline]] inline void decode_q3_k(const uint8_t* block, DecodedBlock& out) {
  const uint8_t *high = block, *low = block + 32, *scales = block + 96;
  const float factor = read_float16(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int four = scales[group % 8] >> group / 8 * 4 & 15,
              two = scales[8 + group % 4] >> group / 4 * 2 & 3;
    out.factors[group] = factor * static_cast<float>((four | two << 4) - 32);
  }
  for_codes<2>(out.codes, [&](int round, int shift, int8_t* __restrict codes) {
    const int bit = 4 * round + shift / 2;
    for (int i = 0; i < 32; ++i) {
      const int two = low[32 * round + i] >> shift & 3, third = high[i] >> bit & 1;
      codes[i] = static_cast<int8_t>(two + 4 * third - 4);
    }
  });
}

// The eight factors and offsets of q4_K and q5_K, of six bits each in twelve bytes.
inline void decode_six_bit_pairs(const uint8_t* block, DecodedBlock& out) {
  const float factor = read_float16(block), offset = read_float16(block + 2);
  const uint8_t* bytes = block + 4;
  for (int i = 0; i < 8; ++i) {
    int scale = bytes[i] & 63, shift = bytes[i + 4] & 63;
    if (i >= 4) {
      scale = (bytes[i + 4] & 15) | bytes[i - 4] >> 6 << 4;
      shift = bytes[i + 4] >> 4 | bytes[i] >> 6 << 4;
    }
    out.factors[2 * i] = out.factors[2 * i + 1] = factor * static_cast<float>(scale);
    out.offsets[2 * i] = out.offsets[2 * i + 1] = -(offset * static_cast<float>(shift));
  }
}

[[gnu::noinline]] inline void decode_q4_k(const uint8_t* block, DecodedBlock& out) {
  decode_six_bit_pairs(block, out);
  const uint8_t* bytes = block + 16;
  for_codes<4>(out.codes, [&](int round, int shift, int8_t* __restrict codes) {
    for (int i = 0; i < 32; ++i)
      codes[i] = static_cast<int8_t>(bytes[32 * round + i] >> shift & 15);
  });
}
[[gnu::noinline]] inline void decode_q5_k(const uint8_t* block, DecodedBlock& out) {
  decode_six_bit_pairs(block, out);
  const uint8_t *fifth = block + 16, *bytes = block + 48;
  for_codes<4>(out.codes, [&](int round, int shift, int8_t* __restrict codes) {
    const int bit = 2 * round + shift / 4;
    for (int i = 0; i < 32; ++i) {
      const int four = bytes[32 * round + i] >> shift & 15;
      codes[i] = static_cast<int8_t>(four | (fifth[i] >> bit & 1) << 4);
    }
  });
}
[[gnu::noinline]] inline void decode_q6_k(const uint8_t* block, DecodedBlock& out) {
  const uint8_t *low = block, *high = block + 128;
  const float factor = read_float16(block + 208);
  for (int group = 0; group < 16; ++group)
    out.factors[group] = factor * static_cast<float>(static_cast<int8_t>(block[192 + group]));
  // The lower four bits lie in rounds of 64 bytes.
  for_codes<2>(out.codes, [&](int round, int shift, int8_t* __restrict codes) {
    const uint8_t* fours = low + 64 * round + 16 * (shift & 2);
    for (int i = 0; i < 32; ++i) {
      const int four = fours[i] >> (shift & 4) & 15, two = high[32 * round + i] >> shift & 3;
      codes[i] = static_cast<int8_t>((four | two << 4) - 32);
    }
  });
}
inline void decode_iq4_xs(const uint8_t* block, DecodedBlock& out) {
  const float factor = read_float16(block);
  const int high = read_16(block + 2);
  for (int i = 0; i < 8; ++i) {
    const int scale = (block[4 + i / 2] >> i % 2 * 4 & 15) | (high >> 2 * i & 3) << 4;
    out.factors[2 * i] = out.factors[2 * i + 1] = factor * static_cast<float>(scale - 32);
    look_up_halves(kNonLinear, block + 8 + 16 * i, out.codes + 32 * i);
  }
}

}  // namespace block_formats
}  // namespace tenon::cpu::TENON_CPU_ISA
