// SPDX-License-Identifier: Apache-2.0
// Allocations by their address.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>

namespace gpu {

class AddressTable {
 public:
  struct Entry {
    void* driver;  // what the driver returned; the address given out may lie behind it
    uint64_t bytes;
    uint32_t kind;  // TENON_ALLOC_*
  };

  // Returns false if the host has no memory for the entry.
  bool insert(void* address, const Entry& entry) try {
    std::lock_guard lock(mutex_);
    table_.insert_or_assign(address, entry);
    count_.store(table_.size(), std::memory_order_release);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Returns false if the address was not given out.
  bool take(void* address, Entry* out) {
    std::lock_guard lock(mutex_);
    auto found = table_.find(address);
    if (found == table_.end()) return false;
    *out = found->second;
    table_.erase(found);
    count_.store(table_.size(), std::memory_order_release);
    return true;
  }

  // Whether `bytes` from `address` lie inside one allocation.
  bool covers(const void* address, uint64_t bytes) const {
    if (count_.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard lock(mutex_);
    auto after = table_.upper_bound(const_cast<void*>(address));
    if (after == table_.begin()) return false;
    const auto& [begin, entry] = *--after;
    auto offset =
        static_cast<uint64_t>(static_cast<const char*>(address) - static_cast<char*>(begin));
    return offset <= entry.bytes && bytes <= entry.bytes - offset;
  }

  // Calls f(address, entry) for each, under the lock.
  template <class F>
  void each(F&& f) const {
    std::lock_guard lock(mutex_);
    for (const auto& [address, entry] : table_) f(address, entry);
  }

 private:
  mutable std::mutex mutex_;
  std::map<void*, Entry> table_;
  std::atomic<size_t> count_{0};  // an empty table takes no lock
};

}  // namespace gpu
