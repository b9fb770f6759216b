// SPDX-License-Identifier: Apache-2.0
// De-interleaves and interleaves elements of two vectors.
#pragma once

#include "gemm/micro_kernel.hpp"

#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

// Of a sequence of two vectors: every other element (even, odd), and the interleaved sequence of
// two such vectors (low, high).
template <class T>
struct Halves {
  using Vector = typename VectorOf<T>::type;
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Bits Index __attribute__((vector_size(kVectorBytes)));
  static constexpr int width = kWidth<T>;

  static Vector even(Vector low, Vector high) { return __builtin_shuffle(low, high, each(0)); }
  static Vector odd(Vector low, Vector high) { return __builtin_shuffle(low, high, each(1)); }
  // Loads from[0], from[2], ...; reads nothing beyond the last of them.
  static Vector every_second(const T* from) {
    using Unaligned = typename VectorOf<T>::unaligned;
    const auto* low = reinterpret_cast<const Unaligned*>(from);
    const auto* high = reinterpret_cast<const Unaligned*>(from + width - 1);
    Index index;
    for (int i = 0; i < width; ++i) index[i] = 2 * i < width ? 2 * i : 2 * i + 1;
    return __builtin_shuffle(Vector(*low), Vector(*high), index);
  }
  static Vector low(Vector a, Vector b) { return __builtin_shuffle(a, b, zipped(0)); }
  static Vector high(Vector a, Vector b) { return __builtin_shuffle(a, b, zipped(width / 2)); }

 private:
  static Index each(int first) {
    Index index;
    for (int i = 0; i < width; ++i) index[i] = first + 2 * i;
    return index;
  }
  static Index zipped(int first) {
    Index index;
    for (int i = 0; i < width; ++i) index[i] = first + i / 2 + i % 2 * width;
    return index;
  }
};

}  // namespace tenon::cpu::TENON_CPU_ISA
