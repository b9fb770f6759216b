// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/allocator.hpp"

#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/thread_cache.hpp"

namespace tenon::core {
namespace {

// Whether such blocks come from and go to thread caches: both sides have to agree.
bool is_small(uint64_t bytes, tenon_stream stream) { return bytes - 1 < kMaxClassBytes && !stream; }

[[gnu::noinline]] tenon_status allocate_slowly(Device& device, uint64_t bytes, tenon_stream stream,
                                               void** out, tenon_err* err) try {
  *out = nullptr;
  if (bytes == 0 || device.id == TENON_DEVICE_META) return TENON_OK;
  DeviceMemory& memory = DeviceMemory::of(device);
  ThreadCache* cache = make_thread_cache(device, memory);
  if (cache && is_small(bytes, stream)) {
    TENON_TRY(cache->refill(bytes, err));
    *out = cache->take(bytes);
    return TENON_OK;
  }
  TENON_TRY(memory.allocate(bytes, stream, out, err));
  if (cache)
    cache->count_allocation(bytes);
  else
    memory.usage().allocated(bytes);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

[[gnu::noinline]] void deallocate_slowly(Device& device, void* data, uint64_t bytes,
                                         tenon_stream stream) noexcept {
  DeviceMemory& memory = DeviceMemory::of(device);
  ThreadCache* cache = make_thread_cache(device, memory);
  if (cache && is_small(bytes, stream)) {
    if (cache->give(data, bytes)) return;
    cache->spill(class_of(bytes));
    cache->give(data, bytes);
    return;
  }
  memory.deallocate(data);
  if (cache)
    cache->count_free(bytes);
  else
    memory.usage().freed(bytes);
}

}  // namespace

tenon_status allocate(Device& device, uint64_t bytes, tenon_stream stream, void** out,
                      tenon_err* err) {
  if (is_small(bytes, stream)) [[likely]] {
    if (ThreadCache* cache = find_thread_cache(device)) [[likely]] {
      if (void* data = cache->take(bytes)) [[likely]] {
        *out = data;
        return TENON_OK;
      }
    }
  }
  return allocate_slowly(device, bytes, stream, out, err);
}

void deallocate(Device& device, void* data, uint64_t bytes, tenon_stream stream) noexcept {
  if (!data) return;
  if (is_small(bytes, stream)) [[likely]] {
    if (ThreadCache* cache = find_thread_cache(device)) [[likely]] {
      if (cache->give(data, bytes)) [[likely]]
        return;
    }
  }
  deallocate_slowly(device, data, bytes, stream);
}

void record_use(Device& device, void* data, tenon_stream stream) noexcept {
  if (data && device.async) DeviceMemory::of(device).record_use(data, stream);
}

}  // namespace tenon::core
