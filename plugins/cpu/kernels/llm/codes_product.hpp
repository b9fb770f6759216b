// SPDX-License-Identifier: Apache-2.0
// Products of floats with a weight of codes that have factors: integers of 8 or 4 bits, or float8. Threads divide the rows of
// the weight, four at a time, which are decoded into the cache; an element of the result is a chain of multiply-adds along k.
// A format of codes has these members:
//
//   kHalved          two codes in a byte
//   load(row, k)     codes k to k + 15 of a row as floats
#pragma once

#include "llm/block_weights.hpp"
#include "parallel_scratch.hpp"

#include <algorithm>
#include <bit>

namespace tenon::cpu::TENON_CPU_ISA {

constexpr int kCodeRows = 4;  // of the weight
// Rows of x up to which this is faster than a product with the decoded weight.
constexpr int64_t kMaxCodeRows = 64;
constexpr int64_t kCodePart = 256;  // elements of a row that are decoded at once for few rows of x
constexpr int kCodeTile =
    kVectorBytes == 64 ? 4 : 1;  // rows of x for each reading of decoded weights

struct CodesProduct {
  const float *x, *scale, *bias;  // bias may be NULL
  const int8_t* weight;
  float* out;
  int64_t m, n, k;
  int64_t group;  // elements of a row that share a factor, a multiple of 16 unless it is the row
  int64_t factor_rows = 1;  // rows that share factors
  int64_t row_factors = 1;  // factors of a row
};

struct Int8Codes {
  static constexpr bool kHalved = false;
  static Lanes load(const int8_t* row, int64_t k) { return numbers_of(row + k); }
};

struct Int4Codes {
  static constexpr bool kHalved = true;
  static Lanes load(const int8_t* row, int64_t k) {
    alignas(16) int8_t codes[kLanes];
#ifdef __SSE2__
    const __m128i nibble = _mm_set1_epi8(15), eights = _mm_set1_epi8(8);
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + k / 2));
    const __m128i pairs = _mm_unpacklo_epi8(_mm_and_si128(bytes, nibble),
                                            _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble));
    _mm_store_si128(reinterpret_cast<__m128i*>(codes),
                    _mm_sub_epi8(_mm_xor_si128(pairs, eights), eights));  // carries the sign
#elif defined(__aarch64__)
    const int8x8_t bytes = vld1_s8(row + k / 2);
    const int8x8x2_t pairs = {{vshr_n_s8(vshl_n_s8(bytes, 4), 4), vshr_n_s8(bytes, 4)}};
    vst2_s8(codes, pairs);  // in turn
#else
    for (int i = 0; i < kLanes / 2; ++i) {
      const int byte = row[k / 2 + i];
      codes[2 * i] = static_cast<int8_t>(static_cast<int8_t>(byte << 4) >> 4);
      codes[2 * i + 1] = static_cast<int8_t>(byte >> 4);
    }
#endif
    return numbers_of(codes);
  }
};

// float8 by the bits of float32, whose exponents begin elsewhere. Subnormal numbers are converted as integers: arithmetic with
// subnormal floats would take hundreds of cycles.
template <bool is_e4m3>
struct Float8Codes {
  static constexpr bool kHalved = false;
  static constexpr int kMantissa = is_e4m3 ? 3 : 2, kBias = is_e4m3 ? 7 : 15;
  static constexpr float kSmallest = is_e4m3 ? 0x1p-9f : 0x1p-16f;
  static constexpr uint32_t kMoved = (127 - kBias) << 23;
  static Lanes load(const int8_t* row, int64_t k) {
#ifdef __AVX512F__
    const auto all = [](uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); };
    const __m512i words = _mm512_maskz_cvtepu8_epi32(
                      0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + k))),
                  magnitude = _mm512_and_si512(words, all(0x7f)),
                  moved = _mm512_maskz_slli_epi32(0xffff, magnitude, 23 - kMantissa);
    const __m512 small =
        _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, magnitude), _mm512_set1_ps(kSmallest));
    // e4m3 has one NaN and no infinity.
    const __mmask16 is_small = _mm512_cmplt_epi32_mask(magnitude, all(1 << kMantissa)),
                    is_special = _mm512_cmpge_epi32_mask(magnitude, all(is_e4m3 ? 0x7f : 0x7c));
    const __m512i special =
        is_e4m3 ? all(0x7fc00000)
                : _mm512_or_si512(_mm512_and_si512(moved, all(0x007fffff)), all(0x7f800000));
    __m512i bits = _mm512_mask_mov_epi32(_mm512_add_epi32(moved, all(kMoved)), is_small,
                                         _mm512_castps_si512(small));
    bits = _mm512_mask_mov_epi32(bits, is_special, special);
    const __m512i sign = _mm512_maskz_slli_epi32(0xffff, _mm512_and_si512(words, all(0x80)), 24);
    return Lanes(_mm512_or_si512(bits, sign));
