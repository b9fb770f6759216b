// SPDX-License-Identifier: Apache-2.0
// Memory of recorded work. Such work runs again whenever its owner likes, so a block that it uses
// is free only when the recording is gone. Until then no request may get it, not even one of the
// stream that it was allocated for.
#include <algorithm>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/runtime/stream.hpp"
#include "kernel_core/runtime/tensor.hpp"

namespace tenon::core {

tenon_status DeviceMemory::begin_hold(tenon_stream stream, uint64_t* number, tenon_err* err) try {
  std::lock_guard lock(mutex_);
  if (!stream)
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "the synchronous stream of %s runs all work at once and cannot record it; use a stream "
        "of your own",
        device_.name);
  if (recording_of(stream))
    return fail(err, TENON_FAILED_PRECONDITION,
                "the memory of this stream of %s is being noted already; end that first",
                device_.name);
  // From here on an event of this stream would be recorded instead of passing: none may be needed.
  wait_for(stream);
  drop_uses(stream);
  holds_.push_back({.number = last_hold_ + 1, .stream = stream});
  device_.recordings.fetch_add(1, std::memory_order_relaxed);
  *number = ++last_hold_;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status DeviceMemory::end_hold(uint64_t number, tenon_err* err) {
  std::lock_guard lock(mutex_);
  Hold* hold = find_hold(number);
  if (!hold || !hold->is_recording)
    return fail(err, TENON_FAILED_PRECONDITION,
                "no memory of %s is being noted under the number %llu", device_.name,
                static_cast<unsigned long long>(number));
  hold->is_recording = false;
  device_.recordings.fetch_sub(1, std::memory_order_relaxed);
  return hold->is_incomplete ? fail_host_memory(err) : TENON_OK;
}

void DeviceMemory::release_hold(uint64_t number) noexcept {
  std::lock_guard lock(mutex_);
  Hold* hold = find_hold(number);
  if (!hold) return;
  if (hold->is_recording) device_.recordings.fetch_sub(1, std::memory_order_relaxed);
  Block* block = hold->blocks;
  *hold = holds_.back();
  holds_.pop_back();
  while (Block* freed = block) {
    block = freed->list_next;
    totals_.pending -= freed->bytes;
    if (device_.lost) continue;
    if (events_passed(freed, false))
      free_block(freed);
    else
      park(freed);
  }
}

Hold* DeviceMemory::find_hold(uint64_t number) noexcept {
  for (Hold& hold : holds_)
    if (hold.number == number) return &hold;
  return nullptr;
}

Hold* DeviceMemory::recording_of(tenon_stream stream) noexcept {
  for (Hold& hold : holds_)
    if (hold.is_recording && hold.stream == stream) return &hold;
  return nullptr;
}

void DeviceMemory::note_use(Block* block, Hold& hold) noexcept {
  // end_hold says so, and the recording is dropped.
  if (!add_use(block, nullptr, hold.number)) hold.is_incomplete = true;
}

// Given back, and not free: it waits with the first hold that keeps it, or else for events.
void DeviceMemory::park(Block* block) noexcept {
  Block** list = &pending_;
  for (StreamUse* use = block->uses; use; use = use->next)
    if (Hold* hold = use->hold ? find_hold(use->hold) : nullptr) list = &hold->blocks;
  block->state = BlockState::kPending;
  totals_.pending += block->bytes;
  block->list_next = *list;
  *list = block;
}

tenon_status DeviceMemory::find_origin(const void* data, void** memory, uint64_t* bytes,
                                       tenon_err* err) {
  std::lock_guard lock(mutex_);
  const Block* block = used_.find(data);
  if (!block)
    return fail(err, TENON_INVALID_ARGUMENT, "%p is no memory that %s's allocator has handed out",
                data, device_.name);
  void *from = block->segment->data, *to = block->segment->end();
  for (void* seam : block->segment->seams) {  // in order
    if (seam <= block->data) from = seam;
    if (seam >= block->end()) to = std::min(to, seam);
  }
  *memory = from;
  *bytes = bytes_between(from, to);
  return TENON_OK;
}

namespace slots {

void tensor_record_use(tenon_tensor* tensor, tenon_stream stream) {
  const Storage* storage = impl(tensor)->storage;
  if (storage && storage->device && storage->device->async && storage->data)
    DeviceMemory::of(*storage->device).record_use(storage->data, stream);
}

tenon_status memory_origin(const tenon_tensor* tensor, void** memory, uint64_t* bytes,
                           uint64_t* offset, tenon_err* err) {
  const Storage* storage = impl(tensor)->storage;
  if (!storage || !storage->device || !storage->data)
    return core::fail(
        err, TENON_INVALID_ARGUMENT,
        "the tensor's memory is not the host's: it is empty, or was made elsewhere; copy "
        "the tensor first");
  const char* block =
      static_cast<char*>(storage->data) - (storage->has_data ? sizeof(TensorImpl) : 0);
  TENON_TRY(DeviceMemory::of(*storage->device).find_origin(block, memory, bytes, err));
  auto distance = static_cast<const char*>(tensor->data) - static_cast<const char*>(*memory);
  *offset = static_cast<uint64_t>(distance) + tensor->byte_offset;
  return TENON_OK;
}

tenon_status memory_hold_begin(tenon_device_id id, tenon_stream stream, uint64_t* hold,
                               tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  TENON_TRY(require_stream(*device, stream, err));
  return DeviceMemory::of(*device).begin_hold(stream, hold, err);
}

tenon_status memory_hold_end(tenon_device_id id, uint64_t hold, tenon_err* err) {
  Device* device;
  TENON_TRY(open_device(id, &device, err));
  return DeviceMemory::of(*device).end_hold(hold, err);
}

void memory_hold_release(tenon_device_id id, uint64_t hold) {
  Device* device = find_device(id);
  if (device && device->memory.load(std::memory_order_acquire))
    DeviceMemory::of(*device).release_hold(hold);
}

}  // namespace slots
}  // namespace tenon::core
