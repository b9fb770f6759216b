// SPDX-License-Identifier: Apache-2.0
// Blocks in use, by address: open addressing, at most half full, so that giving memory back needs
// only its pointer. Grows by doubling; in steady state nothing is allocated.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernel_core/memory/block.hpp"

namespace tenon::core {

class BlockTable {
 public:
  // Makes room for one more. May throw std::bad_alloc; insert() does not.
  void reserve_one() {
    if ((size_ + 1) * 2 <= slots_.size()) return;
    std::vector<Block*> old(slots_.size() * 2);
    old.swap(slots_);
    size_ = 0;
    for (Block* block : old)
      if (block) insert(block);
  }

  void insert(Block* block) {
    size_t slot = home(block->data);
    while (slots_[slot]) slot = next(slot);
    slots_[slot] = block;
    ++size_;
  }

  Block* find(const void* data) const { return slots_[slot_of(data)]; }

  // Removes and returns the block; NULL: there is none.
  Block* take(const void* data) {
    size_t hole = slot_of(data);
    Block* found = std::exchange(slots_[hole], nullptr);
    if (!found) return nullptr;
    --size_;
    // Move back what the hole would hide: entries whose home does not lie between hole and entry.
    for (size_t slot = next(hole); slots_[slot]; slot = next(slot)) {
      size_t wanted = home(slots_[slot]->data);
      if (((slot - wanted) & mask()) < ((slot - hole) & mask())) continue;
      slots_[hole] = std::exchange(slots_[slot], nullptr);
      hole = slot;
    }
    return found;
  }

  size_t size() const { return size_; }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Block* block : slots_)
      if (block) visit(*block);
  }

 private:
  size_t mask() const { return slots_.size() - 1; }
  size_t next(size_t slot) const { return (slot + 1) & mask(); }
  // Neighbours in memory come and go one after the other, so they share a line of eight slots.
  size_t home(const void* data) const {
    auto address = reinterpret_cast<uintptr_t>(data);
    return ((address >> 9) * 0x9e3779b97f4a7c15u >> 24 << 3 | (address >> 6 & 7)) & mask();
  }

  // Where its block is, or would be.
  size_t slot_of(const void* data) const {
    size_t slot = home(data);
    while (slots_[slot] && slots_[slot]->data != data) slot = next(slot);
    return slot;
  }

  std::vector<Block*> slots_ = std::vector<Block*>(1024);
  size_t size_ = 0;
};

}  // namespace tenon::core
