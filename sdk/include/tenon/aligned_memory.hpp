// SPDX-License-Identifier: Apache-2.0
// Allocations of a vendor's runtime that aligns to less than a request wants, or that is told of pinned memory apart.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace tenon {

// Remembers, for the addresses that a plugin hands out, what the vendor's runtime returned for them. Threads may share it.
class AlignedMemory {
 public:
  struct Origin {
    void* memory;  // what the runtime returned
    bool is_pinned;
  };

  // The first multiple of `align`, a power of two, from `memory` on: the allocation holds as many bytes more than the
  // request. Throws std::bad_alloc, and then nothing is remembered.
  void* align(void* memory, uint64_t align, bool is_pinned) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    char* const aligned =
        static_cast<char*>(memory) + ((address + align - 1) & ~(align - 1)) - address;
    if (!is_pinned && aligned == memory) return memory;  // as take() assumes of others
    const std::lock_guard lock(mutex_);
    origins_[aligned] = {memory, is_pinned};
    return aligned;
  }

  // What align() returned `address` for; it is forgotten.
  Origin take(void* address) {
    const std::lock_guard lock(mutex_);
    const auto found = origins_.find(address);
    if (found == origins_.end()) return {address, false};
    const Origin origin = found->second;
    origins_.erase(found);
    return origin;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, Origin> origins_;
};

}  // namespace tenon
