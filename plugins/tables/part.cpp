// SPDX-License-Identifier: Apache-2.0
#include "part.hpp"

#include <cstddef>

#include "hash.hpp"

namespace tenon::tables {
namespace {

// The low bits of a hash say the part, and are the same for all ids in it.
size_t start_of(uint64_t hash) { return hash >> 6; }

}  // namespace

size_t Part::place(uint64_t id, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = start_of(hash) & mask;
  while (slots_[at] && record(slots_[at])->id != id) at = (at + 1) & mask;
  return at;
}

Record* Part::find(uint64_t id, uint64_t hash) {
  if (slots_.empty()) return nullptr;
  const uint32_t slot = slots_[place(id, hash)];
  return slot ? record(slot) : nullptr;
}

Record* Part::insert(uint64_t id, uint64_t hash) {
  if ((size_ + 1) * 10 > slots_.size() * 7) grow();
  uint32_t slot;
  if (free_.empty()) {
    if (used_ == slabs_.size() * kSlabRecords)
      slabs_.emplace_back(new std::byte[kSlabRecords * record_bytes_]);
    slot = ++used_;
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[place(id, hash)] = slot;
  ++size_;
  Record* made = record(slot);
  made->id = id;
  made->reserved = 0;
  return made;
}

void Part::erase(uint64_t id, uint64_t hash) {
  if (slots_.empty()) return;
  const size_t mask = slots_.size() - 1;
  size_t hole = place(id, hash);
  if (!slots_[hole]) return;
  free_.push_back(slots_[hole]);
  --size_;
  // What follows without a gap moves up if the hole lies between where it began to look and where it is.
  for (size_t at = (hole + 1) & mask; slots_[at]; at = (at + 1) & mask) {
    const size_t start = start_of(mix(record(slots_[at])->id)) & mask;
    if (((at - start) & mask) >= ((at - hole) & mask)) {
      slots_[hole] = slots_[at];
      hole = at;
    }
  }
  slots_[hole] = 0;
}

void Part::grow() {
  std::vector<uint32_t> before(slots_.empty() ? 64 : slots_.size() * 2);
  before.swap(slots_);
  for (uint32_t slot : before) {
    if (!slot) continue;
    const uint64_t id = record(slot)->id;
    slots_[place(id, mix(id))] = slot;
  }
}

uint64_t Part::bytes() const {
  return slabs_.size() * kSlabRecords * record_bytes_ + slots_.capacity() * sizeof(uint32_t) +
         free_.capacity() * sizeof(uint32_t);
}

}  // namespace tenon::tables
