// SPDX-License-Identifier: Apache-2.0
// Sums and extremes of dense rows, in independent lanes, so that they vectorise and round well.
#pragma once

#include "simd/isa.hpp"
#include "math/arithmetic.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

// Independent lanes of a long row: enough to hide the latency of an addition.
template <class T>
inline constexpr int kRowAccumulators = sizeof(T) <= 8 ? 256 / sizeof(T) : 8;

// The last elements, fewer than 2 * kWidth, into the first lanes: in steps whose length the compiler knows.
template <int kWidth, class T, class Value, class Combine>
inline void reduce_tail(T* acc, int64_t i, int64_t n, Value value, Combine combine) {
  if (n - i >= kWidth) {
    for (int l = 0; l < kWidth; ++l) acc[l] = combine(acc[l], value(i + l));
    i += kWidth;
  }
  if constexpr (kWidth > 1) reduce_tail<kWidth / 2>(acc, i, n, value, combine);
}

// Vec into the first one, pairwise.
template <int kWidth, class T, class Combine>
inline T reduce_pairwise(T* acc, Combine combine) {
  if constexpr (kWidth == 1) {
    return acc[0];
  } else {
    for (int l = 0; l < kWidth / 2; ++l) acc[l] = combine(acc[l], acc[l + kWidth / 2]);
    return reduce_pairwise<kWidth / 2>(acc, combine);
  }
}

// Asks for the first line of each page of what is read next: processors fetch ahead within pages only, and do so
// from the first line on that they see asked for.
inline void prefetch_pages(const char* from, int64_t bytes) {
  constexpr uintptr_t page = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(from), end = begin + static_cast<uintptr_t>(bytes);
  for (uintptr_t at = (begin + page - 1) & -page; at < end; at += page) {
    __builtin_prefetch(reinterpret_cast<const void*>(at));
  }
}

// Asks for the row that is read next, or as much of it as processors have requests for, while another one that
// is in cache is computed with. Inlined, or else compilers may see nothing that it does and leave it out.
template <class T>
[[gnu::always_inline]] inline void prefetch_row(const T* x, int64_t n) {
  const char* const from = reinterpret_cast<const char*>(x);
  const int64_t bytes = std::min<int64_t>(n * static_cast<int64_t>(sizeof(T)), 4096);
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at);
}

// step(i) for the steps of a row of n elements, `width` at a time from `begin` on, as long as whole ones are left.
// Returns where they end. Long rows are read in two halves side by side, a step of each in turns: processors fetch
// ahead of each, and where their guesses for one stop at a page those for the other go on.
template <int64_t width, bool kLong, class Step>
[[gnu::always_inline]] inline int64_t run_two_streams(int64_t begin, int64_t n, Step step) {
  int64_t i = begin;
  if constexpr (kLong) {
    const int64_t half = (n - begin) / (2 * width) * width;
    for (; i < begin + half; i += width) {
      step(i);
      step(half + i);
    }
    i += half;
  }
  for (; i + width <= n; i += width) step(i);
  return i;
}

// Vec that fill as many registers as hide the latency of what they wait for belong to a long row.
template <int kAccumulators, class T>
inline constexpr bool kLongRow = kAccumulators * sizeof(T) >= 256;

template <int kAccumulators, class T, class Value, class Combine>
inline T reduce_vectorized(int64_t n, Value value, Combine combine) {
  T acc[kAccumulators];
  for (int l = 0; l < kAccumulators; ++l) acc[l] = value(l);
  const int64_t end = run_two_streams<kAccumulators, kLongRow<kAccumulators, T>>(kAccumulators, n, [&](int64_t i) {
    for (int l = 0; l < kAccumulators; ++l) acc[l] = combine(acc[l], value(i + l));
  });
  reduce_tail<kAccumulators / 2>(acc, end, n, value, combine);
  return reduce_pairwise<kAccumulators>(acc, combine);
}

