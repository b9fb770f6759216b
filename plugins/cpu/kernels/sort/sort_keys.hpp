// SPDX-License-Identifier: Apache-2.0
// Maps elements to signed integers with the same order, and packs them with the indices of the
// elements.
#pragma once

#include "simd/isa.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon::cpu::TENON_CPU_ISA {

// Maps the bits of a float to an integer with the same order, and back: the magnitude bits of
// negative numbers are inverted.
template <class Bits>
inline Bits to_ordered(Bits bits) {
  return bits ^ ((bits >> (sizeof(Bits) * 8 - 1)) & std::numeric_limits<Bits>::max());
}

// The keys of one row.
template <class T>
struct SortKeys {
  using Key = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  const T* x;
  int64_t count;
  bool descending;

  // Equal elements have one key, and so have all NaN.
  Key key(int64_t i, Key flip) const {
    if constexpr (std::is_floating_point_v<T>) {
      const Key bits = to_ordered(std::bit_cast<Key>(x[i] + T(0)));  // -0.0 + 0.0 is 0.0
      return (x[i] != x[i] ? std::numeric_limits<Key>::max() : bits) ^ flip;
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(Key)) {
      return static_cast<Key>(x[i]) ^ std::numeric_limits<Key>::min() ^ flip;
    } else {
      return static_cast<Key>(x[i]) ^ flip;
    }
  }
  Key flip() const { return descending ? Key{-1} : Key{0}; }

  // Writes keys that can be mapped back to elements. Returns false if some cannot: NaN and -0.0.
  bool write(Key* keys) const {
    const Key turn = flip();
    if constexpr (std::is_floating_point_v<T>) {
      Key lost = 0;
      for (int64_t i = 0; i < count; ++i) {
        const Key bits = std::bit_cast<Key>(x[i]);
        lost |= (x[i] != x[i] ? 1 : 0) | (bits == std::numeric_limits<Key>::min() ? 1 : 0);
        keys[i] = to_ordered(bits) ^ turn;
      }
      return lost == 0;
    }
    for (int64_t i = 0; i < count; ++i) keys[i] = key(i, turn);
    return true;
  }
  void read(const Key* keys, T* values) const {
    const Key turn = flip();
    for (int64_t i = 0; i < count; ++i) {
      const Key bits = keys[i] ^ turn;
      if constexpr (std::is_floating_point_v<T>) {
        values[i] = std::bit_cast<T>(to_ordered(bits));
      } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(Key)) {
        values[i] = static_cast<T>(bits ^ std::numeric_limits<Key>::min());
      } else {
        values[i] = static_cast<T>(bits);
      }
    }
  }
};

// Words with the key in the upper bits and the index in the lower bits. No two are equal, and equal
// keys are ordered by index. Keys of 8 bytes whose range leaves too few bits for the index lose
// their lowest bits; words whose keys then coincide are ordered afterwards.
template <class T>
class IndexedKeys {
 public:
  using Key = typename SortKeys<T>::Key;

  IndexedKeys(const SortKeys<T>& keys, int64_t* words) : keys_(keys) {
    const int64_t n = keys.count;
    const Key flip = keys.flip();
    if constexpr (sizeof(Key) == 4) {
      index_bits_ = 32;
      for (int64_t i = 0; i < n; ++i) words[i] = int64_t{keys.key(i, flip)} << 32 | i;
    } else {
      index_bits_ = static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1)));
      Key min_key = std::numeric_limits<Key>::max(), max_key = std::numeric_limits<Key>::min();
      for (int64_t i = 0; i < n; ++i) {
        words[i] = keys.key(i, flip);
        min_key = std::min(min_key, words[i]);
        max_key = std::max(max_key, words[i]);
      }
      const auto range = static_cast<uint64_t>(max_key) - static_cast<uint64_t>(min_key);
      lost_bits_ = std::max(0, static_cast<int>(std::bit_width(range)) + index_bits_ - 63);
      for (int64_t i = 0; i < n; ++i) {
        const uint64_t above = static_cast<uint64_t>(words[i]) - static_cast<uint64_t>(min_key);
        words[i] = static_cast<int64_t>(above >> lost_bits_ << index_bits_) | i;
      }
    }
  }
  int index_bits() const { return index_bits_; }
  bool is_exact() const { return lost_bits_ == 0; }

  // Orders runs of sorted words with equal truncated keys by their full keys.
  void order_by_lost_bits(int64_t* words) const {
    if (is_exact()) return;
    const Key flip = keys_.flip();
    const int64_t mask = (int64_t{1} << index_bits_) - 1;
    const auto precedes = [&](int64_t a, int64_t b) {
      const Key first = keys_.key(a & mask, flip), second = keys_.key(b & mask, flip);
      return first != second ? first < second : a < b;
    };
    for (int64_t i = 0; i < keys_.count;) {
      int64_t end = i + 1;
      while (end < keys_.count && words[end] >> index_bits_ == words[i] >> index_bits_) ++end;
      if (end - i > 1) std::sort(words + i, words + end, precedes);
      i = end;
    }
  }

 private:
  const SortKeys<T>& keys_;
  int index_bits_ = 0, lost_bits_ = 0;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
