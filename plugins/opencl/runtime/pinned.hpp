// SPDX-License-Identifier: Apache-2.0
// Host memory that the device reaches by itself: buffers allocated on the host's side and mapped
// for as long as they live.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <new>

#include "driver.hpp"

namespace opencl {

struct Pinned {
  cl_mem memory;
  void* mapped;  // what the driver returned; the address given out may lie behind it
  uint64_t bytes;
};

class PinnedTable {
 public:
  // Returns false if the host has no memory for the entry.
  bool insert(void* address, const Pinned& pinned) try {
    std::lock_guard lock(mutex_);
    table_.emplace(address, pinned);
    count_.store(table_.size(), std::memory_order_release);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Returns false if the address was not given out.
  bool take(void* address, Pinned* out) {
    std::lock_guard lock(mutex_);
    auto found = table_.find(address);
    if (found == table_.end()) return false;
    *out = found->second;
    table_.erase(found);
    count_.store(table_.size(), std::memory_order_release);
    return true;
  }

  bool covers(const void* address, uint64_t bytes) const {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard lock(mutex_);
    auto after = table_.upper_bound(const_cast<void*>(address));
    if (after == table_.begin()) return false;
    const auto& [begin, pinned] = *--after;
    auto offset =
        static_cast<uint64_t>(static_cast<const char*>(address) - static_cast<char*>(begin));
    return offset <= pinned.bytes && bytes <= pinned.bytes - offset;
  }

 private:
  mutable std::mutex mutex_;
  std::map<void*, Pinned> table_;
  std::atomic<size_t> count_{0};  // most programs have none: copies then take no lock
};

}  // namespace opencl
