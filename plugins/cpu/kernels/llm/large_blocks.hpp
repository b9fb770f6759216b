// SPDX-License-Identifier: Apache-2.0
// q4_K, q5_K, q6_K and iq4_xs decoded in registers of AVX-512, with the bits of block_formats.hpp: `factor * code + offset`, rounded
// after each operation. A format gives 16 elements of a block at a time.
#pragma once

#include "llm/block_formats.hpp"
#include "llm/lanes.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

#ifdef __AVX512F__

[[gnu::always_inline]] inline __m512i sixteen_bytes(const uint8_t* from) {
  return _mm512_maskz_cvtepu8_epi32(0xffff,
                                    _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
// Bits of each word from `shift` on.
[[gnu::always_inline]] inline __m512i bits_of(__m512i words, int shift, int mask) {
  return _mm512_and_si512(_mm512_maskz_srli_epi32(0xffff, words, static_cast<unsigned>(shift)),
                          _mm512_set1_epi32(mask));
}

// The factors and offsets of the eight groups of 32 elements of q4_K and q5_K: two floats of 16 bits, then six bits each.
struct SixBitPairs {
  alignas(32) float factors[8], offsets[8];
  [[gnu::always_inline]] explicit SixBitPairs(const uint8_t* block) {
    uint32_t low, high, rest;
    std::memcpy(&low, block + 4, 4);
    std::memcpy(&high, block + 8, 4);
    std::memcpy(&rest, block + 12, 4);
    constexpr uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
    const auto floats = [](uint32_t first, uint32_t second, float unit) {
      const auto bytes = static_cast<long long>(uint64_t{second} << 32 | first);
      const __m256i numbers = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes));
      return _mm256_mul_ps(_mm256_cvtepi32_ps(numbers), _mm256_set1_ps(unit));
    };
    const __m256 scales = floats(low & six, (rest & four) | (low >> 2 & two),
                                 block_formats::read_float16(block)),
                 shifts = floats(high & six, (rest >> 4 & four) | (high >> 2 & two),
                                 block_formats::read_float16(block + 2));
    _mm256_store_ps(factors, scales);
    _mm256_store_ps(offsets, _mm256_xor_ps(shifts, _mm256_set1_ps(-0.0f)));
  }
};

// All numbers that a code of four bits, plus `first`, may stand for.
[[gnu::always_inline]] inline Lanes numbers_from(float first, float factor, float offset) {
  Lanes numbers;
  for (int i = 0; i < kLanes; ++i) numbers[i] = first + static_cast<float>(i);
  return numbers * factor + offset;
}

struct Q4K {
  static constexpr int kBytes = 144;
  SixBitPairs pairs;
  [[gnu::always_inline]] explicit Q4K(const uint8_t* block) : pairs(block) {}
  // Elements [64 round, 64 round + 64).
  [[gnu::always_inline]] void decode(const uint8_t* block, int round, Lanes* to) const {
    const Lanes low = numbers_from(0, pairs.factors[2 * round], pairs.offsets[2 * round]),
                high = numbers_from(0, pairs.factors[2 * round + 1], pairs.offsets[2 * round + 1]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      // The lookup reads the lowest four bits.
      const __m512i codes = sixteen_bytes(block + 16 + 32 * round + 16 * half);
      to[half] = Lanes(_mm512_maskz_permutexvar_ps(0xffff, codes, __m512(low)));
      to[2 + half] =
          Lanes(_mm512_maskz_permutexvar_ps(0xffff, bits_of(codes, 4, 15), __m512(high)));
    }
  }
};

