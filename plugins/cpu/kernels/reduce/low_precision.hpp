// SPDX-License-Identifier: Apache-2.0
// Loops of reductions over float16 and bfloat16, in registers of float32 (half_lanes.hpp).
#pragma once

#include "simd/low_precision.hpp"
#include "reduce/reduction.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The loops of `Traits` for `Half`; none where the instruction set cannot convert registers.
#ifdef TENON_HAS_HALF_LANES
#define TENON_HALF_REDUCTION(TRAITS, HALF) &half_reduction_loops<TRAITS, HALF>
#else
#define TENON_HALF_REDUCTION(TRAITS, HALF) nullptr
#endif

#ifdef TENON_HAS_HALF_LANES

// Accumulators are float32 ones, as for blocks of converted elements.
template <template <class> class Traits, class Half>
struct HalfReductionLoops {
  using Lanes = HalfLanes<Half>;
  using Wide = Traits<Lanes>;
  using Narrow = Traits<float>;
  static constexpr int count = Lanes::count;
  static constexpr int kTeams = 4;  // registers that need not wait for each other

  static Lanes load(const uint16_t* x, int64_t n) {
    return n < count ? Lanes::load_part(x, n) : Lanes::load(x);
  }

  // One accumulator of the lanes, of which only the first n count.
  static float fold(const Narrow& traits, Lanes lanes, int64_t n) {
    float result = lanes.lanes[0];
    for (int64_t i = 1; i < n; ++i) result = traits.combine(result, lanes.lanes[i]);
    return result;
  }
  static float fold(const Narrow& traits, Lanes lanes) {
    float each[count];
    std::memcpy(each, &lanes.lanes, sizeof each);
    return fold_lanes<count>(each, [&](float a, float b) { return traits.combine(a, b); });
  }

  static float reduce(const uint16_t* x, int64_t n, const tenon_value* attributes) {
    const Wide traits(attributes);
    const Narrow narrow(attributes);
    if (n < count) return fold(narrow, traits.map(Lanes::load_part(x, n)), n);
    Lanes total = traits.map(Lanes::load(x));
    int64_t i = count;
    if (n >= kTeams * count) {
      Lanes teams[kTeams] = {total};
      for (int t = 1; t < kTeams; ++t) teams[t] = traits.map(Lanes::load(x + t * count));
      for (i = kTeams * count; i + kTeams * count <= n; i += kTeams * count) {
        for (int t = 0; t < kTeams; ++t)
          teams[t] = traits.combine(teams[t], traits.map(Lanes::load(x + i + t * count)));
      }
      total =
          traits.combine(traits.combine(teams[0], teams[1]), traits.combine(teams[2], teams[3]));
    }
    for (; i + count <= n; i += count)
      total = traits.combine(total, traits.map(Lanes::load(x + i)));
    const float result = fold(narrow, total);
    if (i == n) return result;
    return narrow.combine(result, fold(narrow, traits.map(Lanes::load_part(x + i, n - i)), n - i));
  }

  static void row(const char* data, int64_t n, char* accumulator, const tenon_value* attributes) {
    *reinterpret_cast<float*>(accumulator) =
        reduce(reinterpret_cast<const uint16_t*>(data), n, attributes);
  }
  static void rows(const char* data, int64_t stride, int64_t rows, int64_t n, char* accumulators,
                   const tenon_value* attributes) {
    for (int64_t i = 0; i < rows; ++i)
      row(data + i * stride, n, accumulators + i * sizeof(float), attributes);
  }

  // kWidth registers side by side, the last of which has `last` lanes that count.
  template <int kWidth>
  static void columns_together(const Wide& traits, const char* data, int64_t stride, int64_t rows,
                               float* result, int64_t last) {
    Lanes totals[kWidth];
    const auto at = [&](int64_t row, int w) {
      const auto* x = reinterpret_cast<const uint16_t*>(data + row * stride) + w * count;
      return traits.map(kWidth == 1 ? load(x, last) : Lanes::load(x));
    };
    for (int w = 0; w < kWidth; ++w) totals[w] = at(0, w);
    for (int64_t i = 1; i < rows; ++i) {
      for (int w = 0; w < kWidth; ++w) totals[w] = traits.combine(totals[w], at(i, w));
    }
    for (int w = 0; w < kWidth; ++w) {
      const auto bytes = static_cast<size_t>(kWidth == 1 ? last : count) * sizeof(float);
      std::memcpy(result + w * count, &totals[w].lanes, bytes);
    }
  }
  static void columns(const char* data, int64_t stride, int64_t rows, int64_t n, char* accumulators,
                      const tenon_value* attributes) {
    const Wide traits(attributes);
    auto* result = reinterpret_cast<float*>(accumulators);
    int64_t j = 0;
    const auto from = [&] { return data + j * static_cast<int64_t>(sizeof(uint16_t)); };
    for (; j + kTeams * count <= n; j += kTeams * count)
      columns_together<kTeams>(traits, from(), stride, rows, result + j, count);
    for (; j < n; j += count)
      columns_together<1>(traits, from(), stride, rows, result + j,
                          std::min<int64_t>(n - j, count));
  }
};

template <template <class> class Traits, class Half>
inline constexpr ReductionLoops half_reduction_loops = [] {
  using Loops = HalfReductionLoops<Traits, Half>;
  ReductionLoops loops = reduction_loops<Traits<float>>;
  loops.row = Loops::row;
  loops.rows = Loops::rows;
  loops.columns = Loops::columns;
  return loops;
}();
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
