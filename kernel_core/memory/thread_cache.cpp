// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/thread_cache.hpp"

#include <mutex>
#include <new>

#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/runtime/fork.hpp"

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

struct Registry {
  std::mutex mutex;
  ThreadCache* caches[kCachedDevices + 1] = {};
  int8_t slots = 0;

  Registry() { lock_across_fork(ForkOrder::kThreadCaches, mutex); }
};

Registry& registry() {
  static auto* all = new Registry;
  return *all;
}
[[maybe_unused]] const auto& made_early = registry();  // see fork.hpp

}  // namespace

ThreadCache::ThreadCache(DeviceMemory& memory) : memory_(memory) {
  for (uint32_t i = 0; i < kClassCount; ++i) lists_[i].limit = class_limit(i);
  memory.usage().join(usage_);
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  ThreadCache*& first = all.caches[memory.cache_slot()];
  next_ = first;
  first = this;
}

ThreadCache::~ThreadCache() {
  {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    ThreadCache** link = &all.caches[memory_.cache_slot()];
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    drain();
  }
  memory_.usage().leave(usage_);
}

tenon_status ThreadCache::refill(uint64_t bytes, tenon_err* err) {
  uint32_t size_class = class_of(bytes);
  List& list = lists_[size_class];
  return memory_.allocate_chain(class_bytes(size_class), class_batch(size_class), &list.head,
                                &list.count, err);
}

void ThreadCache::spill(uint64_t bytes) {
  List& list = lists_[class_of(bytes)];
  uint32_t kept = list.count / 2;
  void* last = list.head;
  for (uint32_t i = 1; i < kept; ++i) std::memcpy(&last, last, sizeof(void*));
  void* rest = list.head;
  if (kept == 0) {
    list.head = nullptr;
  } else {
    void* end = nullptr;
    std::memcpy(&rest, last, sizeof(void*));
    std::memcpy(last, &end, sizeof(void*));
  }
  list.count = kept;
  memory_.deallocate_chain(rest);
}

void ThreadCache::drain() {
  for (List& list : lists_) {
    memory_.deallocate_chain(list.head);
    list.head = nullptr;
    list.count = 0;
  }
}

void ThreadCache::publish() { memory_.usage().publish(usage_); }

ThreadCache* make_thread_cache(Device& device, DeviceMemory& memory) {
  if (ThreadCache* known = find_thread_cache(device)) return known;
  int8_t slot = device.cache_slot.load(std::memory_order_relaxed);
  if (slot == 0 || thread_is_ending) return nullptr;
  static thread_local ThreadEnd end;
  (void)end;
  return thread_caches[slot] = new (std::nothrow) ThreadCache(memory);
}

int8_t new_cache_slot() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  return all.slots < kCachedDevices ? ++all.slots : int8_t{0};
}

void drain_thread_caches(DeviceMemory& memory) {
  if (memory.cache_slot() == 0) return;
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  for (ThreadCache* cache = all.caches[memory.cache_slot()]; cache; cache = cache->next_)
    cache->drain();
}

}  // namespace tenon::core
