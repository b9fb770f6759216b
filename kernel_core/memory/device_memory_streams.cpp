// SPDX-License-Identifier: Apache-2.0
// Work on other streams than a block's own: who uses it, and when it is done.
#include <algorithm>
#include <new>

#include "kernel_core/memory/device_memory.hpp"

namespace tenon::core {

void DeviceMemory::record_use(void* data, tenon_stream stream) noexcept {
  if (!device_.async || device_.lost) return;
  std::lock_guard lock(mutex_);
  Block* block = used_.find(data);
  if (!block) return;
  if (Hold* hold = recording_of(stream)) return note_use(block, *hold);
  if (block->segment->arena->stream != stream && !add_use(block, stream, 0)) wait_for(stream);
}

// Each once. False: host memory ran out.
bool DeviceMemory::add_use(Block* block, tenon_stream stream, uint64_t hold) noexcept {
  for (const StreamUse* use = block->uses; use; use = use->next)
    if (use->stream == stream && use->hold == hold) return true;
  auto* use = new (std::nothrow) StreamUse{stream, nullptr, hold, block->uses};
  if (use) block->uses = use;
  return use;
}

// Errors of queued work are for those who queued it.
void DeviceMemory::wait_for(tenon_stream stream) noexcept {
  tenon_err ignored;
  device_.api->sync(device_.handle, stream, &ignored);
}

// Returns whether there is anything to wait for.
bool DeviceMemory::record_events(Block* block) noexcept {
  tenon_err ignored;
  for (StreamUse* use = block->uses; use; use = use->next) {
    if (use->hold != 0) continue;
    tenon_event event = nullptr;
    if (!spare_events_.empty()) {
      event = spare_events_.back();
      spare_events_.pop_back();
    } else if (device_.async->event_create(device_.handle, 0, &event, &ignored) != TENON_OK) {
      event = nullptr;
    }
    // No event: wait here instead. If that fails too, the device is lost and with it the work.
    if (!event ||
        device_.async->event_record(device_.handle, event, use->stream, &ignored) != TENON_OK)
      wait_for(use->stream);
    use->event = event;
  }
  return !events_passed(block, false);
}

// Drops the events that have passed; true once none is left.
bool DeviceMemory::events_passed(Block* block, bool wait) noexcept {
  tenon_err ignored;
  while (StreamUse* use = block->uses) {
    if (use->hold != 0 && find_hold(use->hold)) return false;
    if (use->event) {
      int32_t done = 1;  // an event of a lost device counts as passed
      if (wait)
        device_.async->event_sync(device_.handle, use->event, &ignored);
      else if (device_.async->event_query(device_.handle, use->event, &done, &ignored) != TENON_OK)
        done = 1;
      if (!done) return false;
      try {
        spare_events_.push_back(use->event);
      } catch (const std::bad_alloc&) {
        device_.async->event_destroy(device_.handle, use->event);
      }
    }
    block->uses = use->next;
    delete use;
  }
  return true;
}

void DeviceMemory::poll_pending(bool wait) noexcept {
  for (Block** link = &pending_; *link;) {
    Block* block = *link;
    if (!events_passed(block, wait)) {
      link = &block->list_next;
      continue;
    }
    *link = block->list_next;
    totals_.pending -= block->bytes;
    free_block(block);
  }
}

// The stream has finished, so its blocks need no wait any more.
void DeviceMemory::drop_uses(tenon_stream stream) noexcept {
  used_.for_each([&](Block& block) {
    for (StreamUse** link = &block.uses; *link;) {
      StreamUse* use = *link;
      if (use->hold != 0 || use->stream != stream) {
        link = &use->next;
        continue;
      }
      *link = use->next;
      delete use;
    }
  });
}

void DeviceMemory::forget_stream(tenon_stream stream) {
  std::lock_guard lock(mutex_);
  wait_for(stream);
  // Later work is ordered after the wait above, so what belonged to the stream can belong to any.
  drop_uses(stream);
  auto found = std::find_if(arenas_.begin(), arenas_.end(),
                            [&](const auto& arena) { return arena->stream == stream; });
  if (found == arenas_.end()) return;
  std::unique_ptr<Arena> gone = std::move(*found);
  arenas_.erase(found);
  Arena& heir = arena_of(nullptr);
  for (Segment* segment = segments_; segment; segment = segment->next) {
    if (segment->arena != gone.get()) continue;
    segment->arena = &heir;
    for (Block* block = segment->first; block; block = block->next)
      if (block->state == BlockState::kFree) bins_of(*segment).insert(block);
  }
}

}  // namespace tenon::core
