// SPDX-License-Identifier: Apache-2.0
// Permutes elements of vectors by indices that the compiler knows.
#pragma once

#include "simd/isa.hpp"

#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// The number of elements of a vector.
template <class Vector>
inline constexpr int kElements = sizeof(Vector) / sizeof(std::declval<Vector&>()[0]);

// Element i of the result is element index(i) of `a` followed by `b`. `index` is a lambda without
// captures. GCC and clang both have this builtin; GCC's other one, __builtin_shuffle, clang lacks.
template <class Vector, class Index>
[[gnu::always_inline]] inline Vector shuffle(Vector a, Vector b, Index) {
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, Index{}(I)...);
  }
  (std::make_integer_sequence<int, kElements<Vector>>{});
}
template <class Vector, class Index>
[[gnu::always_inline]] inline Vector shuffle(Vector a, Index index) {
  return shuffle(a, a, index);
}

// Every other element of `a` followed by `b`, from the first or from the second on.
template <class Vector>
[[gnu::always_inline]] inline Vector even_elements(Vector a, Vector b) {
  return shuffle(a, b, [](int i) { return 2 * i; });
}
template <class Vector>
[[gnu::always_inline]] inline Vector odd_elements(Vector a, Vector b) {
  return shuffle(a, b, [](int i) { return 2 * i + 1; });
}
// a[0], b[0], a[1], b[1], ...: the first half of this sequence, and the second.
template <class Vector>
[[gnu::always_inline]] inline Vector interleave_low(Vector a, Vector b) {
  return shuffle(a, b, [](int i) { return i / 2 + i % 2 * kElements<Vector>; });
}
template <class Vector>
[[gnu::always_inline]] inline Vector interleave_high(Vector a, Vector b) {
  constexpr int n = kElements<Vector>;
  return shuffle(a, b, [](int i) { return (n + i) / 2 + i % 2 * n; });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
