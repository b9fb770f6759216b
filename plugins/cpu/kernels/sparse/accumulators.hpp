// SPDX-License-Identifier: Apache-2.0
// Sums of the products that meet in one row of a product of two CSR matrices, by column. They leave in the order of the
// columns, and an accumulator is empty again behind every row.
#pragma once

#include "simd/vec.hpp"
#include "sort/vector_sort.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

// Elements behind the end of a row that may be written.
constexpr int64_t kRowMargin = 64;

// One sum for each column. A byte says whether a column has one: a store of a byte waits for no load, as setting a bit
// would, and the bytes of 64 columns become the bits of a word. If `kMarksWords`, another byte says whether any of 64
// columns has one, which is worth its store where many of the words are empty.
template <class T, bool kMarksWords>
class DenseSums {
 public:
  static int64_t bytes(int64_t columns) {
    const int64_t words = (columns + 63) / 64;
    return words * 64 * static_cast<int64_t>(sizeof(T) + 1) + (words + 63) / 64 * 64;
  }
  // Rows of fewer products are not worth to look through the bytes of all columns.
  static bool is_worth(int64_t products, int64_t columns) {
    return products >= columns >> (kMarksWords ? 12 : 4);
  }

  DenseSums(void* memory, int64_t columns)
      : words_((columns + 63) / 64),
        sums_(static_cast<T*>(memory)),
        is_there_(reinterpret_cast<bool*>(sums_ + words_ * 64)),
        has_any_(is_there_ + words_ * 64) {
    std::memset(memory, 0, static_cast<size_t>(bytes(columns)));
  }

  void touch(int64_t column) {
    is_there_[column] = true;
    if constexpr (kMarksWords) has_any_[column >> 6] = true;
  }
  void add(int64_t column, T x, T y) {
    touch(column);
    sums_[column] += x * y;
  }

  // After touch() alone.
  int64_t count() {
    int64_t found = 0;
    for_words([&](int64_t, uint64_t bits) { found += std::popcount(bits); });
    return found;
  }

  template <class I>
  int64_t write(I* columns, T* values) {
    int64_t found = 0;
    for_words([&](int64_t word, uint64_t bits) {
      write_word(bits, static_cast<I>(word * 64), sums_ + word * 64, columns + found,
                 values + found);
      found += std::popcount(bits);
    });
    return found;
  }

 private:
  template <class F>
  void for_words(F&& f) {
    if constexpr (!kMarksWords) {
      for (int64_t word = 0; word < words_; ++word) f(word, take_bits(word));
      return;
    }
    for (int64_t first = 0; first < words_; first += 64) {
      uint64_t any = bits_of(has_any_ + first);
      std::memset(has_any_ + first, 0, 64);
      for (; any != 0; any &= any - 1) {
        const int64_t word = first + std::countr_zero(any);
        f(word, take_bits(word));
      }
    }
  }

  // Which of 64 columns have a sum, and from now on none.
  uint64_t take_bits(int64_t word) {
    const uint64_t bits = bits_of(is_there_ + word * 64);
    std::memset(is_there_ + word * 64, 0, 64);
    return bits;
  }

  static uint64_t bits_of(const bool* bytes) {
    return nonzero_bits(reinterpret_cast<const uint8_t*>(bytes));
  }

