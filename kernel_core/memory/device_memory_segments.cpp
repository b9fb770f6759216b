// SPDX-License-Identifier: Apache-2.0
// Raw memory: when it is asked for, how much at a time, when it goes back.
#include <bit>

#include "kernel_core/memory/bytes.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/poison.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kRetryGranule = 512;
constexpr uint64_t kLargeAlign = 2 * kMiB;  // lets the host's memory come in huge pages

}  // namespace

uint64_t DeviceMemory::segment_bytes(uint64_t bytes) const {
  if (device_.opaque_memory || device_.pool) return bytes;
  if (bytes <= kSmallRequest) return 2 * kMiB;
  if (bytes < 10 * kMiB) return 20 * kMiB;
  // Room for the next batch's tensor, which is a little larger.
  return round_up(bytes, std::max(2 * kMiB, std::bit_floor(bytes) / 16));
}

tenon_status DeviceMemory::grow(Arena& arena, uint64_t bytes, Block** out, tenon_err* err) {
  bool small = bytes <= kSmallRequest;
  uint64_t size = segment_bytes(bytes);
  // Segments that nobody uses are exchanged for one of their joint size: reserved grows only by
  // what is missing. Of several there remains one, so the exchanges come to an end. Not while work
  // is being recorded: it may not free.
  bool recording = device_.recordings.load(std::memory_order_relaxed) > 0;
  if (!small && !device_.opaque_memory && !device_.pool && !recording)
    size = std::max(size, release_unused(&arena));
  void* data;
  tenon_err said;
  tenon_status status = raw_allocate(size, arena.stream, &data, &said);
  if (status == TENON_OUT_OF_MEMORY) {
    ++totals_.retries;
    poll_pending(true);
    if (Block* block = (small ? arena.small : arena.large).find(bytes)) {
      *out = block;
      return TENON_OK;
    }
    trim_locked();
    size = device_.opaque_memory || device_.pool ? bytes : round_up(bytes, kRetryGranule);
    said = {};
    status = raw_allocate(size, arena.stream, &data, &said);
    if (status == TENON_OUT_OF_MEMORY) return fail_out_of_memory(bytes, said.text, err);
  }
  if (status != TENON_OK) return fail(err, status, "%s", said.text.c_str());
  *out = add_segment(arena, data, size, small);
  return TENON_OK;
}

const char* DeviceMemory::raw_call() const { return device_.pool ? "pool_alloc" : "alloc"; }

uint64_t DeviceMemory::raw_align(uint64_t bytes) const {
  return device_.host_memory && !device_.pool && bytes >= kLargeAlign ? kLargeAlign : granule_;
}

tenon_status DeviceMemory::raw_allocate(uint64_t bytes, tenon_stream stream, void** out,
                                        tenon_err* err) {
  tenon_alloc_request request = {.struct_size = sizeof request,
                                 .kind = TENON_ALLOC_DEVICE,
                                 .must_understand = 0,
                                 .bytes = bytes,
                                 .align = raw_align(bytes),
                                 .stream = request_stream(stream)};
  void* data = nullptr;
  auto alloc = device_.pool ? device_.pool->pool_alloc : device_.api->alloc;
  TENON_TRY(device_result(device_, raw_call(), alloc(device_.handle, &request, &data, err), err));
  TENON_TRY(check_raw(data, bytes, stream, err));
  ++totals_.raw_allocations;
  *out = data;
  return TENON_OK;
}

void DeviceMemory::raw_free(void* data, uint64_t bytes, tenon_stream stream) noexcept {
  auto free = device_.pool ? device_.pool->pool_free : device_.api->free;
  free(device_.handle, data, bytes, stream);
}

// What a plugin calls success is looked at before it is believed.
tenon_status DeviceMemory::check_raw(void* data, uint64_t bytes, tenon_stream stream,
                                     tenon_err* err) {
  if (!data) {
    return fail(err, TENON_INTERNAL,
                "%s > %s: returned OK and no memory; this is a bug in the plugin", device_.name,
                raw_call());
  }
  if (device_.opaque_memory) return TENON_OK;
  auto address = reinterpret_cast<uintptr_t>(data);
  // Of a pool there are as many segments as blocks: too many to look at each time.
  bool overlaps = device_.pool && used_.find(data);
  for (const Segment* segment = device_.pool ? nullptr : segments_; segment;
       segment = segment->next) {
    auto other = reinterpret_cast<uintptr_t>(segment->data);
    overlaps |= address < other + segment->bytes && other < address + bytes;
  }
  if (overlaps)
    return fail(
        err, TENON_INTERNAL,
        "%s > %s: returned %p, which overlaps memory it has given out before; this is a bug "
        "in the plugin",
        device_.name, raw_call(), data);
  if (address % raw_align(bytes) == 0) return TENON_OK;
  raw_free(data, bytes, stream);
  return fail(err, TENON_INTERNAL,
              "%s > %s: expected memory aligned to %llu, got %p; this is a bug in the plugin",
              device_.name, raw_call(), static_cast<unsigned long long>(raw_align(bytes)), data);
}

Block* DeviceMemory::add_segment(Arena& arena, void* data, uint64_t bytes, bool small) {
  std::unique_ptr<Segment> segment;
  Block* block;
  try {
    segment = std::make_unique<Segment>();
    block = new_block();
  } catch (...) {
    raw_free(data, bytes, arena.stream);
    throw;
  }
  *segment = {data, bytes, &arena, small, block, nullptr, segments_};
  *block = {.data = data, .bytes = bytes, .segment = segment.get()};
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
  raw_free(segment->data, segment->bytes, segment->arena->stream);
  delete segment;
}

// NULL: all arenas' segments; else those of one that serve large requests.
uint64_t DeviceMemory::release_unused(const Arena* large) noexcept {
  uint64_t before = totals_.reserved;
  for (Segment *segment = segments_, *next; segment; segment = next) {
    next = segment->next;
    if (large && (segment->small || segment->arena != large)) continue;
    if (segment->first->state == BlockState::kFree && segment->first->bytes == segment->bytes)
      release_segment(segment);
  }
  return before - totals_.reserved;
}

uint64_t DeviceMemory::trim_locked() noexcept {
  poll_pending(true);
  uint64_t released = release_unused(nullptr), pooled = 0;
  tenon_err ignored;
  if (device_.pool) device_.pool->pool_trim(device_.handle, 0, &pooled, &ignored);
  return released + pooled;
}

uint64_t DeviceMemory::trim() noexcept {
  if (device_.lost) return 0;
  std::lock_guard lock(mutex_);
  return trim_locked();
}

}  // namespace tenon::core
