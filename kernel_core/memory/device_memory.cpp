// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/device_memory.hpp"

#include <cstdio>
#include <cstring>

#include "kernel_core/memory/poison.hpp"
#include "kernel_core/memory/text.hpp"
#include "kernel_core/memory/thread_cache.hpp"
#include "kernel_core/runtime/fork.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kHostGranule = 64;
constexpr uint64_t kDeviceGranule = 512;
constexpr uint64_t kLargeAlign = 2 * kMiB;  // lets the host's memory come in huge pages
constexpr uint64_t kMaxRequest = uint64_t{1} << 47;

constexpr uint64_t round_up(uint64_t bytes, uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Unused host memory is of use to other programs, a device's is not.
uint64_t default_cache_limit(const Device& device) {
  if (!device.host_memory) return UINT64_MAX;
  return device.info.memory_bytes == 0 ? 1024 * kMiB
                                       : std::max(256 * kMiB, device.info.memory_bytes / 4);
}

}  // namespace

DeviceMemory::DeviceMemory(Device& device) : device_(device) {
  reopened();
  lock_across_fork(mutex_);
  lock_across_fork(usage_.mutex());
}

void DeviceMemory::reopened() {
  granule_ = device_.host_memory ? kHostGranule : kDeviceGranule;
  cache_limit_ = default_cache_limit(device_);
  bool cached = device_.host_memory && !device_.async;
  if (cached && cache_slot_ == 0) cache_slot_ = new_cache_slot();
  device_.cache_slot.store(cached ? cache_slot_ : int8_t{0}, std::memory_order_relaxed);
}

DeviceMemory& DeviceMemory::of(Device& device) {
  if (auto* known = device.memory.load(std::memory_order_acquire)) [[likely]]
    return *static_cast<DeviceMemory*>(known);
  static auto* making = new std::mutex;
  std::lock_guard lock(*making);
  if (auto* known = device.memory.load(std::memory_order_relaxed))
    return *static_cast<DeviceMemory*>(known);
  auto* memory = new DeviceMemory(device);
  device.memory.store(memory, std::memory_order_release);
  return *memory;
}

// ---- requests ----

