// SPDX-License-Identifier: Apache-2.0
// Vectors that windows are folded in: of windows side by side or, where channels lie side by side,
// of channels.
#pragma once

#include "simd/isa.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
inline constexpr bool kHasWindowVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// The larger of each two, or the first NaN.
template <class Values>
[[gnu::always_inline]] inline Values larger(Values best, Values value) {
  return (~(value <= best) & (best == best)) ? value : best;
}

template <class T, int Lanes>
struct WindowVectors {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Values __attribute__((vector_size(sizeof(T) * Lanes)));
  typedef T Unaligned
      __attribute__((vector_size(sizeof(T) * Lanes), aligned(alignof(T)), may_alias));
  typedef Place Places __attribute__((vector_size(sizeof(Place) * Lanes)));

  static Values load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Values values) { *reinterpret_cast<Unaligned*>(to) = values; }
  // Elements `Step` apart, 1 or 2; nothing beyond the last of them is read.
  template <int Step>
  static Values load_every(const T* from) {
    if constexpr (Step == 1) return load(from);
    Places even;
    for (int l = 0; l < Lanes; ++l) even[l] = 2 * l < Lanes ? 2 * l : 2 * l + 1;
    return __builtin_shuffle(load(from), load(from + Lanes - 1), even);
  }
  // The elements of two vectors in turns.
  static void store_zipped(T* to, Values even, Values odd) {
    if constexpr (Lanes == 1) {
      to[0] = even[0], to[1] = odd[0];
    } else {
      Places low, high;
      for (int l = 0; l < Lanes; ++l) low[l] = l / 2 + l % 2 * Lanes, high[l] = low[l] + Lanes / 2;
      store(to, __builtin_shuffle(even, odd, low));
      store(to + Lanes, __builtin_shuffle(even, odd, high));
    }
  }
  static Places counted() {
    Places result;
    for (int l = 0; l < Lanes; ++l) result[l] = static_cast<Place>(l);
    return result;
  }
  static Places load_places(const Place* from) {
    Places result;
    std::memcpy(&result, from, sizeof result);
    return result;
  }

  // The largest so far and where it lies: the first of equal elements wins, and the first NaN over
  // everything.
  struct Largest {
    Values best;
    Places place;
    void see(Values value, Places at) {
      const Places leads = ~(value <= best) & (best == best);
      best = leads ? value : best;
      place = leads ? at : place;
    }
    void store(T* values, int64_t* indices) const {
      WindowVectors::store(values, best);
      for (int l = 0; l < Lanes; ++l) indices[l] = place[l];
    }
  };
};

// f<Lanes>(first) for vectors of the elements [0, n): as wide as fit, the last one overlapping the
// one before.
template <int Lanes, class F>
[[gnu::always_inline]] inline void by_vectors(int64_t n, F&& f) {
  if (n >= Lanes) {
    for (int64_t i = 0; i < n; i += Lanes) f.template operator()<Lanes>(std::min(i, n - Lanes));
  } else if constexpr (Lanes > 1) {
    by_vectors<(Lanes > 4 ? Lanes / 2 : 1)>(n, f);
  }
}

// What a window of nothing but padding has as its largest element.
template <class T>
constexpr T lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <class T>
inline constexpr int kWindowLanes = kVectorBytes / static_cast<int>(sizeof(T));

}  // namespace tenon::cpu::TENON_CPU_ISA
