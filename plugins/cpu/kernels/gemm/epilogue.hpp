// SPDX-License-Identifier: Apache-2.0
// Where the sums of a product go: whoever can say where a column of C lies is a target.
#pragma once

#include "gemm/formats.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// C as a matrix with dense rows.
template <class Sum>
struct MatrixTarget {
  Sum* c;
  int64_t row;
  Sum* at(int64_t j) const { return c + j; }
  // Columns from j on that lie side by side.
  int64_t dense_from(int64_t) const { return INT64_MAX; }
};

// A target whose elements are not sums is not written in place.
template <class Target>
inline constexpr bool converts_sums = requires {
  &Target::put;
};

// n sums to elements side by side.
template <class Target, class Element, class Sum>
[[gnu::always_inline]] inline void put(const Target&, Element* to, const Sum* from, int64_t n,
                                       bool accumulate) {
  if constexpr (converts_sums<Target>) {
    Target::put(to, from, n, accumulate);
  } else if constexpr (Lanes<Sum>::kMasked) {
    for (int64_t s = 0; s < n; s += kWidth<Sum>) {
      const Lanes<Sum> lanes(n - s);
      store_sums(lanes, to + s, lanes.load(from + s), accumulate);
    }
  } else {
    for (int64_t s = 0; s < n; ++s) to[s] = accumulate ? Sum(to[s] + from[s]) : from[s];
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
