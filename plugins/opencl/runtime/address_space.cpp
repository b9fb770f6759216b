// SPDX-License-Identifier: Apache-2.0
#include "address_space.hpp"

#include <sys/mman.h>

#include <new>

namespace opencl {

AddressSpace::~AddressSpace() {
  if (range_) munmap(range_, range_bytes_);
}

bool AddressSpace::reserve(uint64_t bytes) {
  uint64_t slots = (bytes + kSlotBytes - 1) / kSlotBytes;
  table_ = std::make_unique<std::atomic<Buffer*>[]>(slots);
  range_bytes_ = (slots + 1) * kSlotBytes;  // one more: mmap aligns to pages only
  void* range =
      mmap(nullptr, range_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  range_ = range;
  base_ = (reinterpret_cast<uintptr_t>(range) + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  slots_ = slots;
  return true;
}

Buffer* AddressSpace::place(cl_mem memory, uint64_t bytes, uint64_t align) {
  uint64_t needed = (bytes + kSlotBytes - 1) / kSlotBytes;
  std::lock_guard lock(mutex_);
  // First fit. The table is short, and the host allocates seldom.
  for (uint64_t first = 0, free = 0, slot = 0; slot < slots_; ++slot) {
    bool starts = free > 0 || (base_ + slot * kSlotBytes) % align == 0;
    if (!starts || table_[slot].load(std::memory_order_relaxed)) {
      free = 0;
      continue;
    }
    if (free == 0) first = slot;
    if (++free < needed) continue;
    auto* buffer = new (std::nothrow) Buffer{memory, base_ + first * kSlotBytes, bytes};
    if (!buffer) return nullptr;
    for (uint64_t i = first; i <= slot; ++i) table_[i].store(buffer, std::memory_order_release);
    return buffer;
  }
  return nullptr;
}

void AddressSpace::remove(Buffer* buffer) {
  uint64_t first = (buffer->address - base_) / kSlotBytes;
  uint64_t count = (buffer->bytes + kSlotBytes - 1) / kSlotBytes;
  std::lock_guard lock(mutex_);
  for (uint64_t slot = first; slot < first + count; ++slot)
    table_[slot].store(nullptr, std::memory_order_release);
  delete buffer;
}

}  // namespace opencl
