// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/thread_cache.hpp"

#include <atomic>
#include <new>
#include <utility>

#include "kernel_core/memory/device_memory.hpp"

namespace tenon::core {

// Entry 0 stays NULL: it is what devices without a slot look at.
constinit thread_local ThreadCache* thread_caches[kCachedDevices + 1] = {};

namespace {

constinit thread_local bool thread_is_ending = false;

// Gives a thread's blocks back when it ends. Memory released after that goes to the device
// directly.
struct ThreadEnd {
  ~ThreadEnd() {
    thread_is_ending = true;
    for (ThreadCache*& cache : thread_caches) {
      delete cache;
      cache = nullptr;
    }
  }
};

}  // namespace

ThreadCache::ThreadCache(DeviceMemory& memory) : memory_(memory) {
  for (uint32_t i = 0; i < kClassCount; ++i) lists_[i].limit = class_limit(i);
  memory.usage().join(*this);
}

ThreadCache::~ThreadCache() {
  std::lock_guard lock(memory_.usage().mutex());
  drain();
  memory_.usage().leave(*this);
}

void ThreadCache::note_large(void* data) {
  noted_ = data;
  changes_ = memory_.changes();  // one by another thread just now costs no more than a place
}

bool ThreadCache::give_large(void* data, uint64_t bytes) {
  if (bytes > kMaxSameBytes) return false;
  drop_large();
  // To one so large, a place of its own would cost others theirs.
  if (bytes > kMaxLargeBytes && (data != noted_ || memory_.changes() != changes_)) return false;
  poison(data, bytes);
  large_bytes_ = bytes;
  large_.store(data, std::memory_order_release);
  freed(bytes);  // not published: it is still the thread's, and likely to be in use again at once
  return true;
}

void ThreadCache::drop_large() {
  if (void* data = remove_large()) memory_.deallocate(data), publish();
}

tenon_status ThreadCache::refill(uint64_t bytes, tenon_err* err) {
  uint32_t size_class = class_of(bytes);
  List& list = lists_[size_class];
  return memory_.allocate_chain(size_class, &list.head, &list.count, err);
}

void ThreadCache::spill(uint32_t size_class) {
  List& list = lists_[size_class];
  memory_.deallocate_chain(size_class, std::exchange(list.head, nullptr), list.count);
  list.count = 0;
}

bool ThreadCache::drain() {
  is_recalled_.store(false, std::memory_order_relaxed);
  bool is_any = large_.load(std::memory_order_relaxed) != nullptr;
  drop_large();
  for (uint32_t i = 0; i < kClassCount; ++i) {
    is_any |= lists_[i].count > 0;
    spill(i);
  }
  return is_any;
}

bool ThreadCache::recall() {
  is_recalled_.store(true, std::memory_order_relaxed);
  void* data = remove_large();
  if (data) memory_.deallocate(data);
  return data;
}

void ThreadCache::publish() { memory_.usage().publish(*this); }

ThreadCache* make_thread_cache(Device& device, DeviceMemory& memory) {
  if (ThreadCache* known = find_thread_cache(device)) return known->obey(), known;
  int8_t slot = device.cache_slot.load(std::memory_order_relaxed);
  if (slot == 0 || thread_is_ending) return nullptr;
  [[maybe_unused]] static thread_local ThreadEnd end;
  return thread_caches[slot] = new (std::nothrow) ThreadCache(memory);
}

int8_t new_cache_slot() {
  static std::atomic<int32_t> given{0};
  int32_t slot = ++given;
  return slot <= kCachedDevices ? static_cast<int8_t>(slot) : int8_t{0};
}

}  // namespace tenon::core
