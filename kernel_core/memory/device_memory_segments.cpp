// SPDX-License-Identifier: Apache-2.0
// Raw memory: when it is asked for, how much at a time, when it goes back.
#include "kernel_core/memory/bytes.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/poison.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kRetryGranule = 512;
constexpr uint64_t kLargeAlign = 2 * kMiB;  // lets the host's memory come in huge pages

}  // namespace

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
    size = device_.opaque_memory ? bytes : round_up(bytes, kRetryGranule);
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

}  // namespace tenon::core
