// SPDX-License-Identifier: Apache-2.0
// The private half of the allocator: each thread's free blocks by size class, for devices whose
// memory is the host's and whose work is synchronous. A block is taken and given back without a
// lock and without an atomic read-modify-write. Where memory is short, other threads take the large
// one, and ask for the small ones, which come when the thread is next at the device.
#pragma once

#include <atomic>
#include <cstring>
#include <utility>

#include "kernel_core/memory/poison.hpp"
#include "kernel_core/memory/size_class.hpp"
#include "kernel_core/memory/usage.hpp"
#include "kernel_core/runtime/device.hpp"

namespace tenon::core {

class DeviceMemory;

// That a thread holds back; and where the device would give the same block again in any case.
inline constexpr uint64_t kMaxLargeBytes = uint64_t{32} << 20, kMaxSameBytes = uint64_t{64} << 20;

class ThreadCache : public ThreadUsage {
 public:
  explicit ThreadCache(DeviceMemory& memory);
  ~ThreadCache();  // gives everything back

  // NULL: the class is empty. `head` bytes precede the requested ones and are not counted.
  void* take(uint64_t bytes, uint64_t head = 0) {
    List& list = lists_[class_of(bytes + head)];
    void* data = list.head;
    if (!data) return nullptr;
    std::memcpy(&list.head, data, sizeof(void*));
    --list.count;
    unpoison(data, bytes + head);
    count_allocation(bytes);
    return data;
  }

  // False: the class is full.
  bool give(void* data, uint64_t bytes, uint64_t head = 0) {
    uint32_t size_class = class_of(bytes + head);
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

  // The large block that the thread gave back last, if it has so many bytes; NULL: it has not.
  void* take_large(uint64_t bytes) {
    if (bytes != large_bytes_) return nullptr;
    void* data = remove_large();
    if (!data) return nullptr;
    unpoison(data, bytes);
    count_allocation(bytes);
    return data;
  }
  // False: it is not to be held back.
  bool give_large(void* data, uint64_t bytes);
  // Before any other block is taken from the device, so that one that is held back is nowhere in
  // the way, and a step needs no more memory than without.
  void drop_large();
  // The device has just given `data`.
  void note_large(void* data);

  // Fetch blocks of the class that holds `bytes`.
  tenon_status refill(uint64_t bytes, tenon_err* err);
  // Give all of a class back to the device.
  void spill(uint32_t size_class);
  // Give everything back. Returns whether there was anything.
  bool drain();

  // By any thread, with the mutex of the device's usage held. Returns whether anything came back.
  bool recall();
  void obey() {
    if (is_recalled_.load(std::memory_order_relaxed)) [[unlikely]]
      drain();
  }

  void count_allocation(uint64_t bytes) {
    if (allocated(bytes)) publish();
  }
  void count_free(uint64_t bytes) {
    if (freed(bytes)) publish();
  }

 private:
  struct List {
    void* head = nullptr;
    uint32_t count = 0;
    uint32_t limit = 0;  // class_limit, near at hand
  };
  [[gnu::cold]] void publish();
  void* remove_large() {
    return large_.load(std::memory_order_relaxed) ? large_.exchange(nullptr) : nullptr;
  }

  List lists_[kClassCount];
  std::atomic<void*> large_{nullptr};  // an unused block that the thread keeps
  uint64_t large_bytes_ = 0;           // of it, or of the one that was last
  std::atomic<bool> is_recalled_{false};
  void* noted_ = nullptr;  // which the device gave last
  uint64_t changes_ = 0;   // of the device's free blocks until then
  DeviceMemory& memory_;
};

inline constexpr int8_t kCachedDevices = 4;  // further devices work without
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
