// SPDX-License-Identifier: Apache-2.0
// The largest element of windows side by side, a vector of windows at a time, and where it lies. The
// first of equal elements wins, and the first NaN over everything.
#pragma once

#include "isa.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// The taps of a window: rows and columns of pixels, with the steps between them in elements.
struct Taps {
  int64_t rows, columns;
  int64_t row_step, column_step;
};

template <class T>
inline constexpr bool kHasWindowVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T, int Lanes>
struct WindowVectors {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Values __attribute__((vector_size(sizeof(T) * Lanes)));
  typedef T Unaligned __attribute__((vector_size(sizeof(T) * Lanes), aligned(alignof(T)), may_alias));
  typedef Place Places __attribute__((vector_size(sizeof(Place) * Lanes)));

  static Values load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }

  // Every second element; nothing beyond the last of them is read.
  template <int... L>
  static Values load_even(const T* from, std::integer_sequence<int, L...>) {
    return __builtin_shuffle(load(from), load(from + Lanes - 1),
                             Places{(2 * L < Lanes ? 2 * L : 2 * L + 1)...});
  }
  template <int... L>
  static Places counted(int step, std::integer_sequence<int, L...>) {
    return Places{static_cast<Place>(L * step)...};
  }

  // Windows whose first taps are x[0], x[Stride], ...; `at` is the first one's place.
  template <int Stride>
  static void largest(const T* x, int64_t at, const Taps& taps, T* values, int64_t* indices) {
    constexpr auto lanes = std::make_integer_sequence<int, Lanes>();
    const auto tap = [&](const T* from) {
      return Stride == 1 ? load(from) : load_even(from, lanes);
    };
    const Places offsets = counted(Stride, lanes);
    Values best = tap(x);
    Places place = offsets + static_cast<Place>(at);
    for (int64_t i = 0; i < taps.rows; ++i) {
      for (int64_t j = 0; j < taps.columns; ++j) {
        const int64_t offset = i * taps.row_step + j * taps.column_step;
        const Values value = tap(x + offset);
        const Places leads = (value > best) | ((value != value) & (best == best));
        best = leads ? value : best;
        place = leads ? offsets + static_cast<Place>(at + offset) : place;
      }
    }
    *reinterpret_cast<Unaligned*>(values) = best;
    for (int l = 0; l < Lanes; ++l) indices[l] = place[l];
  }
};

// `count` windows, by vectors as wide as fit; the last one overlaps the one before. False if there are
// fewer than the least vector has lanes: nothing is done.
template <class T, int Stride, int Lanes = kVectorBytes / sizeof(T)>
inline bool largest_of_windows(int64_t count, const T* x, int64_t at, const Taps& taps, T* values,
                               int64_t* indices) {
  if (count < Lanes) {
    if constexpr (Lanes * sizeof(T) > 16) {
      return largest_of_windows<T, Stride, Lanes / 2>(count, x, at, taps, values, indices);
    }
    return false;
  }
  for (int64_t j = 0; j < count; j += Lanes) {
    const int64_t first = j + Lanes <= count ? j : count - Lanes;
    WindowVectors<T, Lanes>::template largest<Stride>(x + first * Stride, at + first * Stride, taps,
                                                      values + first, indices + first);
  }
  return true;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
