// SPDX-License-Identifier: Apache-2.0
// Sorts a block of keys in registers, without a branch. The registers are the rows of a matrix:
// Batcher's odd-even merge sort (Knuth, The Art of Computer Programming 3, 5.2.2 M) sorts its
// columns without shuffles, and bitonic merges then merge two, four, ... columns (Blacher, Giesen
// and Kuehne, "Fast and Robust Vectorized In-Place Sorting of Primitive Types", 2021).
#pragma once

#include "simd/shuffle.hpp"
#include "simd/vec.hpp"

#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// f(0), ..., f(kCount - 1), unrolled: each argument is a constant.
template <int kCount, class F>
[[gnu::always_inline]] inline void unrolled(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

// The compare-exchange pairs of Batcher's network for `kRows`, a power of two.
template <int kRows>
struct BatcherNetwork {
  int count = 0;
  std::array<std::pair<int, int>, kRows * 8> pairs{};
  constexpr BatcherNetwork() {
    for (int p = 1; p < kRows; p *= 2) {
      for (int k = p; k >= 1; k /= 2) {
        for (int j = k % p; j + k < kRows; j += 2 * k) {
          for (int i = j; i < j + k && i + k < kRows; ++i) {
            if (i / (2 * p) == (i + k) / (2 * p)) pairs[static_cast<size_t>(count++)] = {i, i + k};
          }
        }
      }
    }
  }
};

template <int kOf>
inline constexpr int kLog = std::bit_width(static_cast<unsigned>(kOf)) - 1;

// kRows registers; the sorted sequence goes down the columns, the first column first.
template <class K, int kRows>
class SortBlock {
 public:
  static constexpr int kCapacity = kRows * Vec<K>::count;

  // n <= kCapacity keys.
  static void sort(K* keys, int64_t n) {
    SortBlock block;
    block.load(keys, n);
    block.sort_columns();
    unrolled<kLog<kLanes>>([&](auto level) __attribute__((always_inline)) {
      block.template merge_columns<(1 << level)>();
    });
    block.store(keys, n);
  }

 private:
  using L = Vec<K>;
  using Vector = typename L::Vector;
  using Indices = typename L::Indices;
  static constexpr int kLanes = L::count;

  static Vector lesser(Vector a, Vector b) { return a < b ? a : b; }
  static Vector greater(Vector a, Vector b) { return a < b ? b : a; }
  [[gnu::always_inline]] void exchange(int low, int high) {
    const Vector a = rows_[low], b = rows_[high];
    rows_[low] = lesser(a, b);
    rows_[high] = greater(a, b);
  }

  // Element i of the result is element i ^ kDistance.
  template <int kDistance>
  [[gnu::always_inline]] static Vector partners(Vector x) {
    return shuffle(x, [](int i) { return i ^ kDistance; });
  }
  // Takes elements of `a` where bit kBit of the index is 0, of `b` elsewhere.
  template <int kBit>
  [[gnu::always_inline]] static Vector by_bit(Vector a, Vector b) {
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      return Indices{(I & kBit ? 0 : -1)...} ? a : b;
    }
    (std::make_integer_sequence<int, kLanes>{});
  }

  [[gnu::always_inline]] void sort_columns() {
    static constexpr BatcherNetwork<kRows> network;
    unrolled<network.count>([&](auto i) __attribute__((always_inline)) {
      constexpr auto pair = network.pairs[i];
      exchange(pair.first, pair.second);
    });
  }

  // Pairs of sorted groups of kWidth columns into groups of twice as many.
  template <int kWidth>
  [[gnu::always_inline]] void merge_columns() {
    // The second group from its end, beside the first from its start.
    unrolled<kRows / 2>([&](auto row) __attribute__((always_inline)) {
      Vector &top = rows_[row], &bottom = rows_[kRows - 1 - row];
      const Vector reversed = partners<2 * kWidth - 1>(bottom);
      const Vector low = lesser(top, reversed), high = greater(top, reversed);
      top = by_bit<kWidth>(low, high);
      bottom = partners<2 * kWidth - 1>(by_bit<kWidth>(high, low));
    });
    unrolled<kLog<kWidth>>([&](auto step) __attribute__((always_inline)) {
      constexpr int distance = kWidth >> (step + 1);
      unrolled<kRows>([&](auto row) __attribute__((always_inline)) {
        const Vector other = partners<distance>(rows_[row]);
        rows_[row] = by_bit<distance>(lesser(rows_[row], other), greater(rows_[row], other));
      });
    });
    unrolled<kLog<kRows>>([&](auto step) __attribute__((always_inline)) {
      constexpr int distance = kRows >> (step + 1);
      unrolled<kRows>([&](auto row) __attribute__((always_inline)) {
        if constexpr ((row & distance) == 0) exchange(row, row + distance);
      });
    });
  }

  // Columns one after the other as rows: interleaving row i with row i + kRows / 2, log2(kRows)
  // times.
  [[gnu::always_inline]] void columns_to_rows() {
    unrolled<kLog<kRows>>([&](auto) __attribute__((always_inline)) {
      Vector next[kRows];
      unrolled<kRows / 2>([&](auto i) __attribute__((always_inline)) {
        const Vector a = rows_[i], b = rows_[i + kRows / 2];
        next[2 * i] = interleave_low(a, b);
        next[2 * i + 1] = interleave_high(a, b);
      });
      unrolled<kRows>([&](auto i) __attribute__((always_inline)) { rows_[i] = next[i]; });
    });
  }

  // Pads the block with the greatest key.
  [[gnu::always_inline]] void load(const K* keys, int64_t n) {
    const Vector last = std::numeric_limits<K>::max() - Vector{};
    unrolled<kRows>([&](auto row) __attribute__((always_inline)) {
      const int64_t at = row * kLanes;
      if (at + kLanes <= n) {
        rows_[row] = L::load(keys + at);
      } else {
        K part[kLanes];
        L::store(part, last);
        if (at < n) std::memcpy(part, keys + at, static_cast<size_t>(n - at) * sizeof(K));
        rows_[row] = L::load(part);
      }
    });
  }
  [[gnu::always_inline]] void store(K* keys, int64_t n) {
    columns_to_rows();
    unrolled<kRows>([&](auto row) __attribute__((always_inline)) {
      const int64_t at = row * kLanes;
      if (at + kLanes <= n) {
        L::store(keys + at, rows_[row]);
      } else if (at < n) {
        std::memcpy(keys + at, &rows_[row], static_cast<size_t>(n - at) * sizeof(K));
      }
    });
  }

  Vector rows_[kRows];
};

}  // namespace tenon::cpu::TENON_CPU_ISA
