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
[[gnu::always_inline]] inline Values max_or_nan(Values best, Values value) {
  return (~(value <= best) & (best == best)) ? value : best;
}

template <class T, int Width>
struct WindowVec {
  using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Values __attribute__((vector_size(sizeof(T) * Width)));
  typedef T Unaligned
      __attribute__((vector_size(sizeof(T) * Width), aligned(alignof(T)), may_alias));
  typedef Index Indices __attribute__((vector_size(sizeof(Index) * Width)));

  static Values load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Values values) { *reinterpret_cast<Unaligned*>(to) = values; }
  // Elements `Step` apart, 1 or 2; nothing beyond the last of them is read.
  template <int Step>
  static Values load_every(const T* from) {
    if constexpr (Step == 1) return load(from);
    Indices even;
    for (int l = 0; l < Width; ++l) even[l] = 2 * l < Width ? 2 * l : 2 * l + 1;
    return __builtin_shuffle(load(from), load(from + Width - 1), even);
  }
  // The elements of two vectors in turns.
  static void store_zipped(T* to, Values even, Values odd) {
    if constexpr (Width == 1) {
      to[0] = even[0], to[1] = odd[0];
    } else {
      Indices low, high;
      for (int l = 0; l < Width; ++l) low[l] = l / 2 + l % 2 * Width, high[l] = low[l] + Width / 2;
      store(to, __builtin_shuffle(even, odd, low));
      store(to + Width, __builtin_shuffle(even, odd, high));
    }
  }
  static Indices iota() {
    Indices result;
    for (int l = 0; l < Width; ++l) result[l] = static_cast<Index>(l);
    return result;
  }
  static Indices load_indices(const Index* from) {
    Indices result;
    std::memcpy(&result, from, sizeof result);
    return result;
  }

  // The largest so far and where it lies: the first of equal elements wins, and the first NaN over
  // everything.
  struct ArgmaxVec {
    Values best;
    Indices index;
    void update(Values value, Indices at) {
      const Indices leads = ~(value <= best) & (best == best);
      best = leads ? value : best;
      index = leads ? at : index;
    }
    void store(T* values, int64_t* indices) const {
      WindowVec::store(values, best);
      for (int l = 0; l < Width; ++l) indices[l] = index[l];
    }
  };
};

// f<Width>(first) for vectors of the elements [0, n): as wide as fit, the last one overlapping the
// one before.
template <int Width, class F>
[[gnu::always_inline]] inline void by_vectors(int64_t n, F&& f) {
  if (n >= Width) {
    for (int64_t i = 0; i < n; i += Width) f.template operator()<Width>(std::min(i, n - Width));
  } else if constexpr (Width > 1) {
    by_vectors<(Width > 4 ? Width / 2 : 1)>(n, f);
  }
}

// What a window of nothing but padding has as its largest element.
template <class T>
constexpr T lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <class T>
inline constexpr int kWindowWidth = kVectorBytes / static_cast<int>(sizeof(T));

}  // namespace tenon::cpu::TENON_CPU_ISA
