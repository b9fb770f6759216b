// SPDX-License-Identifier: Apache-2.0
// Sorts signed integers of 4 and 8 bytes, or selects the smallest. With AVX2 and AVX-512: quicksort
// whose partition step compresses registers (Bramas, "A Novel Hybrid Quicksort Algorithm Vectorized
// using AVX-512 on Intel Skylake", 2017, arXiv:1704.08579), down to blocks that sorting networks
// order in registers (sort_block.hpp). Otherwise: least significant digit radix sort (Knuth, The
// Art of Computer Programming 3, 5.2.5). The sort is not stable, which is no loss, since equal keys
// are indistinguishable.
#pragma once

#include "sort/sort_block.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// The number of keys by which a buffer has to exceed n.
inline constexpr int64_t kSortMargin = 64;

#if defined(__AVX2__)

template <class K>
class VectorSort {
 public:
  // `room` holds n + kSortMargin keys. As far as their last `sorted_bits` go, keys are in order
  // already; that helps where sorting is by digits.
  static void sort(K* keys, K* buffer, int64_t n, [[maybe_unused]] int sorted_bits = 0) {
    sort_part(keys, buffer, n, 2 * std::bit_width(static_cast<uint64_t>(n)));
  }

  // Moves the `keep` smallest keys to the front and sorts them (quickselect).
  static void select(K* keys, K* buffer, int64_t n, int64_t keep) {
    // Keys before `begin` are in front, those from `end` on are not.
    int64_t begin = 0, end = n;
    for (int rounds = 2 * std::bit_width(static_cast<uint64_t>(n)); end - begin > kBlock;
         --rounds) {
      if (rounds == 0) {
        std::nth_element(keys + begin, keys + keep - 1, keys + end);
        break;
      }
      const int64_t rank = (keep - begin) * kSample / (end - begin);
      const K pivot = quantile(keys + begin, end - begin, rank);
      const auto [split, done] = partition(keys + begin, buffer, end - begin, pivot);
      if (begin + split >= keep) {
        end = begin + split;
        if (begin + done < keep) break;  // what is left to choose from is equal
      } else {
        begin += split;
      }
    }
    if (end - begin <= kBlock) sort_block(keys + begin, end - begin);
    sort(keys, buffer, std::min(keep, end));
  }

 private:
  using L = Vec<K>;
  static constexpr int kLanes = L::count;
  static constexpr int64_t kBlock = SortBlock<K, 16>::kCapacity;
  static constexpr int kSample = 32;
  static constexpr int64_t kLong = 4096;

  static void sort_block(K* keys, int64_t n) {
    if (n <= SortBlock<K, 2>::kCapacity) return SortBlock<K, 2>::sort(keys, n);
    if (n <= SortBlock<K, 4>::kCapacity) return SortBlock<K, 4>::sort(keys, n);
    if (n <= SortBlock<K, 8>::kCapacity) return SortBlock<K, 8>::sort(keys, n);
    SortBlock<K, 16>::sort(keys, n);
  }

  static void sort_part(K* keys, K* buffer, int64_t n, int depth) {
    while (n > kBlock) {
      if (depth-- == 0) return std::sort(keys, keys + n);  // pivots were bad too often
      const auto [split, done] = partition(keys, buffer, n, middle(keys, n));
      sort_part(keys + split, buffer, n - split, depth);
      n = done;
    }
    if (n > 1) sort_block(keys, n);
  }

  // The key of that rank in a sample of kSample.
  static K quantile(const K* keys, int64_t n, int64_t rank) {
    K sample[kSample];
    for (int i = 0; i < kSample; ++i)
      sample[i] = keys[n / kSample * i + (n % kSample) * i / kSample];
    sort_block(sample, kSample);
    return sample[std::min<int64_t>(rank, kSample - 1)];
  }

