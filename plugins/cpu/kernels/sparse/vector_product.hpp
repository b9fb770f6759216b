// SPDX-License-Identifier: Apache-2.0
// Rows of a CSR matrix times a vector, which lies in caches more often than not. Sums are in an order that depends on the
// sizes of the matrix and of the row alone.
#pragma once

#include "simd/vec.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// A load by itself. Of loads from columns beside each other compilers make an instruction that gathers, with which rows of
// 16 and more elements took 1.4 to 2.6 times as long on a Sapphire Rapids, and 2.3 to 3.4 times on a Zen 3.
template <class T>
T load_alone(const T* from) {
  T x = *from;
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
  return x;
}

// One element of a row: four sums side by side, because each would wait for the one before it. place(k) is where the
// element of y for values[k] is.
template <class T, class Place>
T add_products(const T* values, int64_t begin, int64_t end, Place place) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  Four sums = {};
  int64_t k = begin;
  for (; k + 4 <= end; k += 4) {
    Four scale;
    std::memcpy(&scale, values + k, sizeof scale);
    const Four terms = {load_alone(place(k)), load_alone(place(k + 1)), load_alone(place(k + 2)),
                        load_alone(place(k + 3))};
    sums += terms * scale;
  }
  T first = sums[0];
  for (; k < end; ++k) first += load_alone(place(k)) * values[k];
  return (first + sums[1]) + (sums[2] + sums[3]);
}

template <class T, class I>
void multiply_rows(const T* values, const I* columns, const T* y, const int64_t* offsets,
                   int64_t first, int64_t last, T* out) {
  const auto place = [=](int64_t k) { return y + columns[k]; };
  for (int64_t row = first; row < last; ++row)
    out[row] = add_products(values, offsets[row], offsets[row + 1], place);
}

// The sum of the lanes of x: of its halves until two are left.
template <class T, class Vector, int... I>
T sum_of_halves(const Vector& x, std::integer_sequence<int, I...>) {
  constexpr int kHalf = sizeof...(I);
  if constexpr (kHalf == 1) {
    return x[0] + x[1];
  } else {
    return sum_of_halves<T>(
        __builtin_shufflevector(x, x, I...) + __builtin_shufflevector(x, x, (I + kHalf)...),
        std::make_integer_sequence<int, kHalf / 2>());
  }
}

// Elements that are added up without a branch for their number. Rows with fewer on average are short.
constexpr int64_t kShortRow = 16;

// Rows of few elements whose numbers differ: a loop over each would be left where the processor does not expect it, which
// takes as long as ten elements. So products go to a buffer, row behind row, and of each row kShortRow are added up, of
// which those behind its end are masked.
template <class T, class I>
void multiply_short_rows(const T* values, const I* columns, const T* y, const int64_t* offsets,
                         int64_t first, int64_t last, T* out) {
  using V = Vec<T>;
  using Index = typename V::Index;
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  constexpr int64_t kBuffer = 2048, kMaxRows = 512;  // at a time
  static constexpr auto kMasks = [] {
    std::array<Index, 2 * kShortRow> masks{};
    std::fill_n(masks.begin(), kShortRow, Index{-1});
    return masks;
  }();
  T products[kBuffer + kShortRow] = {};
  const auto sum_of = [&](int64_t begin, int64_t end) {
    typename V::Vector sums = {};
    do {
      const Index* masks = kMasks.data() + kShortRow - std::min(end - begin, kShortRow);
      for (int64_t i = 0; i < kShortRow; i += V::count) {
        const auto mask = Vec<Index>::load(masks + i);
        const auto terms = V::load(products + begin + i);
        sums +=
            reinterpret_cast<typename V::Vector>(reinterpret_cast<decltype(mask)>(terms) & mask);
      }
      begin += kShortRow;
    } while (begin < end);
    return sum_of_halves<T>(sums, std::make_integer_sequence<int, V::count / 2>());
  };
  while (first < last) {
    const int64_t begin = offsets[first];
    const int64_t* limit = offsets + std::min(last, first + kMaxRows) + 1;
    const int64_t next =
        std::upper_bound(offsets + first + 1, limit, begin + kBuffer) - offsets - 1;
    if (next == first) {
      multiply_rows(values, columns, y, offsets, first, first + 1, out);
      ++first;
      continue;
    }
    const int64_t count = offsets[next] - begin;
    const T* scale = values + begin;
    const I* column = columns + begin;
    int64_t k = 0;
    for (; k + 4 <= count; k += 4) {
      Four factors;
      std::memcpy(&factors, scale + k, sizeof factors);
      const Four terms = {load_alone(y + column[k]), load_alone(y + column[k + 1]),
                          load_alone(y + column[k + 2]), load_alone(y + column[k + 3])};
      factors *= terms;
      std::memcpy(products + k, &factors, sizeof factors);
    }
    for (; k < count; ++k) products[k] = load_alone(y + column[k]) * scale[k];
    for (; first < next; ++first)
      out[first] = sum_of(offsets[first] - begin, offsets[first + 1] - begin);
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
