// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers by AVX2, whose instruction multiplies unsigned bytes by signed ones and adds up pairs in 16
// bits. Their sums are exact: no more pairs are added in 16 bits than fit with the largest code of a format.
#pragma once

#include "llm/avx2_formats.hpp"
#include "llm/int8_rows.hpp"
#include "llm/read_ahead.hpp"

#include <algorithm>
#include <bit>

#ifdef __AVX2__

namespace tenon::cpu::TENON_CPU_ISA {

template <class Format>
class Avx2Product {
  static constexpr int kGroup = Format::kGroup;
  static constexpr bool kOffsets = Format::kOffsets, kHasZero = Format::kZero != 0;
  static constexpr bool kSigned = !kOffsets && !kHasZero;
  // Sums of pairs that fit 16 bits, of the quads of a group.
  static constexpr int kQuads = kGroup / 4;
  static constexpr int kFit = static_cast<int>(std::bit_floor(
      static_cast<unsigned>(std::clamp(32767 / (Format::kMaxCode * 254), 1, kQuads))));

 public:
  static constexpr bool kInRegisters = true;
  // A row of x times 16 rows of the weight from `from` on, a part of `blocks` blocks that begins with element k of x: added
  // to `sums`. Eight rows at a time: the eight sums of each are added up side by side.
  static void multiply_row(const uint8_t* from, ReadAhead ahead, int64_t row_bytes, int64_t blocks,
                           const Int8Rows& x, int64_t k, Int8Panel& scales, Lanes& sums) {
    Format::decode_scales(from, row_bytes, blocks, scales);
    const auto* x_codes = reinterpret_cast<const uint8_t*>(x.codes + k);
    const Scaled row = {x.steps + k / kScaled, static_cast<const int32_t*>(x.sums) + k / kGroup};
    float totals[kPanelRows];
    std::memcpy(totals, &sums, sizeof totals);
    for (int first = 0; first < kPanelRows; first += kRowsOfRegister) {
      __m256 total = _mm256_loadu_ps(totals + first);
      const uint8_t* block = from + first * row_bytes;
      for (int64_t b = 0, g = 0; b < blocks; ++b, block += Format::kBytes) {
        ahead.template step<kRowsOfRegister * Format::kBytes>();
#pragma GCC unroll 8
        for (int part = 0; part < Format::kElements / 32; ++part) {
          const __m256i y = load_32(x_codes + 32 * (b * (Format::kElements / 32) + part));
          __m256i quads[8];
#pragma GCC unroll 8
          for (int r = 0; r < kRowsOfRegister; ++r)
            quads[r] = added(pairs(Format::codes(block + r * row_bytes, part), y));
          const __m256i low = four_sums(quads), high = four_sums(quads + 4);
          const __m256i halves[2] = {_mm256_permute2x128_si256(low, high, 0x20),
                                     _mm256_permute2x128_si256(low, high, 0x31)};
          if constexpr (kGroup == 32) {
            add_group(_mm256_add_epi32(halves[0], halves[1]), scales, row, g++, first, total);
          } else {
            add_group(halves[0], scales, row, g++, first, total);
            add_group(halves[1], scales, row, g++, first, total);
          }
        }
      }
      _mm256_storeu_ps(totals + first, total);
    }
    std::memcpy(&sums, totals, sizeof totals);
  }

  // `tile` rows of x from row i, from element k on, times `groups` groups of a panel: added to `sums` [tile].
  template <int tile>
  static void multiply_panel(const Int8Panel& panel, const Int8Rows& x, int64_t i, int64_t k,
                             int64_t groups, Lanes* sums) {
    const int64_t x_groups = x.k / kGroup, x_steps = x.k / kScaled;
    const int8_t* x_codes = x.codes + i * x.k + k;
    const Scaled row = {x.steps + i * x_steps + k / kScaled,
                        static_cast<const int32_t*>(x.sums) + i * x_groups + k / kGroup};
    float totals[tile][kPanelRows];
    std::memcpy(totals, sums, sizeof totals);
    for (int first = 0; first < kPanelRows; first += kRowsOfRegister) {
      __m256 total[tile];
#pragma GCC unroll 4
      for (int t = 0; t < tile; ++t) total[t] = _mm256_loadu_ps(totals[t] + first);
      for (int64_t g = 0; g < groups; ++g) {
        __m256i dots[tile];
#pragma GCC unroll 4
        for (int t = 0; t < tile; ++t) dots[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int q = 0; q < kQuads; q += kFit) {
          __m256i fitting[tile];
#pragma GCC unroll 8
          for (int f = 0; f < kFit; ++f) {
            const __m256i codes = _mm256_load_si256(
                reinterpret_cast<const __m256i*>(panel.codes[g * kQuads + q + f] + first));
#pragma GCC unroll 4
            for (int t = 0; t < tile; ++t) {
              int32_t quad;
              std::memcpy(&quad, x_codes + t * x.k + g * kGroup + 4 * (q + f), 4);
              const __m256i made = pairs(codes, _mm256_set1_epi32(quad));
              fitting[t] = f == 0 ? made : _mm256_add_epi16(fitting[t], made);
            }
          }
#pragma GCC unroll 4
          for (int t = 0; t < tile; ++t) dots[t] = _mm256_add_epi32(dots[t], added(fitting[t]));
        }
#pragma GCC unroll 4
        for (int t = 0; t < tile; ++t) {
          const Scaled of_row = {row.steps + t * x_steps, row.sums + t * x_groups};
          add_group(dots[t], panel, of_row, g, first, total[t]);
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < tile; ++t) _mm256_storeu_ps(totals[t] + first, total[t]);
    }
    std::memcpy(sums, totals, sizeof totals);
  }

 private:
  // Of a row of x: steps of each 32 elements, and sums of each group (Int8Rows).
  struct Scaled {
    const float* steps;
    const int32_t* sums;
  };

  [[gnu::always_inline]] static __m256i pairs(__m256i codes, __m256i x) {
    if constexpr (kSigned)
      return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
    else
      return _mm256_maddubs_epi16(codes, x);
  }
  [[gnu::always_inline]] static __m256i added(__m256i sixteen_bits) {
    return _mm256_madd_epi16(sixteen_bits, _mm256_set1_epi16(1));
  }
  // Sums of the lower halves of four registers in the lower half, those of the upper ones in the upper.
  [[gnu::always_inline]] static __m256i four_sums(const __m256i* quads) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(quads[0], quads[1]),
                             _mm256_hadd_epi32(quads[2], quads[3]));
  }
  // What the dot products of group g, of the rows of the panel from `first` on, are in the result.
  [[gnu::always_inline]] static void add_group(__m256i dots, const Int8Panel& scales,
                                               const Scaled& x, int64_t g, int first,
                                               __m256& total) {
    if constexpr (kHasZero) dots = _mm256_add_epi32(dots, _mm256_set1_epi32(x.sums[g]));
    const __m256 step = _mm256_set1_ps(x.steps[g * kGroup / kScaled]);
    const __m256 factors = _mm256_mul_ps(_mm256_load_ps(scales.factors[g] + first), step);
    total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), factors, total);
    if constexpr (kOffsets) {
      const __m256 sum = _mm256_set1_ps(std::bit_cast<float>(x.sums[g]));
      total = _mm256_fmadd_ps(_mm256_load_ps(scales.offsets[g] + first), sum, total);
    }
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA

#endif
