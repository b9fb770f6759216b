// SPDX-License-Identifier: Apache-2.0
// The shared half of the allocator: one per device, under one lock. Raw memory comes in segments,
// which are cut into blocks and joined again; blocks belong to the stream they were allocated on.
// Memory that a plugin gives end to end is one segment, which grows in place, if it is the host's
// or the device says that it may be used so. Where the plugin has a pool of its own, each block is
// a segment and none is kept.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel_core/memory/block_table.hpp"
#include "kernel_core/memory/free_bins.hpp"
#include "kernel_core/memory/size_class.hpp"
#include "kernel_core/memory/usage.hpp"
#include "kernel_core/runtime/device.hpp"

namespace tenon {
class JsonWriter;
}

namespace tenon::core {

inline constexpr uint64_t kSmallRequest = uint64_t{1} << 20;

// Free blocks of one stream.
struct Arena {
  tenon_stream stream;
  FreeBins small;
  FreeBins large;
};

// The first bytes of a chain of small blocks that is kept.
struct KeptChain {
  void* next_block;
  KeptChain* next_chain;
  uint32_t count;
};

// Memory kept for recorded work: from begin_hold to release_hold.
struct Hold {
  uint64_t number;
  tenon_stream stream;
  bool is_recording = true;  // until end_hold: work on the stream adds to it
  bool is_incomplete = false;
  Block* blocks = nullptr;  // that were given back, by list_next
};

// What the device holds, at one moment.
struct MemorySummary {
  uint64_t reserved = 0;  // got from the plugin
  uint64_t handed = 0;    // of it, with users and in threads' caches
  uint64_t pending = 0;   // of it, waiting for other streams
  uint64_t largest_free = 0;
  uint64_t peak_reserved = 0;
  uint64_t segments = 0;
  uint64_t raw_allocations = 0;  // calls of the plugin's alloc that succeeded
  uint64_t raw_frees = 0;
  uint64_t retries = 0;  // times that memory ran out and the cache was trimmed

  uint64_t free() const { return reserved - handed - pending; }
};

class DeviceMemory final : public DeviceResource {
 public:
  // Made on first use; lives as long as the Device, which is for ever.
  static DeviceMemory& of(Device& device);
  static bool handle_forks();

  tenon_status allocate(uint64_t bytes, tenon_stream stream, void** out, tenon_err* err);
  void deallocate(void* data) noexcept;

  // Blocks of host memory of one size class, each with a pointer to the next in its first bytes;
  // and how many. Fails only if not even one can be had. What comes back is kept as it is for the
  // next who asks, until memory is short.
  tenon_status allocate_chain(uint32_t size_class, void** chain, uint32_t* count, tenon_err* err);
  void deallocate_chain(uint32_t size_class, void* chain, uint32_t count) noexcept;

  void record_use(void* data, tenon_stream stream) noexcept;

  // Keep what work on `stream` uses from here to end_hold until release_hold.
  tenon_status begin_hold(tenon_stream stream, uint64_t* number, tenon_err* err);
  tenon_status end_hold(uint64_t number, tenon_err* err);
  void release_hold(uint64_t number) noexcept;

  // The plugin's allocation that `data` lies in.
  tenon_status find_origin(const void* data, void** memory, uint64_t* bytes, tenon_err* err);

  // Take back what the calling thread keeps for itself and other threads' large blocks, and ask
  // them for the rest. Returns whether anything came back.
  bool recall() noexcept;

  // Wait for pending blocks and give every unused segment back. Returns the bytes released.
  uint64_t trim() noexcept;

  // Tensors in pinned memory of the host that live.
  void count_pinned(int64_t change) { pinned_.fetch_add(change, std::memory_order_relaxed); }
  void list_leases(std::string& text) override;
  void release_all() override;
  void forget_stream(tenon_stream stream) override;
  void reopened() override;

  MemorySummary summary();
  // JSON array of every segment with its blocks.
  void describe_segments(JsonWriter& json);

