// SPDX-License-Identifier: Apache-2.0
// Blocks of weights as vectors of float32. A format is a type with the sizes of its blocks and a function `decode` that
// gives the weights of one; every way to decode a format gives the same bits.
#pragma once

#include "llm/block_formats.hpp"
#include "llm/lanes.hpp"
#include "llm/large_blocks.hpp"

#include <tenon/block_formats.hpp>

namespace tenon::cpu::TENON_CPU_ISA {

// A format by its codes, factors and offsets.
template <int elements, int bytes, bool has_offsets,
          void (*decode_codes)(const uint8_t*, DecodedBlock&)>
struct CodedBlocks {
  static constexpr int kElements = elements, kBytes = bytes;
  [[gnu::always_inline]] static void decode(const uint8_t* block, Lanes* weights) {
    static_assert(kLanes == kElementsOfFactor);
    DecodedBlock decoded;
    decode_codes(block, decoded);
    for (int group = 0; group < kElements / kLanes; ++group) {
      weights[group] = numbers_of(decoded.codes + group * kLanes) * decoded.factors[group];
      if (has_offsets) weights[group] += decoded.offsets[group];
    }
  }
};

#ifdef __AVX512F__
// A format with one of 16 numbers for four bits, times the factor of the block: they are looked up in a register.
template <class Format>
struct LookedUpBlocks {
  static constexpr int kElements = 32, kBytes = Format::kCodes + 16;
  [[gnu::always_inline]] static void decode(const uint8_t* block, Lanes* weights) {
    Lanes numbers;
    for (int i = 0; i < 16; ++i) numbers[i] = static_cast<float>(Format::number(i));
    numbers *= Format::factor(block);
    if constexpr (requires { Format::offset(block); }) numbers += Format::offset(block);
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + Format::kCodes));
    const __m512i pairs = _mm512_cvtepu8_epi32(bytes);  // the lookup reads the lowest four bits
    weights[0] = Lanes(_mm512_permutexvar_ps(pairs, __m512(numbers)));
    weights[1] = Lanes(_mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 4), __m512(numbers)));
  }
};

struct Q40 {
  static constexpr int kCodes = 2;
  static constexpr int number(int code) { return code - 8; }
  static float factor(const uint8_t* block) { return block_formats::read_float16(block); }
};
struct Q41 {
  static constexpr int kCodes = 4;
  static constexpr int number(int code) { return code; }
  static float factor(const uint8_t* block) { return block_formats::read_float16(block); }
  static float offset(const uint8_t* block) { return block_formats::read_float16(block + 2); }
};
struct Iq4Nl {
  static constexpr int kCodes = 2;
  static constexpr int number(int code) { return block_formats::kNonLinear[code]; }
  static float factor(const uint8_t* block) { return block_formats::read_float16(block); }
};
struct Mxfp4 {
  static constexpr int kCodes = 1;
  static constexpr int number(int code) { return block_formats::kTwiceFloat4[code]; }
  static float factor(const uint8_t* block) { return block_formats::half_of_power(block[0]); }
};
using Q40Blocks = LookedUpBlocks<Q40>;
using Q41Blocks = LookedUpBlocks<Q41>;
using Iq4NlBlocks = LookedUpBlocks<Iq4Nl>;
using Mxfp4Blocks = LookedUpBlocks<Mxfp4>;
using Q4KBlocks = LargeBlocks<Q4K>;
using Q5KBlocks = LargeBlocks<Q5K>;
using Q6KBlocks = LargeBlocks<Q6K>;
using Iq4XsBlocks = LargeBlocks<Iq4Xs>;
#else
using Q40Blocks = CodedBlocks<32, 18, false, block_formats::decode_q4_0>;
using Q41Blocks = CodedBlocks<32, 20, true, block_formats::decode_q4_1>;
using Iq4NlBlocks = CodedBlocks<32, 18, false, block_formats::decode_iq4_nl>;
using Mxfp4Blocks = CodedBlocks<32, 17, false, block_formats::decode_mxfp4>;
using Q4KBlocks = CodedBlocks<256, 144, true, block_formats::decode_q4_k>;
using Q5KBlocks = CodedBlocks<256, 176, true, block_formats::decode_q5_k>;
using Q6KBlocks = CodedBlocks<256, 210, false, block_formats::decode_q6_k>;
using Iq4XsBlocks = CodedBlocks<256, 136, false, block_formats::decode_iq4_xs>;
#endif

// Calls f(format) with the type of a format whose name the shape rule has checked.
template <class F>
void with_block_format(std::string_view name, F&& f) {
  namespace from = block_formats;
  if (name == "q8_0") return f(CodedBlocks<32, 34, false, from::decode_q8_0>{});
  if (name == "q4_0") return f(Q40Blocks{});
  if (name == "q4_1") return f(Q41Blocks{});
  if (name == "q5_0") return f(CodedBlocks<32, 22, false, from::decode_q5_0>{});
  if (name == "q5_1") return f(CodedBlocks<32, 24, true, from::decode_q5_1>{});
  if (name == "q2_K") return f(CodedBlocks<256, 84, true, from::decode_q2_k>{});
  if (name == "q3_K") return f(CodedBlocks<256, 110, false, from::decode_q3_k>{});
  if (name == "q4_K") return f(Q4KBlocks{});
  if (name == "q5_K") return f(Q5KBlocks{});
  if (name == "q6_K") return f(Q6KBlocks{});
  if (name == "iq4_nl") return f(Iq4NlBlocks{});
  if (name == "iq4_xs") return f(Iq4XsBlocks{});
  if (name == "mxfp4") return f(Mxfp4Blocks{});
}

}  // namespace tenon::cpu::TENON_CPU_ISA