  // Up to kRowMargin elements are written, of which only those of bits count. The sums are cleared.
  template <class I>
  static void write_word(uint64_t bits, I first, T* sums, I* columns, T* values) {
    constexpr int kFew = 12;  // of 64: these are faster one by one
    if constexpr (can_compress(sizeof(T)) && can_compress(sizeof(I))) {
      if (std::popcount(bits) >= kFew) {
        write_compressed(bits, values, [sums](int i) { return Vec<T>::load(sums + i); });
        std::memset(sums, 0, 64 * sizeof(T));
        typename Vec<I>::Vector numbers;
        for (int i = 0; i < Vec<I>::count; ++i) numbers[i] = first + static_cast<I>(i);
        return write_compressed(bits, columns, [&](int i) { return numbers + static_cast<I>(i); });
      }
    }
    // Four at a time without asking how many there are: a branch for each would be mispredicted for each word.
    do {
      for (int i = 0; i < 4; ++i) {
        const int at = std::countr_zero(bits | uint64_t{1} << 63);
        *columns++ = first + static_cast<I>(at);
        *values++ = std::exchange(sums[at], T{});
        bits &= bits - 1;
      }
    } while (bits != 0);
  }
  template <class E, class Vectors>
  static void write_compressed(uint64_t bits, E* to, Vectors vectors) {
    constexpr int kWidth = Vec<E>::count;
    for (int i = 0; i < 64; i += kWidth) {
      const auto mask = static_cast<uint32_t>(bits >> i & ((uint64_t{1} << kWidth) - 1));
      Vec<E>::store(to, compressed(vectors(i), mask));
      to += std::popcount(mask);
    }
  }

  int64_t words_;
  T* sums_;
  // No bytes of characters, which a compiler would have to expect anywhere, so that it would read all pointers again.
  bool *is_there_, *has_any_;
};

// Sums in a table of hashed columns, for rows of few products in matrices of many columns.
template <class T>
class HashedSums {
 public:
  // `products` bounds those of a row.
  static int64_t bytes(int64_t products) {
    return slots_of(products) * static_cast<int64_t>(sizeof(int64_t) + sizeof(T)) +
           2 * (products + kSortMargin) * static_cast<int64_t>(sizeof(int64_t));
  }

  HashedSums(void* memory, int64_t products)
      : slots_(slots_of(products)),
        shift_(64 - std::countr_zero(static_cast<uint64_t>(slots_))),
        columns_(static_cast<int64_t*>(memory)),
        found_(columns_ + slots_),
        room_(found_ + products + kSortMargin),
        sums_(reinterpret_cast<T*>(room_ + products + kSortMargin)) {
    std::fill_n(columns_, slots_, kNone);
  }

  void touch(int64_t column) { slot_for(column); }
  void add(int64_t column, T x, T y) { sums_[slot_for(column)] += x * y; }

  int64_t count() {
    for (int64_t i = 0; i < count_; ++i) room_[i] = slot_of(found_[i]);
    return clear();
  }

  template <class I>
  int64_t write(I* columns, T* values) {
    VectorSort<int64_t>::sort(found_, room_, count_);
    for (int64_t i = 0; i < count_; ++i) {
      room_[i] = slot_of(found_[i]);
      columns[i] = static_cast<I>(found_[i]);
      values[i] = sums_[room_[i]];
    }
    return clear();
  }

 private:
  static constexpr int64_t kNone = -1;
  static int64_t slots_of(int64_t products) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * products + 2)));
  }

  int64_t slot_of(int64_t column) const {
    auto slot = static_cast<int64_t>(static_cast<uint64_t>(column) * 0x9e3779b97f4a7c15u >> shift_);
    while (columns_[slot] != column && columns_[slot] != kNone) slot = (slot + 1) & (slots_ - 1);
    return slot;
  }
  int64_t slot_for(int64_t column) {
    const int64_t slot = slot_of(column);
    if (columns_[slot] == kNone) {
      columns_[slot] = found_[count_++] = column;
      sums_[slot] = T{};
    }
    return slot;
  }
  // The slots of all columns are in room_: without one of them, others would not be found.
  int64_t clear() {
    for (int64_t i = 0; i < count_; ++i) columns_[room_[i]] = kNone;
    return std::exchange(count_, 0);
  }

  int64_t slots_;
  int shift_;
  int64_t *columns_, *found_, *room_;
  T* sums_;
  int64_t count_ = 0;
};

}  // namespace tenon::cpu::TENON_CPU_ISA
