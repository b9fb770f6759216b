// SPDX-License-Identifier: Apache-2.0
// Allocations of a vendor's runtime that aligns to less than a request wants, or that is told of pinned memory apart.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace tenon {

// Remembers, for the addresses that a plugin hands out, what the vendor's runtime returned for them. Threads may share it.
class AlignedMemory {
 public:
  struct Origin {
    void* memory;  // what the runtime returned
    bool is_pinned;
  };

  // The first multiple of `align`, a power of two, from `memory` on: the allocation holds as many bytes more than the
  // request, which is of `bytes`. Throws std::bad_alloc, and then nothing is remembered.
  void* align(void* memory, uint64_t align, bool is_pinned, uint64_t bytes = 0) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    char* const aligned =
        static_cast<char*>(memory) + ((address + align - 1) & ~(align - 1)) - address;
    if (!is_pinned && aligned == memory) return memory;  // as take() assumes of others
    const std::lock_guard lock(mutex_);
    allocations_[aligned] = {{memory, is_pinned}, bytes};
    return aligned;
  }

  // Whether [address, address + bytes) lies in one pinned allocation.
  bool is_pinned(const void* address, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto* const begin = static_cast<const char*>(address);
    auto after = allocations_.upper_bound(begin);
    if (after == allocations_.begin()) return false;
    const auto& [first, allocation] = *--after;
    return allocation.origin.is_pinned &&
           static_cast<uint64_t>(begin - first) + bytes <= allocation.bytes;
  }

  // What align() returned `address` for; it is forgotten.
  Origin take(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(static_cast<const char*>(address));
    if (found == allocations_.end()) return {address, false};
    const Origin origin = found->second.origin;
    allocations_.erase(found);
    return origin;
  }

 private:
  struct Allocation {
    Origin origin;
    uint64_t bytes;
  };
  std::mutex mutex_;
  std::map<const char*, Allocation> allocations_;  // by the address that was handed out
};

}  // namespace tenon
