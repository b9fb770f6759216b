// SPDX-License-Identifier: Apache-2.0
// Rows of float32 rounded to 8 bits: each 32 elements as whole steps of a 127th of their largest magnitude.
#pragma once

#include "llm/int8_panels.hpp"

#include <cfloat>

namespace tenon::cpu::TENON_CPU_ISA {

inline constexpr int kScaled = 32;  // elements that share a step

// m rows of k elements. A group is what a factor of the weight belongs to, 16 or 32 elements.
struct Int8Rows {
  int8_t* codes;  // [m, k]
  float* steps;   // [m, k / kScaled]
  // For each group, what the product needs to know of the sum of its codes, [m, k / group]. Where weights are stored with a
  // zero point: that many times the sum, negated, as int32. Where they have offsets: the sum times the step, as float32.
  void* sums;
  int64_t m, k, group;

  static int64_t bytes(int64_t m, int64_t k, int64_t group) {
    return rounded(m * k) + rounded(m * (k / kScaled) * 4) + rounded(m * (k / group) * 4);
  }
  static Int8Rows in(void* memory, int64_t m, int64_t k, int64_t group) {
    auto* at = static_cast<char*>(memory);
    Int8Rows rows{.codes = reinterpret_cast<int8_t*>(at), .m = m, .k = k, .group = group};
    rows.steps = reinterpret_cast<float*>(at += rounded(m * k));
    rows.sums = at + rounded(m * (k / kScaled) * 4);
    return rows;
  }

 private:
  static int64_t rounded(int64_t bytes) { return (bytes + 63) & ~int64_t{63}; }
};

// Rounds 32 elements and returns their step. Of numbers that are not finite the step is not finite either, and so is
// everything that is computed with it.
[[gnu::always_inline]] inline float round_to_int8(const float* from, int8_t* codes) {
  typedef int8_t Bytes __attribute__((vector_size(kLanes)));
  const Lanes numbers[2] = {load_lanes(from), load_lanes(from + kLanes)};
  // As integers, magnitudes have the order of floats, and NaN is the largest.
  const IntLanes first = IntLanes(numbers[0]) & INT32_MAX,
                 second = IntLanes(numbers[1]) & INT32_MAX;
  const IntLanes larger = first > second ? first : second;
  int32_t largest = 0;
  for (int i = 0; i < kLanes; ++i) largest = std::max(largest, larger[i]);
  const float step = std::bit_cast<float>(largest) / 127;
  const float inverse = step >= FLT_MIN ? 1 / step : 0;
  for (int half = 0; half < 2; ++half) {
    // 1.5 * 2^23, at which steps of float32 are 1.
    const IntLanes rounded = IntLanes(numbers[half] * inverse + 12582912.0f) - 0x4B400000;
    const Bytes bytes = __builtin_convertvector(rounded, Bytes);
    std::memcpy(codes + half * kLanes, &bytes, sizeof bytes);
  }
  return step;
}

// Fills row i of `to`. `zero` is the zero point of the weight's codes; 0 if they have offsets.
inline void round_row(const float* from, int zero, const Int8Rows& to, int64_t i) {
  int8_t* codes = to.codes + i * to.k;
  float* steps = to.steps + i * (to.k / kScaled);
  for (int64_t block = 0; block < to.k / kScaled; ++block)
    steps[block] = round_to_int8(from + block * kScaled, codes + block * kScaled);
  const int64_t groups = to.k / to.group;
  auto* starts = static_cast<int32_t*>(to.sums) + i * groups;
  for (int64_t group = 0; group < groups; ++group) {
    int32_t sum = 0;
    for (int64_t p = 0; p < to.group; ++p) sum += codes[group * to.group + p];
    starts[group] =
        zero ? -zero * sum
             : std::bit_cast<int32_t>(steps[group * to.group / kScaled] * static_cast<float>(sum));
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
