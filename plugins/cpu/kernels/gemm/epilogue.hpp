// SPDX-License-Identifier: Apache-2.0
// Epilogues: where the accumulators of a GEMM are stored. An epilogue locates a column of C and
// says how many columns from there are adjacent in memory.
#pragma once

#include "gemm/formats.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// C is a matrix with dense rows.
template <class Accumulator>
struct MatrixEpilogue {
  Accumulator* c;
  int64_t row;
  Accumulator* at(int64_t j) const { return c + j; }
  // Number of columns from j on that are adjacent in memory.
  int64_t dense_from(int64_t) const { return INT64_MAX; }
};

// True if elements of C have another type than accumulators; the micro-kernel then writes to a
// buffer first.
template <class Epilogue>
inline constexpr bool converts_accumulators = requires {
  &Epilogue::store_run;
};

// Stores n accumulators to adjacent elements.
template <class Epilogue, class Element, class Accumulator>
[[gnu::always_inline]] inline void store_run(const Epilogue&, Element* to, const Accumulator* from,
                                             int64_t n, bool accumulate) {
  if constexpr (converts_accumulators<Epilogue>) {
    Epilogue::store_run(to, from, n, accumulate);
  } else if constexpr (VecMask<Accumulator>::kMasked) {
    for (int64_t s = 0; s < n; s += kWidth<Accumulator>) {
      const VecMask<Accumulator> mask(n - s);
      store_accumulators(mask, to + s, mask.load(from + s), accumulate);
    }
  } else {
    for (int64_t s = 0; s < n; ++s) to[s] = accumulate ? Accumulator(to[s] + from[s]) : from[s];
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
