// SPDX-License-Identifier: Apache-2.0
// The private half of the allocator: each thread's free blocks by size class, for devices whose
// memory is the host's and whose work is synchronous. A block is taken and given back without a
// lock and without an atomic read-modify-write.
#pragma once

#include <cstring>

#include "kernel_core/memory/poison.hpp"
#include "kernel_core/memory/size_class.hpp"
#include "kernel_core/memory/usage.hpp"
#include "kernel_core/runtime/device.hpp"

namespace tenon::core {

class DeviceMemory;

class ThreadCache : public ThreadUsage {
 public:
  explicit ThreadCache(DeviceMemory& memory);
  ~ThreadCache();  // gives everything back

  // NULL: the class is empty.
  void* take(uint64_t bytes) {
    List& list = lists_[class_of(bytes)];
    void* data = list.head;
    if (!data) [[unlikely]]
      return nullptr;
    std::memcpy(&list.head, data, sizeof(void*));
    --list.count;
    unpoison(data, bytes);
    count_allocation(bytes);
    return data;
  }

  // False: the class is full.
  bool give(void* data, uint64_t bytes) {
    uint32_t size_class = class_of(bytes);
    List& list = lists_[size_class];
    if (list.count >= list.limit) [[unlikely]]
      return false;
    poison(data, class_bytes(size_class));
    unpoison(data, sizeof(void*));
    std::memcpy(data, &list.head, sizeof(void*));
    list.head = data;
    ++list.count;
    count_free(bytes);
    return true;
  }

  // Fetch blocks of the class that holds `bytes`.
  tenon_status refill(uint64_t bytes, tenon_err* err);
  // Give all of a class back to the device.
  void spill(uint32_t size_class);
  void drain();

  void count_allocation(uint64_t bytes) {
    allocated(bytes);
    if (has_drifted()) [[unlikely]]
      publish();
  }
  void count_free(uint64_t bytes) {
    freed(bytes);
    if (has_drifted()) [[unlikely]]
      publish();
  }

 private:
  struct List {
    void* head = nullptr;
    uint32_t count = 0;
    uint32_t limit = 0;  // class_limit, near at hand
  };
  void publish();

  List lists_[kClassCount];
  DeviceMemory& memory_;
};

inline constexpr int8_t kCachedDevices =
    4;  // further host-memory devices work without thread caches
extern constinit thread_local ThreadCache* thread_caches[kCachedDevices + 1];

// The calling thread's cache for this device; NULL if there is none, or none yet.
inline ThreadCache* find_thread_cache(const Device& device) {
  return thread_caches[device.cache_slot.load(std::memory_order_relaxed)];
}

// Makes it if the device is to have one; NULL also while the thread is ending.
ThreadCache* make_thread_cache(Device& device, DeviceMemory& memory);

// An index into thread_caches for one more device; 0: none is left.
int8_t new_cache_slot();

}  // namespace tenon::core
