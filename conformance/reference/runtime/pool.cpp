// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include "device.hpp"

namespace reference {
namespace {
constexpr uint64_t kStep = 512;  // sizes that differ by less share blocks
}  // namespace

// The smallest block that fits and is not wastefully large.
void* Pool::reuse(uint64_t bytes, uint64_t align, const Queue* queue) {
  for (auto it = unused_.lower_bound(bytes); it != unused_.end() && it->first <= 2 * bytes; ++it) {
    Block& block = it->second;
    if (reinterpret_cast<uintptr_t>(block.memory) % align != 0) continue;
    const bool same_stream = queue && block.freed.queue.get() == queue;
    if (!same_stream && !block.freed.passed()) continue;
    void* memory = block.memory;
    used_[memory] = it->first;
    used_bytes_ += it->first;
    unused_bytes_ -= it->first;
    unused_.erase(it);
    return memory;
  }
  return nullptr;
}

void* Pool::allocate(uint64_t bytes, uint64_t align, const Queue* queue) {
  if (bytes > Vram::kBytes) return nullptr;
  bytes = (bytes + kStep - 1) / kStep * kStep;
  for (bool again : {false, true}) {
    {
      std::lock_guard lock(mutex_);
      void* memory = reuse(bytes, align, queue);
      if (!memory && (memory = vram_.allocate(bytes, align))) {
        used_[memory] = bytes;
        used_bytes_ += bytes;
      }
      if (memory) return memory;
    }
    if (!again) trim(0);  // blocks of other sizes make room
  }
  return nullptr;
}

bool Pool::release(void* memory, Ticket freed) {
  std::lock_guard lock(mutex_);
  auto it = used_.find(memory);
  if (it == used_.end()) return false;
  const uint64_t bytes = it->second;
  used_.erase(it);
  used_bytes_ -= bytes;
  unused_bytes_ += bytes;
  unused_.insert({bytes, {memory, std::move(freed)}});
  return true;
}

uint64_t Pool::trim(uint64_t keep) {
  uint64_t released = 0;
  for (;;) {
    Block block;
    {
      std::lock_guard lock(mutex_);
      if (unused_bytes_ <= keep) return released;
      auto largest = std::prev(unused_.end());
      block = std::move(largest->second);
      unused_bytes_ -= largest->first;
      released += largest->first;
      unused_.erase(largest);
    }
    block.freed.wait();
    vram_.release(block.memory);
  }
}

void Pool::usage(uint64_t* reserved, uint64_t* used) const {
  std::lock_guard lock(mutex_);
  *reserved = used_bytes_ + unused_bytes_;
  *used = used_bytes_;
}

namespace {

tenon_status pool_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                        tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  if (request->kind != TENON_ALLOC_DEVICE)
    return tenon::fail(
        err, TENON_UNSUPPORTED,
        "reference: pool_alloc: the pool holds device memory; use alloc for other kinds");
  if (request->align == 0 || (request->align & (request->align - 1)) != 0)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       "reference: pool_alloc: expected an alignment that is a power of two");
  const Queue* queue = request->stream ? request->stream->queue.get() : nullptr;
  void* memory = device->pool.allocate(request->bytes, request->align, queue);
  if (!memory)
    return tenon::fail(err, TENON_OUT_OF_MEMORY,
                       "reference: out of board memory; a board has 2 GiB");
  *out = memory;
  return TENON_OK;
}

void pool_free(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  if (!memory) return;
  if (stream && stream->recording)  // every replay uses it again
    stream->recording->kept.push_back(memory);
  else
    device->pool.release(memory, ticket_of(stream));
}

tenon_status pool_trim(tenon_device device, uint64_t keep, uint64_t* released, tenon_err*) {
  *released = device->pool.trim(keep);
  return TENON_OK;
}

tenon_status pool_usage(tenon_device device, uint64_t* reserved, uint64_t* used, tenon_err*) {
  device->pool.usage(reserved, used);
  return TENON_OK;
}

}  // namespace

const tenon_pool_api kPool = {
    .struct_size = sizeof(tenon_pool_api),
    .pool_alloc = pool_alloc,
    .pool_free = pool_free,
    .pool_trim = pool_trim,
    .pool_usage = pool_usage,
};

}  // namespace reference
