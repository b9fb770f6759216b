// SPDX-License-Identifier: Apache-2.0
// A hash table from addresses to numbers, for what every recorded call looks up. Nothing is removed but by making it anew.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::graph {

class PointerMap {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // kNone: it is not there.
  uint32_t find(const void* key) const {
    if (count_ == 0) return kNone;
    for (size_t i = slot_of(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return slots_[i].value;
      if (!slots_[i].key) return kNone;
    }
  }
  // The number of the address, not NULL; kNone before it is assigned.
  uint32_t& operator[](const void* key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    size_t i = slot_of(key);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    count_ += !slots_[i].key;
    slots_[i].key = key;
    return slots_[i].value;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_)
      if (slot.key) visit(slot.key, slot.value);
  }

 private:
  struct Slot {
    const void* key = nullptr;
    uint32_t value = kNone;
  };

  size_t slot_of(const void* key) const {
    // Addresses are multiples of 16; the upper bits of the product depend on all of theirs.
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u) >> shift_);
  }
  void grow() {
    std::vector<Slot> before(slots_.empty() ? 128 : 2 * slots_.size());
    before.swap(slots_);
    shift_ = 64 - static_cast<unsigned>(__builtin_ctzll(slots_.size()));
    for (const Slot& slot : before) {
      if (!slot.key) continue;
      size_t i = slot_of(slot.key);
      while (slots_[i].key) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two
  size_t count_ = 0;
  unsigned shift_ = 0;
};

}  // namespace tenon::graph
