// SPDX-License-Identifier: Apache-2.0
// Vectors of pooling: of adjacent windows (NCHW), or of channels (NHWC).
#pragma once

#include "simd/isa.hpp"
#include "simd/shuffle.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

template <class T>
inline constexpr bool kHasWindowVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;

// Elementwise maximum; the first NaN wins.
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
  // Loads elements `Step` (1 or 2) apart; nothing beyond the last of them is read.
  template <int Step>
  static Values load_every(const T* from) {
    if constexpr (Step == 1) return load(from);
    return shuffle(load(from), load(from + Width - 1),
                   [](int l) { return 2 * l < Width ? 2 * l : 2 * l + 1; });
  }
  // Stores two vectors interleaved.
  static void store_zipped(T* to, Values even, Values odd) {
    if constexpr (Width == 1) {
      to[0] = even[0];
      to[1] = odd[0];
    } else {
      store(to, interleave_low(even, odd));
      store(to + Width, interleave_high(even, odd));
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

  // Running maximum and its index: of equal elements the first wins, and the first NaN wins over
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

// Calls f<Width>(first) for vectors that cover elements [0, n): as wide as possible, the last one
// overlapping the one before.
template <int Width, class F>
[[gnu::always_inline]] inline void by_vectors(int64_t n, F&& f) {
  if (n >= Width) {
    for (int64_t i = 0; i < n; i += Width) f.template operator()<Width>(std::min(i, n - Width));
  } else if constexpr (Width > 1) {
    by_vectors<(Width > 4 ? Width / 2 : 1)>(n, f);
  }
}

// The maximum of a window that lies in the padding entirely.
template <class T>
constexpr T lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <class T>
inline constexpr int kWindowWidth = kVectorBytes / static_cast<int>(sizeof(T));

}  // namespace tenon::cpu::TENON_CPU_ISA