struct Q5K {
  static constexpr int kBytes = 176;
  SixBitPairs pairs;
  [[gnu::always_inline]] explicit Q5K(const uint8_t* block) : pairs(block) {}
  [[gnu::always_inline]] void decode(const uint8_t* block, int round, Lanes* to) const {
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const int group = 2 * round + part;
      const __m512 first(numbers_from(0, pairs.factors[group], pairs.offsets[group])),
          second(numbers_from(16, pairs.factors[group], pairs.offsets[group]));
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512i four =
                          bits_of(sixteen_bytes(block + 48 + 32 * round + 16 * half), 4 * part, 15),
                      fifth = bits_of(sixteen_bytes(block + 16 + 16 * half), group, 1);
        const __m512i codes = _mm512_or_si512(four, _mm512_maskz_slli_epi32(0xffff, fifth, 4));
        to[2 * part + half] = Lanes(_mm512_maskz_permutex2var_ps(0xffff, first, codes, second));
      }
    }
  }
};

struct Q6K {
  static constexpr int kBytes = 210;
  alignas(64) float factors[16];
  [[gnu::always_inline]] explicit Q6K(const uint8_t* block) {
    const __m128i scales = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192));
    const Lanes numbers(
        _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, scales)));
    const Lanes all = block_formats::read_float16(block + 208) * numbers;
    std::memcpy(factors, &all, sizeof all);
  }
  [[gnu::always_inline]] void decode(const uint8_t* block, int round, Lanes* to) const {
    const int part = round / 2, shift = 4 * (round % 2);  // of 128 elements; of their four bits
#pragma GCC unroll 2
    for (int group = 0; group < 2; ++group) {
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const __m512i four = bits_of(sixteen_bytes(block + 64 * part + 32 * group + 16 * half),
                                     shift, 15),
                      two = bits_of(sixteen_bytes(block + 128 + 32 * part + 16 * half),
                                    shift + 2 * group, 3);
        const __m512i code = _mm512_sub_epi32(
            _mm512_or_si512(four, _mm512_maskz_slli_epi32(0xffff, two, 4)), _mm512_set1_epi32(32));
        to[2 * group + half] =
            Lanes(_mm512_maskz_cvtepi32_ps(0xffff, code)) * factors[4 * round + 2 * group + half];
      }
    }
  }
};

struct Iq4Xs {
  static constexpr int kBytes = 136;
  alignas(32) float factors[8];
  [[gnu::always_inline]] explicit Iq4Xs(const uint8_t* block) {
    uint32_t four;
    std::memcpy(&four, block + 4, 4);
    const __m256i groups = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const auto bits = [&](uint32_t word, int count) {
      const __m256i shifts = _mm256_mullo_epi32(groups, _mm256_set1_epi32(count));
      return _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(word)), shifts),
                              _mm256_set1_epi32((1 << count) - 1));
    };
    const __m256i high = bits(block_formats::read_16(block + 2), 2);
    const __m256i scale = _mm256_or_si256(bits(four, 4), _mm256_slli_epi32(high, 4));
    _mm256_store_ps(
        factors, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(scale, _mm256_set1_epi32(32))),
                               _mm256_set1_ps(block_formats::read_float16(block))));
  }
  [[gnu::always_inline]] void decode(const uint8_t* block, int round, Lanes* to) const {
    Lanes numbers;
    for (int i = 0; i < kLanes; ++i) numbers[i] = block_formats::kNonLinear[i];
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const int group = 2 * round + part;
      const __m512 scaled(numbers * factors[group]);
      const __m512i codes = sixteen_bytes(block + 8 + 16 * group);
      to[2 * part] = Lanes(_mm512_maskz_permutexvar_ps(0xffff, codes, scaled));
      to[2 * part + 1] = Lanes(_mm512_maskz_permutexvar_ps(0xffff, bits_of(codes, 4, 15), scaled));
    }
  }
};

template <class Format>
struct LargeBlocks {
  static constexpr int kElements = 256, kBytes = Format::kBytes;
  [[gnu::always_inline]] static void decode(const uint8_t* block, Lanes* weights) {
    const Format format(block);
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) format.decode(block, round, weights + 4 * round);
  }
};

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