tenon_status DeviceMemory::allocate(uint64_t bytes, tenon_stream stream, void** out,
                                    tenon_err* err) try {
  std::lock_guard lock(mutex_);
  Block* block;
  TENON_TRY(take_block(bytes, stream, &block, err));
  *out = block->data;
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void DeviceMemory::deallocate(void* data) noexcept {
  if (device_.lost) return;
  std::lock_guard lock(mutex_);
  if (Block* block = used_.take(data)) give_block(block);
}

tenon_status DeviceMemory::allocate_chain(uint64_t bytes, uint32_t count, void** chain,
                                          uint32_t* got, tenon_err* err) try {
  std::lock_guard lock(mutex_);
  *chain = nullptr;
  *got = 0;
  for (; *got < count; ++*got) {
    Block* block;
    tenon_err ignored;
    tenon_status status = take_block(bytes, nullptr, &block, *got == 0 ? err : &ignored);
    if (status != TENON_OK) return *got == 0 ? status : TENON_OK;
    unpoison(block->data, sizeof(void*));
    std::memcpy(block->data, chain, sizeof(void*));
    *chain = block->data;
  }
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return *got == 0 ? fail_host_memory(err) : TENON_OK;
}

void DeviceMemory::deallocate_chain(void* chain) noexcept {
  std::lock_guard lock(mutex_);
  while (chain) {
    void* data = chain;
    std::memcpy(&chain, data, sizeof(void*));
    if (Block* block = used_.take(data)) give_block(block);
  }
}

// ---- blocks ----

uint64_t DeviceMemory::round_request(uint64_t bytes) const {
  // A handle cannot be cut, so blocks of like size are made equal instead.
  if (device_.opaque_memory) return FreeBins::round_to_bin(round_up(bytes, granule_));
  return round_up(bytes, granule_);
}

FreeBins& DeviceMemory::bins_of(const Segment& segment) {
  return segment.small ? segment.arena->small : segment.arena->large;
}

Arena& DeviceMemory::arena_of(tenon_stream stream) {
  for (auto& arena : arenas_) {
    if (arena->stream == stream) return *arena;
  }
  arenas_.push_back(std::make_unique<Arena>(Arena{stream, {}, {}}));
  return *arenas_.back();
}

tenon_status DeviceMemory::take_block(uint64_t bytes, tenon_stream stream, Block** out,
                                      tenon_err* err) {
  if (bytes > kMaxRequest) return fail_out_of_memory(bytes, "no device has that much", err);
  bytes = round_request(bytes);
  if (pending_) poll_pending(false);
  used_.reserve(1);
  Arena& arena = arena_of(stream);
  Block* block = (bytes <= kSmallRequest ? arena.small : arena.large).find(bytes);
  // An uncut handle may be larger than what was asked for, but not by much.
  if (block && device_.opaque_memory && block->bytes > bytes + bytes / 4) block = nullptr;
  if (!block) TENON_TRY(grow(arena, bytes, &block, err));
  *out = cut_block(block, bytes);
  return TENON_OK;
}

// Take a free block into use, leaving what is over as a new free block.
Block* DeviceMemory::cut_block(Block* block, uint64_t bytes) {
  FreeBins& bins = bins_of(*block->segment);
  uint64_t rest = block->bytes - bytes;
  uint64_t least = block->segment->small ? granule_ : kSmallRequest;
  bool cut = rest >= least && !device_.opaque_memory;
  Block* tail = cut ? new_block() : nullptr;  // may throw: before anything has changed
  bins.remove(block);
  if (cut) {
    *tail = {.data = static_cast<char*>(block->data) + bytes,
             .bytes = rest,
             .segment = block->segment,
             .state = BlockState::kFree,
             .uses = nullptr,
             .previous = block,
             .next = block->next,
             .list_previous = nullptr,
             .list_next = nullptr};
    if (tail->next) tail->next->previous = tail;
    block->next = tail;
    block->bytes = bytes;
    bins.insert(tail);
  }
  block->state = BlockState::kUsed;
  used_.insert(block);
  totals_.handed += block->bytes;
  if (device_.host_memory) unpoison(block->data, block->bytes);
  return block;
}

// A block comes back from its user; it has left the table.
void DeviceMemory::give_block(Block* block) noexcept {
  totals_.handed -= block->bytes;
  if (!block->uses || !record_events(block)) return free_block(block);
  block->state = BlockState::kPending;
  totals_.pending += block->bytes;
  block->list_next = pending_;
  pending_ = block;
}

void DeviceMemory::free_block(Block* block) noexcept {
  Segment* segment = block->segment;
  FreeBins& bins = bins_of(*segment);
  if (device_.host_memory) poison(block->data, block->bytes);
  block->state = BlockState::kFree;
  if (Block* next = block->next; next && next->state == BlockState::kFree) {
    bins.remove(next);
    block->bytes += next->bytes;
    block->next = next->next;
    if (block->next) block->next->previous = block;
    drop_block(next);
  }
  if (Block* previous = block->previous; previous && previous->state == BlockState::kFree) {
    bins.remove(previous);
    previous->bytes += block->bytes;
    previous->next = block->next;
    if (previous->next) previous->next->previous = previous;
    drop_block(block);
    block = previous;
  }
  bins.insert(block);
  if (block->bytes == segment->bytes && totals_.free() > cache_limit_) release_segment(segment);
}

Block* DeviceMemory::new_block() {
  if (!spare_blocks_) {
    constexpr size_t kBatch = 64;
    Block* batch = new Block[kBatch];  // kept for ever: the device will need as many again
    for (size_t i = 0; i < kBatch; ++i) drop_block(&batch[i]);
  }
  Block* block = spare_blocks_;
  spare_blocks_ = block->list_next;
  return block;
}

void DeviceMemory::drop_block(Block* block) {
  block->list_next = spare_blocks_;
  spare_blocks_ = block;
}

// ---- segments ----

uint64_t DeviceMemory::segment_bytes(uint64_t bytes) const {
  if (device_.opaque_memory) return bytes;
  if (bytes <= kSmallRequest) return 2 * kMiB;
  if (bytes < 10 * kMiB) return 20 * kMiB;
  return round_up(bytes, 2 * kMiB);
}

tenon_status DeviceMemory::grow(Arena& arena, uint64_t bytes, Block** out, tenon_err* err) {
  bool small = bytes <= kSmallRequest;
  uint64_t size = segment_bytes(bytes);
  void* data;
  tenon_err first;
  tenon_status status = raw_allocate(size, arena.stream, &data, &first);
  if (status == TENON_OUT_OF_MEMORY) {
    ++totals_.retries;
    poll_pending(true);
    if (Block* block = (small ? arena.small : arena.large).find(bytes)) {
      *out = block;
      return TENON_OK;
    }
    trim_locked();
    size = device_.opaque_memory ? bytes : round_up(bytes, kDeviceGranule);
    tenon_err second;
    status = raw_allocate(size, arena.stream, &data, &second);
    if (status == TENON_OUT_OF_MEMORY) return fail_out_of_memory(bytes, second.text, err);
    if (status != TENON_OK) return fail(err, status, "%s", second.text.c_str());
  } else if (status != TENON_OK) {
    return fail(err, status, "%s", first.text.c_str());
  }
  *out = add_segment(arena, data, size, small);
  return TENON_OK;
}

tenon_status DeviceMemory::raw_allocate(uint64_t bytes, tenon_stream stream, void** out,
                                        tenon_err* err) {
  tenon_alloc_request request = {.struct_size = sizeof request,
                                 .kind = TENON_ALLOC_DEVICE,
                                 .must_understand = 0,
                                 .bytes = bytes,
                                 .align = granule_,
                                 .stream = stream};
  if (device_.host_memory && bytes >= kLargeAlign) request.align = kLargeAlign;
  void* data = nullptr;
  TENON_TRY(device_result(device_, "alloc",
                          device_.api->alloc(device_.handle, &request, &data, err), err));
  TENON_TRY(check_raw(data, bytes, stream, err));
  ++totals_.raw_allocations;
  *out = data;
  return TENON_OK;
}

// What a plugin calls success is looked at before it is believed.
tenon_status DeviceMemory::check_raw(void* data, uint64_t bytes, tenon_stream stream,
                                     tenon_err* err) {
  if (!data) {
    return fail(err, TENON_INTERNAL,
                "%s > alloc: returned OK and no memory; this is a bug in the plugin", device_.name);
  }
  if (device_.opaque_memory) return TENON_OK;
  auto address = reinterpret_cast<uintptr_t>(data);
  for (const Segment* segment = segments_; segment; segment = segment->next) {
    auto other = reinterpret_cast<uintptr_t>(segment->data);
    if (address >= other + segment->bytes || other >= address + bytes) continue;
    return fail(
        err, TENON_INTERNAL,
        "%s > alloc: returned %p, which overlaps memory it has given out before; this is a bug "
        "in the plugin",
        device_.name, data);
  }
  uint64_t align = device_.host_memory && bytes >= kLargeAlign ? kLargeAlign : granule_;
  if (address % align == 0) return TENON_OK;
  device_.api->free(device_.handle, data, bytes, stream);
  return fail(err, TENON_INTERNAL,
              "%s > alloc: expected memory aligned to %llu, got %p; this is a bug in the plugin",
              device_.name, static_cast<unsigned long long>(align), data);
}

Block* DeviceMemory::add_segment(Arena& arena, void* data, uint64_t bytes, bool small) {
  std::unique_ptr<Segment> segment;
  Block* block;
  try {
    segment = std::make_unique<Segment>();
    block = new_block();
  } catch (...) {
    device_.api->free(device_.handle, data, bytes, arena.stream);
    throw;
  }
  *segment = {data, bytes, &arena, small, block, nullptr, segments_};
  *block = {.data = data,
            .bytes = bytes,
            .segment = segment.get(),
            .state = BlockState::kFree,
            .uses = nullptr,
            .previous = nullptr,
            .next = nullptr,
            .list_previous = nullptr,
            .list_next = nullptr};
  if (segments_) segments_->previous = segment.get();
  segments_ = segment.release();
  bins_of(*segments_).insert(block);
  if (device_.host_memory) poison(data, bytes);
  totals_.reserved += bytes;
  totals_.peak_reserved = std::max(totals_.peak_reserved, totals_.reserved);
  ++totals_.segments;
  return block;
}

// The segment is one free block.
void DeviceMemory::release_segment(Segment* segment) noexcept {
  bins_of(*segment).remove(segment->first);
  drop_block(segment->first);
  if (segment->previous) segment->previous->next = segment->next;
  if (segment->next) segment->next->previous = segment->previous;
  if (segments_ == segment) segments_ = segment->next;
  totals_.reserved -= segment->bytes;
  --totals_.segments;
  ++totals_.raw_frees;
  if (device_.host_memory) unpoison(segment->data, segment->bytes);
  device_.api->free(device_.handle, segment->data, segment->bytes, segment->arena->stream);
  delete segment;
}

uint64_t DeviceMemory::trim_locked() noexcept {
  poll_pending(true);
  uint64_t before = totals_.reserved;
  for (Segment *segment = segments_, *next; segment; segment = next) {
    next = segment->next;
    if (segment->first->state == BlockState::kFree && segment->first->bytes == segment->bytes)
      release_segment(segment);
  }
  return before - totals_.reserved;
}

uint64_t DeviceMemory::trim() noexcept {
  if (device_.lost) return 0;
  std::lock_guard lock(mutex_);
  return trim_locked();
}

// ---- streams ----

void DeviceMemory::record_use(void* data, tenon_stream stream) noexcept {
  if (!device_.async || device_.lost) return;
  std::lock_guard lock(mutex_);
  Block* block = used_.find(data);
  if (!block || block->segment->arena->stream == stream) return;
  for (StreamUse* use = block->uses; use; use = use->next) {
    if (use->stream == stream) return;
  }
  StreamUse* use = spare_uses_;
  if (use)
    spare_uses_ = use->next;
  else if (!(use = new (std::nothrow) StreamUse))
    return wait_for(stream);
  *use = {stream, nullptr, block->uses};
  block->uses = use;
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
    use->next = spare_uses_;
    spare_uses_ = use;
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

void DeviceMemory::forget_stream(tenon_stream stream) {
  std::lock_guard lock(mutex_);
  wait_for(stream);
  // Later work is ordered after the wait above, so what belonged to the stream can belong to any.
  used_.for_each([&](Block& block) {
    for (StreamUse** link = &block.uses; *link;) {
      StreamUse* use = *link;
      if (use->stream != stream) {
        link = &use->next;
        continue;
      }
      *link = use->next;
      use->next = spare_uses_;
      spare_uses_ = use;
    }
  });
  auto found = std::find_if(arenas_.begin(), arenas_.end(),
                            [&](const auto& arena) { return arena->stream == stream; });
  if (found == arenas_.end()) return;
  std::unique_ptr<Arena> gone = std::move(*found);
  arenas_.erase(found);
  Arena& heir = arena_of(nullptr);
  for (Segment* segment = segments_; segment; segment = segment->next) {
    if (segment->arena != gone.get()) continue;
    segment->arena = &heir;
    for (Block* block = segment->first; block; block = block->next) {
      if (block->state == BlockState::kFree) bins_of(*segment).insert(block);
    }
  }
}

// ---- the end of a device ----

void DeviceMemory::list_leases(std::string& text) {
  UsageTotals totals = usage_.totals();
  if (totals.allocations == totals.frees) return;
  if (!text.empty()) text += ", ";
  text += std::to_string(totals.allocations - totals.frees) + " memory block(s) of together " +
          byte_text(static_cast<uint64_t>(totals.current));
}

void DeviceMemory::release_all() {
  drain_thread_caches(*this);
  std::lock_guard lock(mutex_);
  trim_locked();
  for (tenon_event event : spare_events_) device_.async->event_destroy(device_.handle, event);
  spare_events_.clear();
}

}  // namespace tenon::core
