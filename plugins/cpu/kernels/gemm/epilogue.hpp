// SPDX-License-Identifier: Apache-2.0
// Epilogues: where the accumulators of a GEMM are stored. An epilogue locates a column of C and
// says how many columns from there are adjacent in memory.
#pragma once

#include "gemm/formats.hpp"
#include "gemm/gemm.hpp"

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {

// C is a matrix with dense rows.
template <class Accumulator>
struct MatrixEpilogue {
  Accumulator* c;
  int64_t row;
  Addend<Accumulator> addend = {};  // where a product accumulates
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
      store_accumulators(mask, to + s, mask.load(from + s), accumulate ? to + s : nullptr);
    }
  } else {
    for (int64_t s = 0; s < n; ++s) to[s] = accumulate ? Accumulator(to[s] + from[s]) : from[s];
  }
}

template <class Epilogue>
inline constexpr bool has_addend = requires(const Epilogue& epilogue) {
  epilogue.addend;
};

// What is added to the element of C at (i, j) and those behind it, where a product accumulates.
template <class Epilogue>
auto addend_at(const Epilogue& epilogue, int64_t i, int64_t j) {
  const auto* c = epilogue.at(j) + i * epilogue.row;
  using Found = Addend<std::remove_cvref_t<decltype(*c)>>;
  if constexpr (has_addend<Epilogue>) {
    const auto& addend = epilogue.addend;
    if (addend.data) return Found{addend.data + i * addend.row + j, addend.row};
  }
  return Found{c, epilogue.row};
}

// Writes what is added to `n` elements of C at (i, j) there, unless it is C itself.
template <class Epilogue, class Element>
void begin_run(const Epilogue& epilogue, Element* to, int64_t i, int64_t j, int64_t n) {
  if constexpr (has_addend<Epilogue>) {
    if (epilogue.addend.data) std::copy_n(addend_at(epilogue, i, j).data, n, to);
  }
}

// The epilogue of what is added to the results of a first pass.
template <class Epilogue>
Epilogue after_first_pass(Epilogue epilogue) {
  if constexpr (has_addend<Epilogue>) epilogue.addend = {};
  return epilogue;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