  // Chooses a pivot near the median: in a long row the median of a sample; in a short row, where a
  // sample would take longer than it saves, the median of medians of three in vectors (Tukey's
  // ninther).
  static K middle(const K* keys, int64_t n) {
    if (n >= kLong) return quantile(keys, n, kSample / 2);
    const auto three = [](auto a, auto b, auto c) {
      const auto low = a < b ? a : b, high = a < b ? b : a, rest = high < c ? high : c;
      return low < rest ? rest : low;
    };
    const int64_t step = (n - kLanes) / 8;
    const auto row = [&](int64_t i) {
      const auto at = [&](int64_t k) { return L::load(keys + (i + k) * step); };
      return three(at(0), at(3), at(6));
    };
    const typename L::Vector middles = three(row(0), row(1), row(2));
    return three(middles[0], middles[kLanes / 3], middles[kLanes - 1]);
  }

  struct Split {
    int64_t split;  // keys before it are at most the pivot, those from it on greater
    int64_t done;   // from here to `split` all are the pivot
  };
  static Split partition(K* keys, K* buffer, int64_t n, K pivot) {
    const int64_t split = move_greater<false>(keys, buffer, n, pivot);
    if (split < n) return {split, split};
    // The pivot is the greatest key: it may be most of them.
    return {n, move_greater<true>(keys, buffer, n, pivot)};
  }

  // Moves the keys greater than the pivot (kOrEqual: or equal) to the end, and returns the number
  // of the others.
  template <bool kOrEqual>
  static int64_t move_greater(K* keys, K* buffer, int64_t n, K pivot) {
    const typename L::Vector pivots = pivot - typename L::Vector{};
    constexpr uint32_t all = (uint64_t{1} << kLanes) - 1;
    K *front = keys, *back = buffer;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const typename L::Vector x = L::load(keys + i);
      const uint32_t behind = mask_bits(kOrEqual ? x >= pivots : x > pivots);
      L::store(front, compressed(x, ~behind & all));
      L::store(back, compressed(x, behind));
      const int count = std::popcount(behind);
      front += kLanes - count;
      back += count;
    }
    for (; i < n; ++i) {
      const K key = keys[i];
      const bool behind = kOrEqual ? key >= pivot : key > pivot;
      *front = key;
      *back = key;
      front += !behind;
      back += behind;
    }
    std::copy(buffer, back, front);
    return front - keys;
  }
};

#else

template <class K>
class VectorSort {
 public:
  static void sort(K* keys, K* buffer, int64_t n, int sorted_bits = 0) {
    if (n < kRadixLength) return std::sort(keys, keys + n);
    constexpr int digits = sizeof(K);
    int64_t counts[digits][256] = {};
    for (int64_t i = 0; i < n; ++i) {
      for (int d = 0; d < digits; ++d) ++counts[d][digit(keys[i], d)];
    }
    K *from = keys, *to = buffer;
    for (int d = sorted_bits / 8; d < digits; ++d) {
      int64_t* const start = counts[d];
      if (start[digit(from[0], d)] == n) continue;  // all have it
      for (int64_t value = 0, at = 0; value < 256; ++value) at += std::exchange(start[value], at);
      for (int64_t i = 0; i < n; ++i) to[start[digit(from[i], d)]++] = from[i];
      std::swap(from, to);
    }
    if (from != keys) std::copy_n(from, n, keys);
  }
  static void select(K* keys, K*, int64_t n, int64_t keep) {
    std::partial_sort(keys, keys + keep, keys + n);
  }

 private:
  // Below, sorting by comparison takes less than counting digits.
  static constexpr int64_t kRadixLength = 256;

  static uint8_t digit(K key, int d) {
    using Bits = std::make_unsigned_t<K>;
    constexpr Bits sign = Bits{1} << (sizeof(K) * 8 - 1);
    return static_cast<uint8_t>((static_cast<Bits>(key) ^ sign) >> (8 * d));
  }
};

#endif

}  // namespace tenon::cpu::TENON_CPU_ISA
