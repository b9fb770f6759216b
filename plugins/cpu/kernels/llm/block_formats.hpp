// SPDX-License-Identifier: Apache-2.0
// GGUF's formats of weights in blocks. Every format is decoded into one form: a code of 8 bits for each element, and for
// each 16 elements a factor and, in some formats, an offset, so that an element is `factor * code + offset`, in float32
// and rounded after each of the two operations. Blocks are read in place, from any address.
#pragma once

#include <tenon/reduced_float.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tenon::cpu {

inline constexpr int kElementsOfFactor = 16;
inline constexpr int kMaxBlockElements = 256;

// A decoded block; `offsets` is written by formats that have them.
struct DecodedBlock {
  int8_t codes[kMaxBlockElements];
  float factors[kMaxBlockElements / kElementsOfFactor];
  float offsets[kMaxBlockElements / kElementsOfFactor];
};

struct BlockFormat {
  std::string_view name;
  int elements, bytes;  // of a block
  bool has_offsets;
  void (*decode)(const uint8_t* block, DecodedBlock& out);
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
  Float16 half;
  half.bits = read_16(from);
  return half;
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
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<int8_t>((bytes[i] & 15) - zero);
    codes[i + 16] = static_cast<int8_t>((bytes[i] >> 4) - zero);
  }
}
inline void look_up_halves(const int8_t (&table)[16], const uint8_t* bytes, int8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = table[bytes[i] & 15];
    codes[i + 16] = table[bytes[i] >> 4];
  }
}
// The same with a fifth bit for each code, in four bytes.
inline void decode_five_bits(const uint8_t* fifth, const uint8_t* bytes, int zero, int8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    const int low = fifth[i / 8] >> i % 8 & 1, high = fifth[2 + i / 8] >> i % 8 & 1;
    codes[i] = static_cast<int8_t>(((bytes[i] & 15) | low << 4) - zero);
    codes[i + 16] = static_cast<int8_t>((bytes[i] >> 4 | high << 4) - zero);
  }
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
// The factor is half of 2^(e - 127), as codes are doubled.
inline void decode_mxfp4(const uint8_t* block, DecodedBlock& out) {
  const uint32_t exponent = block[0];
  const uint32_t bits = exponent < 2 ? uint32_t{0x00200000} << exponent : (exponent - 1) << 23;
  set_factor(out, std::bit_cast<float>(bits));
  look_up_halves(kTwiceFloat4, block + 1, out.codes);
}

// q2_K and q3_K: code i of 128 is the two bits 2 (i / 32) of byte i % 32.
inline int two_bits(const uint8_t* bytes, int i) {
  return bytes[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

inline void decode_q2_k(const uint8_t* block, DecodedBlock& out) {
  const uint8_t *scales = block, *low = block + 16;
  const float factor = read_float16(block + 80), offset = read_float16(block + 82);
  for (int group = 0; group < 16; ++group) {
    out.factors[group] = factor * static_cast<float>(scales[group] & 15);
    out.offsets[group] = -(offset * static_cast<float>(scales[group] >> 4));
  }
  for (int i = 0; i < 256; ++i) out.codes[i] = static_cast<int8_t>(two_bits(low, i));
}

// Scales have six bits: four of them in bytes 0 to 7, two in bytes 8 to 11.
inline void decode_q3_k(const uint8_t* block, DecodedBlock& out) {
  const uint8_t *high = block, *low = block + 32, *scales = block + 96;
  const float factor = read_float16(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int four = scales[group % 8] >> group / 8 * 4 & 15,
              two = scales[8 + group % 4] >> group / 4 * 2 & 3;
    out.factors[group] = factor * static_cast<float>((four | two << 4) - 32);
  }
  for (int i = 0; i < 256; ++i) {
    const int third = high[i % 32] >> i / 32 & 1;
    out.codes[i] = static_cast<int8_t>(two_bits(low, i) + 4 * third - 4);
  }
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

inline void decode_q4_k(const uint8_t* block, DecodedBlock& out) {
  decode_six_bit_pairs(block, out);
  const uint8_t* bytes = block + 16;
  for (int i = 0; i < 256; ++i)
    out.codes[i] = static_cast<int8_t>(bytes[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15);
}
inline void decode_q5_k(const uint8_t* block, DecodedBlock& out) {
  decode_six_bit_pairs(block, out);
  const uint8_t *fifth = block + 16, *bytes = block + 48;
  for (int i = 0; i < 256; ++i) {
    const int four = bytes[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15;
    out.codes[i] = static_cast<int8_t>(four | (fifth[i % 32] >> i / 32 & 1) << 4);
  }
}
inline void decode_q6_k(const uint8_t* block, DecodedBlock& out) {
  const uint8_t *low = block, *high = block + 128;
  const float factor = read_float16(block + 208);
  for (int group = 0; group < 16; ++group)
    out.factors[group] = factor * static_cast<float>(static_cast<int8_t>(block[192 + group]));
  for (int i = 0; i < 256; ++i) {
    const int four = low[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15,
              two = high[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    out.codes[i] = static_cast<int8_t>((four | two << 4) - 32);
  }
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

inline constexpr BlockFormat kBlockFormats[] = {
    {"q8_0", 32, 34, false, block_formats::decode_q8_0},
    {"q4_0", 32, 18, false, block_formats::decode_q4_0},
    {"q4_1", 32, 20, true, block_formats::decode_q4_1},
    {"q5_0", 32, 22, false, block_formats::decode_q5_0},
    {"q5_1", 32, 24, true, block_formats::decode_q5_1},
    {"q2_K", 256, 84, true, block_formats::decode_q2_k},
    {"q3_K", 256, 110, false, block_formats::decode_q3_k},
    {"q4_K", 256, 144, true, block_formats::decode_q4_k},
    {"q5_K", 256, 176, true, block_formats::decode_q5_k},
    {"q6_K", 256, 210, false, block_formats::decode_q6_k},
    {"iq4_nl", 32, 18, false, block_formats::decode_iq4_nl},
    {"iq4_xs", 256, 136, false, block_formats::decode_iq4_xs},
    {"mxfp4", 32, 17, false, block_formats::decode_mxfp4},
};

// NULL if no format has this name.
inline const BlockFormat* block_format(std::string_view name) {
  for (const BlockFormat& format : kBlockFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

// One block as float32. The sum is not contracted with the product: -ffp-contract=off is needed where this is compiled.
inline void dequantize_block(const BlockFormat& format, const uint8_t* block, float* to) {
  DecodedBlock decoded;
  format.decode(block, decoded);
  for (int i = 0; i < format.elements; ++i) {
    const float product =
        decoded.factors[i / kElementsOfFactor] * static_cast<float>(decoded.codes[i]);
    to[i] = format.has_offsets ? product + decoded.offsets[i / kElementsOfFactor] : product;
  }
}

}  // namespace tenon::cpu
