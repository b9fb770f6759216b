// SPDX-License-Identifier: Apache-2.0
// Segments of raw device memory: when they are allocated, their sizes, and when they are released.
#include <algorithm>
#include <bit>

#include "kernel_core/memory/bytes.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/memory/poison.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kLargeAlign = 2 * kMiB;  // lets the host's memory come in huge pages
constexpr uint64_t kGrowth = 4 * kMiB;

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
  if (small && kept_bytes_ > 0) {
    give_kept_chains();
    if ((*out = arena.small.find(bytes))) return TENON_OK;
  }
  uint64_t size = segment_bytes(bytes);
  // Unused segments are exchanged for one of their joint size: reserved grows only by
  // what is missing. Of several there remains one, so the exchanges come to an end. Not while work
  // is being recorded: it may not free.
  bool recording = device_.recordings.load(std::memory_order_relaxed) > 0;
  if (growing_ && growing_->arena == &arena && !small) {  // what is missing behind its last block
    const Block* last = last_block(*growing_);
    size = round_up(bytes - (last->state == BlockState::kFree ? last->bytes : 0),
                    std::max(kGrowth, std::bit_floor(totals_.reserved) / 64));
  } else if (!small && !device_.opaque_memory && !device_.pool && !recording) {
    size = std::max(size, release_unused(&arena));
  }
  void* data;
  tenon_err said;
  tenon_status status = raw_allocate(size, arena.stream, &data, &said);
  if (status == TENON_OUT_OF_MEMORY) {
    ++totals_.retries;
    poll_pending(true);
    if ((*out = (small ? arena.small : arena.large).find(bytes))) return TENON_OK;
    trim_locked();
    size = bytes;
    said = {};
    status = raw_allocate(size, arena.stream, &data, &said);
    if (status == TENON_OUT_OF_MEMORY) return fail_out_of_memory(bytes, said.text, err);
  }
  if (status != TENON_OK) return fail(err, status, "%s", said.text.c_str());
  *out = add_memory(arena, data, size, small);
  return (*out)->bytes < bytes ? grow(arena, bytes, out, err) : TENON_OK;  // not in place
}

const char* DeviceMemory::raw_call() const { return device_.pool ? "pool_alloc" : "alloc"; }

uint64_t DeviceMemory::raw_align(uint64_t bytes) const {
  return device_.host_memory && !device_.pool && bytes >= kLargeAlign ? kLargeAlign : granule_;
}