  // How often blocks have become free or ceased to be. Unchanged: the same request would be given
  // the same block.
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

  Device& device() { return device_; }
  Usage& usage() { return usage_; }

 private:
  explicit DeviceMemory(Device& device);

  // All below: with the lock held.
  uint64_t round_request(uint64_t bytes) const;
  uint64_t segment_bytes(uint64_t bytes) const;
  FreeBins& bins_of(const Segment& segment);
  Arena& arena_of(tenon_stream stream);
  tenon_status take_block(uint64_t bytes, tenon_stream stream, Block** out, tenon_err* err);
  Block* use_block(Block* block, uint64_t bytes);
  Block* cut_behind(Block* block, uint64_t bytes);
  void give_block(Block* block) noexcept;
  void give_chain(void* chain) noexcept;
  void give_kept_chains() noexcept;
  void absorb_next(Block* block) noexcept;
  Block* join_free(Block* block) noexcept;
  void free_block(Block* block) noexcept;

  tenon_status grow(Arena& arena, uint64_t bytes, Block** out, tenon_err* err);
  tenon_status raw_allocate(uint64_t bytes, tenon_stream stream, void** out, tenon_err* err);
  const char* raw_call() const;
  uint64_t raw_align(uint64_t bytes) const;
  void raw_free(void* data, uint64_t bytes, tenon_stream stream) noexcept;
  tenon_status check_raw(void* data, uint64_t bytes, tenon_stream stream, tenon_err* err);
  Segment* find_below(const Arena& arena, const void* data);
  void add_segment(Segment* segment) noexcept;
  Block* add_memory(Arena& arena, void* data, uint64_t bytes, bool small);
  Block* split_segment(Block* block, void* seam);
  void release_pieces(Block* block, uint64_t bytes) noexcept;
  void release_segment(Segment* segment) noexcept;
  uint64_t release_unused(const Arena* large) noexcept;
  uint64_t trim_locked() noexcept;

  tenon_status fail_out_of_memory(uint64_t bytes, const std::string& reason, tenon_err* err);
  MemorySummary summary_locked() const;

  bool add_use(Block* block, tenon_stream stream, uint64_t hold) noexcept;
  void drop_uses(tenon_stream stream) noexcept;
  Hold* find_hold(uint64_t number) noexcept;
  Hold* recording_of(tenon_stream stream) noexcept;
  void note_use(Block* block, Hold& hold) noexcept;
  void park(Block* block) noexcept;

  void wait_for(tenon_stream stream) noexcept;
  bool record_events(Block* block) noexcept;
  bool events_passed(Block* block, bool wait) noexcept;
  void poll_pending(bool wait) noexcept;

  void note_change() { changes_.store(changes() + 1, std::memory_order_relaxed); }
  Block* new_block();
  void drop_block(Block* block);

  static DeviceMemory* all_;
  DeviceMemory* next_ = nullptr;
  Device& device_;
  Usage usage_;
  std::atomic<int64_t> pinned_{0};
  std::mutex mutex_;
  int8_t cache_slot_ = 0;     // kept for ever once it was given
  uint64_t granule_ = 0;      // block sizes are multiples of this
  uint64_t cache_limit_ = 0;  // unused bytes above which free segments go back at once
  std::vector<std::unique_ptr<Arena>> arenas_;
  BlockTable used_;
  KeptChain* kept_chains_[kClassCount] = {};
  uint64_t kept_bytes_ = 0;  // in them
  Segment* segments_ = nullptr;
  Segment* growing_ = nullptr;     // its memory grew in place the last time; NULL: none did
  Block* pending_ = nullptr;       // by list_next
  Block* spare_blocks_ = nullptr;  // by list_next
  std::vector<tenon_event> spare_events_;
  std::vector<Hold> holds_;
  uint64_t last_hold_ = 0;
  std::atomic<uint64_t> changes_{0};
  MemorySummary totals_;
};

}  // namespace tenon::core
