// SPDX-License-Identifier: Apache-2.0
// Loops of reductions over float16 and bfloat16. Elements are widened in registers
// (simd/low_precision.hpp) and accumulated in float32.
#pragma once

#include "reduce/reduction.hpp"
#include "simd/low_precision.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// The loops of TRAITS for ELEMENT; nullptr where the instruction set cannot convert registers.
#ifdef TENON_HAS_LOW_PRECISION_VEC
#define TENON_LOW_PRECISION_REDUCTION(TRAITS, ELEMENT) \
  &low_precision_reduction_loops<TRAITS, ELEMENT>
#else
#define TENON_LOW_PRECISION_REDUCTION(TRAITS, ELEMENT) nullptr
#endif

#ifdef TENON_HAS_LOW_PRECISION_VEC

// Accumulators are float32, as for blocks of converted elements.
template <template <class> class Traits, class Element>
struct LowPrecisionReductionLoops {
  using V = LowPrecisionVec<Element>;
  using Wide = Traits<V>;
  using Narrow = Traits<float>;
  static constexpr int count = V::count;
  static constexpr int kUnroll = 4;  // registers that need not wait for each other

  static V load(const uint16_t* x, int64_t n) {
    return n < count ? V::load_part(x, n) : V::load(x);
  }

  // Reduces the first n elements of a register.
  static float reduce_lanes(const Narrow& traits, V x, int64_t n) {
    float result = x.values[0];
    for (int64_t i = 1; i < n; ++i) result = traits.combine(result, x.values[i]);
    return result;
  }
  static float reduce_lanes(const Narrow& traits, V x) {
    float each[count];
    std::memcpy(each, &x.values, sizeof each);
    return reduce_pairwise<count>(each, [&](float a, float b) { return traits.combine(a, b); });
  }

  static float reduce(const uint16_t* x, int64_t n, const tenon_value* attributes) {
    const Wide traits(attributes);
    const Narrow narrow(attributes);
    if (n < count) return reduce_lanes(narrow, traits.map(V::load_part(x, n)), n);
    V total = traits.map(V::load(x));
    int64_t i = count;
    if (n >= kUnroll * count) {
      V partial[kUnroll] = {total};
      for (int t = 1; t < kUnroll; ++t) partial[t] = traits.map(V::load(x + t * count));
      for (i = kUnroll * count; i + kUnroll * count <= n; i += kUnroll * count) {
        for (int t = 0; t < kUnroll; ++t)
          partial[t] = traits.combine(partial[t], traits.map(V::load(x + i + t * count)));
      }
      total = traits.combine(traits.combine(partial[0], partial[1]),
                             traits.combine(partial[2], partial[3]));
    }
    for (; i + count <= n; i += count) total = traits.combine(total, traits.map(V::load(x + i)));
    const float result = reduce_lanes(narrow, total);
    if (i == n) return result;
    return narrow.combine(result,
                          reduce_lanes(narrow, traits.map(V::load_part(x + i, n - i)), n - i));
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

  // Reduces kWidth adjacent registers of columns; the last has `last` valid elements.
  template <int kWidth>
  static void columns_unrolled(const Wide& traits, const char* data, int64_t stride, int64_t rows,
                               float* result, int64_t last) {
    V totals[kWidth];
    const auto at = [&](int64_t row, int w) {
      const auto* x = reinterpret_cast<const uint16_t*>(data + row * stride) + w * count;
      return traits.map(kWidth == 1 ? load(x, last) : V::load(x));
    };
    for (int w = 0; w < kWidth; ++w) totals[w] = at(0, w);
    for (int64_t i = 1; i < rows; ++i) {
      for (int w = 0; w < kWidth; ++w) totals[w] = traits.combine(totals[w], at(i, w));
    }
    for (int w = 0; w < kWidth; ++w) {
      const auto bytes = static_cast<size_t>(kWidth == 1 ? last : count) * sizeof(float);
      std::memcpy(result + w * count, &totals[w].values, bytes);
    }
  }
  static void columns(const char* data, int64_t stride, int64_t rows, int64_t n, char* accumulators,
                      const tenon_value* attributes) {
    const Wide traits(attributes);
    auto* result = reinterpret_cast<float*>(accumulators);
    int64_t j = 0;
    const auto from = [&] { return data + j * static_cast<int64_t>(sizeof(uint16_t)); };
    for (; j + kUnroll * count <= n; j += kUnroll * count)
      columns_unrolled<kUnroll>(traits, from(), stride, rows, result + j, count);
    for (; j < n; j += count)
      columns_unrolled<1>(traits, from(), stride, rows, result + j,
                          std::min<int64_t>(n - j, count));
  }
};

template <template <class> class Traits, class Element>
inline constexpr ReductionLoops low_precision_reduction_loops = [] {
  using Loops = LowPrecisionReductionLoops<Traits, Element>;
  ReductionLoops loops = reduction_loops<Traits<float>>;
  loops.row = Loops::row;
  loops.rows = Loops::rows;
  loops.columns = Loops::columns;
  return loops;
}();
#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
