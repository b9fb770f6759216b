// SPDX-License-Identifier: Apache-2.0
// Reductions of one dense row in independent accumulators. Loop order: the row is read in steps as
// wide as all accumulators; at the end these are combined pairwise. Independent accumulators
// vectorise, hide the latency of an addition, and round better than one running sum.
#pragma once

#include "math/arithmetic.hpp"
#include "simd/isa.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {

// The number of accumulators of a long row: enough to hide the latency of an addition.
template <class T>
inline constexpr int kRowAccumulators = sizeof(T) <= 8 ? 256 / sizeof(T) : 8;

// Adds the last elements, fewer than 2 * kWidth, to the first accumulators, in steps whose length
// the compiler knows.
template <int kWidth, class T, class Value, class Combine>
inline void reduce_tail(T* acc, int64_t i, int64_t n, Value value, Combine combine) {
  if (n - i >= kWidth) {
    for (int l = 0; l < kWidth; ++l) acc[l] = combine(acc[l], value(i + l));
    i += kWidth;
  }
  if constexpr (kWidth > 1) reduce_tail<kWidth / 2>(acc, i, n, value, combine);
}

// Combines the accumulators pairwise.
template <int kWidth, class T, class Combine>
inline T reduce_pairwise(T* acc, Combine combine) {
  if constexpr (kWidth == 1) {
    return acc[0];
  } else {
    for (int l = 0; l < kWidth / 2; ++l) acc[l] = combine(acc[l], acc[l + kWidth / 2]);
    return reduce_pairwise<kWidth / 2>(acc, combine);
  }
}

// Prefetches the first line of each page that is read next: hardware prefetchers stop at page
// boundaries and start again at the first access to a page.
inline void prefetch_pages(const char* from, int64_t bytes) {
  constexpr uintptr_t page = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(from), end = begin + static_cast<uintptr_t>(bytes);
  for (uintptr_t at = (begin + page - 1) & -page; at < end; at += page) {
    __builtin_prefetch(reinterpret_cast<const void*>(at));
  }
}

// Prefetches the row that is read next, up to the number of requests that processors keep in
// flight, while another row is processed in cache. The function is inlined, because compilers
// otherwise remove it as a function without effect.
template <class T>
[[gnu::always_inline]] inline void prefetch_row(const T* x, int64_t n) {
  const char* const from = reinterpret_cast<const char*>(x);
  const int64_t bytes = std::min<int64_t>(n * static_cast<int64_t>(sizeof(T)), 4096);
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at);
}

// Calls step(i) for i = begin, begin + width, ... as long as whole steps are left, and returns
// where they end. Long rows are read as two streams, the first and the second half, alternately:
// where the hardware prefetcher stops at a page of one stream, it goes on with the other.
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

// Whether the accumulators fill enough registers to hide the latency of their operation.
template <int kAccumulators, class T>
inline constexpr bool kLongRow = kAccumulators * sizeof(T) >= 256;

template <int kAccumulators, class T, class Value, class Combine>
inline T reduce_vectorized(int64_t n, Value value, Combine combine) {
  T acc[kAccumulators];
  for (int l = 0; l < kAccumulators; ++l) acc[l] = value(l);
  const int64_t end =
      run_two_streams<kAccumulators, kLongRow<kAccumulators, T>>(kAccumulators, n, [&](int64_t i) {
        for (int l = 0; l < kAccumulators; ++l) acc[l] = combine(acc[l], value(i + l));
      });
  reduce_tail<kAccumulators / 2>(acc, end, n, value, combine);
  return reduce_pairwise<kAccumulators>(acc, combine);
}

// The same for idempotent operations (max, min, or), which may combine an element twice: the last
// step overlaps the one before. `unroll 1` keeps the loops, because compilers vectorise selections
// in no other form.
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
  if (run_two_streams<kAccumulators, kLongRow<kAccumulators, T>>(kAccumulators, n, step) < n)
    step(n - kAccumulators);
  return select_pairwise<kAccumulators>(acc, combine);
}

// Combines value(0), ..., value(n - 1), n >= 1, in an order that depends on n alone. Short rows use
// fewer accumulators, since combining many of these takes as long as some of the elements.
template <class T, class Value, class Combine>
inline T reduce_row(int64_t n, Value value, Combine combine) {
  constexpr int width = kRowAccumulators<T>, narrow = std::max(width / 4, 4);
  const bool selects = combine(T(2), T(2)) == T(2);  // folded at compile time
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

// out[i] = f(x[i]), for functions that are expensive element by element: the last elements of a row
// are computed as a whole vector, which overlaps the one before. `out` may be x.
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

// Counts for how many of n numbers `holds` is true, in counters as wide as the numbers, so that
// vectors need no narrowing or widening.
template <class Count, class Holds>
inline int64_t count_row(int64_t n, Holds holds) {
  constexpr int width = kRowAccumulators<Count>;
  constexpr int64_t max_run =
      std::min<uint64_t>(std::numeric_limits<Count>::max(), 1 << 15) * width;
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

// The maximum of a row, ignoring NaN unless all elements are NaN.
template <class T>
inline T max_row(const T* x, int64_t n) {
  return reduce_row<T>(
      n, [x](int64_t i) { return x[i]; }, [](T a, T b) { return a > b ? a : b; });
}

// sum[j] = the sum of term(i, j) over n rows. Blocks of about sqrt(n) rows have accumulators of their
// own: the rounding error of one chain of additions grows with its length.
template <int64_t MaxColumns, class T, class F>
void sum_columns(int64_t n, int64_t columns, T* sum, F&& term) {
  T block[MaxColumns];
  int64_t rows = 32;
  while (rows * rows < n) rows *= 2;
  std::fill_n(sum, columns, T(0));
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t end = std::min(first + rows, n);
    std::fill_n(block, columns, T(0));
    for (int64_t i = first; i < end; ++i) {
      for (int64_t j = 0; j < columns; ++j) block[j] += term(i, j);
    }
    for (int64_t j = 0; j < columns; ++j) sum[j] += block[j];
  }
}

}  // namespace tenon::cpu::TENON_CPU_ISA