#else
    alignas(64) uint32_t bits[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t word = static_cast<uint8_t>(row[k + i]), magnitude = word & 0x7f;
      const uint32_t moved = magnitude << (23 - kMantissa);
      const auto small = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * kSmallest);
      const uint32_t special = is_e4m3 ? 0x7fc00000 : (moved & 0x007fffff) | 0x7f800000;
      uint32_t number = magnitude < (1u << kMantissa) ? small : moved + kMoved;
      number = magnitude >= (is_e4m3 ? 0x7fu : 0x7cu) ? special : number;
      bits[i] = number | (word & 0x80) << 24;
    }
    Lanes numbers;
    std::memcpy(&numbers, bits, sizeof numbers);
    return numbers;
#endif
  }
};

// Elements [begin, end) of row j of the weight.
template <class Codes>
void decode(const CodesProduct& p, int64_t j, int64_t begin, int64_t end, float* to) {
  const int8_t* row = p.weight + j * (Codes::kHalved ? p.k / 2 : p.k);
  const float* scale = p.scale + j / p.factor_rows * p.row_factors;
  for (int64_t k = begin; k < end;) {
    const float factor = scale[k / p.group];
    for (const int64_t last = std::min(end, (k / p.group + 1) * p.group); k < last; k += kLanes) {
      const Lanes numbers = Codes::load(row, k) * factor;
      std::memcpy(to + k - begin, &numbers, sizeof numbers);
    }
  }
}

// Adds products of elements [begin, end) of `tile` rows of x with decoded rows, which are `stride` apart.
template <int tile>
void add(const CodesProduct& p, int64_t i, int64_t begin, int64_t end, const float* decoded,
         int64_t stride, Lanes (&sums)[tile][kCodeRows]) {
  for (int64_t k = begin; k < end; k += kLanes) {
    for (int row = 0; row < kCodeRows; ++row) {
      const Lanes weights = load_lanes(decoded + row * stride + k - begin);
      for (int t = 0; t < tile; ++t)
        sums[t][row] = multiply_add(weights, load_lanes(p.x + (i + t) * p.k + k), sums[t][row]);
    }
  }
}

template <int tile>
void put(const CodesProduct& p, int64_t i, int64_t j, int64_t rows,
         const Lanes (&sums)[tile][kCodeRows]) {
  for (int t = 0; t < tile; ++t) {
    for (int64_t row = 0; row < rows; ++row) {
      const float sum = sum_of(sums[t][row]);
      p.out[(i + t) * p.n + j + row] = p.bias ? sum + p.bias[j + row] : sum;
    }
  }
}

template <class Codes>
void multiply_codes(const CodesProduct& p, int64_t j, float* decoded) {
  const int64_t rows = std::min<int64_t>(kCodeRows, p.n - j);
  const auto decode_rows = [&](int64_t begin, int64_t end, int64_t stride) {
    for (int64_t row = 0; row < kCodeRows; ++row)  // the last one again where there are fewer
      decode<Codes>(p, j + std::min(row, rows - 1), begin, end, decoded + row * stride);
  };
  if (p.m == 1) {
    Lanes sums[1][kCodeRows] = {};
    for (int64_t k = 0; k < p.k; k += kCodePart) {
      const int64_t end = std::min(p.k, k + kCodePart);
      decode_rows(k, end, kCodePart);
      add<1>(p, 0, k, end, decoded, kCodePart, sums);
    }
    return put<1>(p, 0, j, rows, sums);
  }
  decode_rows(0, p.k, p.k);
  int64_t i = 0;
  const auto run = [&]<int tile>(std::integral_constant<int, tile>) {
    Lanes sums[tile][kCodeRows] = {};
    add<tile>(p, i, 0, p.k, decoded, p.k, sums);
    put<tile>(p, i, j, rows, sums);
  };
  for (; i + kCodeTile <= p.m; i += kCodeTile) run(std::integral_constant<int, kCodeTile>{});
  for (; i < p.m; ++i) run(std::integral_constant<int, 1>{});
}

template <class Codes>
tenon_status multiply_codes(tenon_ctx* ctx, const CodesProduct& p, tenon_err* err) {
  const int64_t tasks = (p.n + kCodeRows - 1) / kCodeRows, work = kCodeRows * p.k * (p.m + 1);
  const int64_t bytes = kCodeRows * (p.m == 1 ? kCodePart : p.k) * int64_t{sizeof(float)};
  return parallel_for_with_scratch(ctx, tasks, work, bytes, err, [&](int64_t task, void* own) {
    multiply_codes<Codes>(p, task * kCodeRows, static_cast<float*>(own));
  });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
