// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/allocator.hpp"

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/thread_cache.hpp"

namespace tenon::core {
namespace {

// Whether such blocks come from and go to thread caches: both sides have to agree.
bool is_small(uint64_t bytes, tenon_stream stream) { return bytes - 1 < kMaxClassBytes && !stream; }

[[gnu::noinline]] tenon_status allocate_slowly(Device& device, uint64_t bytes, tenon_stream stream,
                                               void** out, tenon_err* err, uint64_t head) try {
  *out = nullptr;
  if (bytes == 0 || device.id == TENON_DEVICE_META) return TENON_OK;
  DeviceMemory& memory = DeviceMemory::of(device);
  ThreadCache* cache = make_thread_cache(device, memory);
  bool in_cache = cache && is_small(bytes + head, stream);
  if (cache) cache->drop_large();
  auto attempt = [&] {
    return in_cache ? cache->refill(bytes + head, err)
                    : memory.allocate(bytes + head, stream, out, err);
  };
  tenon_status status = attempt();
  if (status == TENON_OUT_OF_MEMORY && memory.recall()) {
    slots::err_clear(err);  // otherwise the caller's next use of `err` would report this failure
    status = attempt();
  }
  if (status == TENON_OK && in_cache) *out = cache->take(bytes, head);
  if (status != TENON_OK || in_cache) return status;
  if (!cache) return memory.usage().allocated(bytes), TENON_OK;
  cache->note_large(*out);
  cache->count_allocation(bytes);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

[[gnu::noinline]] void deallocate_slowly(Device& device, void* data, uint64_t bytes,
                                         tenon_stream stream, uint64_t head) noexcept {
  DeviceMemory& memory = DeviceMemory::of(device);
  ThreadCache* cache = make_thread_cache(device, memory);
  if (cache && is_small(bytes + head, stream)) {
    if (!cache->give(data, bytes, head))
      cache->spill(class_of(bytes + head)), cache->give(data, bytes, head);
    return;
  }
  if (cache && cache->give_large(data, bytes)) return;
  memory.deallocate(data);
  cache ? cache->count_free(bytes) : memory.usage().freed(bytes);
}

}  // namespace

tenon_status allocate(Device& device, uint64_t bytes, tenon_stream stream, void** out,
                      tenon_err* err, uint64_t head) {
  ThreadCache* cache = find_thread_cache(device);
  if (cache && (*out = is_small(bytes + head, stream) ? cache->take(bytes, head)
                                                      : cache->take_large(bytes))) [[likely]]
    return TENON_OK;
  return allocate_slowly(device, bytes, stream, out, err, head);
}

void deallocate(Device& device, void* data, uint64_t bytes, tenon_stream stream,
                uint64_t head) noexcept {
  if (!data) return;
  ThreadCache* cache = find_thread_cache(device);
  if (cache && is_small(bytes + head, stream) && cache->give(data, bytes, head)) [[likely]]
    return;
  deallocate_slowly(device, data, bytes, stream, head);
}

void record_use(Device& device, void* data, tenon_stream stream) noexcept {
  if (data && device.async) DeviceMemory::of(device).record_use(data, stream);
}

}  // namespace tenon::core