tenon_status DeviceMemory::raw_allocate(uint64_t bytes, tenon_stream stream, void** out,
                                        tenon_err* err) {
  // On a stream that is being recorded a plugin might record the allocation too.
  tenon_alloc_request request = {.struct_size = sizeof request,
                                 .kind = TENON_ALLOC_DEVICE,
                                 .must_understand = 0,
                                 .bytes = bytes,
                                 .align = raw_align(bytes),
                                 .stream = recording_of(stream) ? nullptr : stream};
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
  if (!data)
    return fail(err, TENON_INTERNAL,
                "%s > %s: returned OK and no memory; this is a bug in the plugin", device_.name,
                raw_call());
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

// The arena's segment that ends where `data` begins and may be used as one with it; NULL: none.
Segment* DeviceMemory::find_below(const Arena& arena, const void* data) {
  bool joined = device_.cache_slot.load(std::memory_order_relaxed) != 0 ||
                device_.api->features & TENON_DEVICE_FEATURE_JOINED_MEMORY;
  if (!joined || device_.opaque_memory || device_.pool) return nullptr;
  Segment* segment = segments_;
  while (segment && (segment->small || segment->arena != &arena || segment->end() != data))
    segment = segment->next;
  return segment;
}

// One more piece; returns the free block that it is or is part of.
Block* DeviceMemory::add_memory(Arena& arena, void* data, uint64_t bytes, bool small) try {
  Segment* segment = small ? nullptr : find_below(arena, data);
  std::unique_ptr<Segment> fresh;
  if (!segment) fresh = std::make_unique<Segment>(Segment{data, bytes, &arena, small});
  if (segment) segment->seams.reserve(segment->seams.size() + 1);
  Block* block = new_block();  // nothing below throws
  *block = {.data = data, .bytes = bytes, .segment = segment ? segment : fresh.get()};
  if (!small) growing_ = segment;
  if (segment) {
    block->previous = last_block(*segment);
    block->previous->next = block;
    segment->seams.push_back(data);
    segment->bytes += bytes;
  } else {
    fresh->first = block;
    add_segment(fresh.release());
  }
  totals_.reserved += bytes;
  totals_.peak_reserved = std::max(totals_.peak_reserved, totals_.reserved);
  return join_free(block);
} catch (...) {
  raw_free(data, bytes, arena.stream);
  throw;
}

void DeviceMemory::add_segment(Segment* segment) noexcept {
  segment->previous = nullptr;
  segment->next = segments_;
  if (segments_) segments_->previous = segment;
  segments_ = segment;
  ++totals_.segments;
}

// What begins at a seam in or beside a free block becomes a segment of its own; returns its first
// block.
Block* DeviceMemory::split_segment(Block* block, void* seam) {
  Segment* lower = block->segment;
  auto found = std::find(lower->seams.begin(), lower->seams.end(), seam);
  auto upper = std::make_unique<Segment>(*lower);
  upper->seams.assign(found + 1, lower->seams.end());
  upper->data = seam;
  upper->bytes = bytes_between(seam, lower->end());
  Block* rest = seam == block->data    ? block
                : seam == block->end() ? block->next
                                       : cut_behind(block, bytes_between(block->data, seam));
  // Nothing below throws.
  upper->first = rest;
  lower->seams.erase(found, lower->seams.end());
  lower->bytes -= upper->bytes;
  rest->previous->next = nullptr;
  rest->previous = nullptr;
  for (Block* moved = rest; moved; moved = moved->next) moved->segment = upper.get();
  add_segment(upper.release());
  return rest;
}

// Give pieces that lie wholly in a free block back to the plugin, the highest first: all of them,
// or what is enough for `bytes`.
void DeviceMemory::release_pieces(Block* block, uint64_t bytes) noexcept try {
  void *from = nullptr, *to = nullptr;
  auto for_each_seam = [&](auto&& see) {
    auto look = [&](void* at) { at >= block->data&& at <= block->end() ? see(at) : void(); };
    look(block->segment->data);
    for (void* seam : block->segment->seams) look(seam);
    look(block->segment->end());
  };
  for_each_seam([&](void* seam) { to = seam; });
  for_each_seam(
      [&](void* seam) { from = !from || bytes_between(seam, to) >= bytes ? seam : from; });
  if (from == to) return;
  growing_ = nullptr;
  if (from != block->segment->data) block = split_segment(block, from);
  if (to != block->segment->end()) split_segment(block, to);
  release_segment(block->segment);
} catch (const std::bad_alloc&) {
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
  if (device_.host_memory) unpoison(segment->data, segment->bytes);
  void* piece = segment->data;
  auto free_up_to = [&](void* end) {
    raw_free(piece, bytes_between(piece, end), segment->arena->stream);
    ++totals_.raw_frees;
    piece = end;
  };
  for (void* seam : segment->seams) free_up_to(seam);
  free_up_to(segment->end());
  delete segment;
}

// NULL: all arenas' segments; else those of one that serve large requests.
uint64_t DeviceMemory::release_unused(const Arena* large) noexcept {
  uint64_t before = totals_.reserved;
  for (Segment *segment = segments_, *next; segment; segment = next) {
    next = segment->next;
    if (large && (segment->small || segment->arena != large)) continue;
    for (Block *block = segment->first, *behind; block; block = behind) {
      behind = block->next;
      if (block->state == BlockState::kFree) release_pieces(block, UINT64_MAX);
    }
  }
  return before - totals_.reserved;
}

uint64_t DeviceMemory::trim_locked() noexcept {
  give_kept_chains();
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