// The same for selections (max, min, or), which may meet an element twice: the last lanes overlap those
// before them. Loops are kept as loops, since compilers vectorise selections in no other form.
template <int kWidth, class T, class Combine>
inline T select_pairwise(const T* acc, Combine combine) {
  if constexpr (kWidth == 1) {
    return acc[0];
  } else {
    T half[kWidth / 2];
#pragma GCC unroll 1
    for (int l = 0; l < kWidth / 2; ++l) half[l] = combine(acc[l], acc[l + kWidth / 2]);
    return select_pairwise<kWidth / 2>(half, combine);
  }
}

template <int kAccumulators, class T, class Value, class Combine>
inline T select_vectorized(int64_t n, Value value, Combine combine) {
  T acc[kAccumulators];
  for (int l = 0; l < kAccumulators; ++l) acc[l] = value(l);
  const auto step = [&](int64_t i) {
    if constexpr (kLongRow<kAccumulators, T>) {  // long enough to be kept as a loop
      for (int l = 0; l < kAccumulators; ++l) acc[l] = combine(acc[l], value(i + l));
    } else {
#pragma GCC unroll 1
      for (int l = 0; l < kAccumulators; ++l) acc[l] = combine(acc[l], value(i + l));
    }
  };
  if (run_two_streams<kAccumulators, kLongRow<kAccumulators, T>>(kAccumulators, n, step) < n) step(n - kAccumulators);
  return select_pairwise<kAccumulators>(acc, combine);
}

// combine(...combine(value(0), value(1))..., value(n - 1)), n >= 1, in any order. Short rows have fewer
// lanes, since adding those up takes as long as some of the elements.
template <class T, class Value, class Combine>
inline T reduce_row(int64_t n, Value value, Combine combine) {
  constexpr int width = kRowAccumulators<T>, narrow = std::max(width / 4, 4);
  const bool selects = combine(T(2), T(2)) == T(2);  // compilers know
  if (n >= (sizeof(T) == 1 ? 1 : 12) * width) {
    return selects ? select_vectorized<width, T>(n, value, combine)
                   : reduce_vectorized<width, T>(n, value, combine);
  }
  if (n >= narrow) {
    return selects ? select_vectorized<narrow, T>(n, value, combine)
                   : reduce_vectorized<narrow, T>(n, value, combine);
  }
  T result = value(0);
  for (int64_t i = 1; i < n; ++i) result = combine(result, value(i));
  return result;
}

template <class T, class Value>
inline T sum_row(int64_t n, Value value) {
  return n > 0 ? reduce_row<T>(n, value, [](T a, T b) { return a + b; }) : T(0);
}

// out[i] = f(x[i]), for functions that are dear element by element: the last elements of a row go through
// f as a whole vector, which overlaps those before them. `out` may be x.
template <class T, class F>
inline void map_row(const T* x, T* out, int64_t n, F f) {
  constexpr int width = 64 / sizeof(T);
  if (n < width) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(x[i]);
    return;
  }
  T last[width];
  for (int l = 0; l < width; ++l) last[l] = f(x[n - width + l]);
  const int64_t whole = n / width * width;
  for (int64_t i = 0; i < whole; ++i) out[i] = f(x[i]);
  std::copy_n(last, width, out + n - width);
}

// How many of n numbers `holds` is true of: counted in lanes as wide as they are, so that registers of one
// need not be taken together from several of the other.
template <class Count, class Holds>
inline int64_t count_row(int64_t n, Holds holds) {
  constexpr int width = kRowAccumulators<Count>;
  constexpr int64_t max_run = std::min<uint64_t>(std::numeric_limits<Count>::max(), 1 << 15) * width;
  int64_t total = 0, i = 0;
  while (i + width <= n) {
    Count counts[width] = {};
    i = run_two_streams<width, true>(i, std::min(n, i + max_run), [&](int64_t at) {
      for (int l = 0; l < width; ++l) {
        counts[l] = static_cast<Count>(counts[l] + (holds(at + l) ? 1 : 0));
      }
    });
    for (int l = 0; l < width; ++l) total += static_cast<int64_t>(counts[l]);
  }
  for (; i < n; ++i) total += holds(i) ? 1 : 0;
  return total;
}

// Ignores NaN, unless all are.
template <class T>
inline T max_row(const T* x, int64_t n) {
  return reduce_row<T>(n, [x](int64_t i) { return x[i]; }, [](T a, T b) { return a > b ? a : b; });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
