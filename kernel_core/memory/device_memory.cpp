// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/device_memory.hpp"

#include <cstring>
#include <utility>

#include "kernel_core/memory/bytes.hpp"
#include "kernel_core/memory/poison.hpp"
#include "kernel_core/memory/thread_cache.hpp"
#include "kernel_core/runtime/fork.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kHostGranule = 64;
constexpr uint64_t kDeviceGranule = 512;
constexpr uint64_t kMaxRequest = uint64_t{1} << 47;

// Unused host memory is of use to other programs, a device's is not.
uint64_t default_cache_limit(const Device& device) {
  if (device.pool) return 0;
  if (!device.host_memory) return UINT64_MAX;
  return device.info.memory_bytes == 0 ? 1024 * kMiB
                                       : std::max(256 * kMiB, device.info.memory_bytes / 4);
}

// Guards the list of all memories, which only grows.
constinit std::mutex new_memory_mutex;

}  // namespace

DeviceMemory* DeviceMemory::all_ = nullptr;

DeviceMemory::DeviceMemory(Device& device) : device_(device) { reopened(); }

// Every memory's locks at once; those of two memories are held together nowhere else.
bool DeviceMemory::handle_forks() {
  lock_across_fork(ForkOrder::kNewMemory, new_memory_mutex);
  auto before = [](void*) {
    for (auto* memory = all_; memory; memory = memory->next_)
      memory->usage_.mutex().lock(), memory->mutex_.lock();
  };
  auto after = [](void*, bool) {
    for (auto* memory = all_; memory; memory = memory->next_)
      memory->mutex_.unlock(), memory->usage_.mutex().unlock();
  };
  add_fork_handler({ForkOrder::kMemory, before, after, nullptr});
  return true;
}
[[maybe_unused]] static const bool handles_forks = DeviceMemory::handle_forks();

void DeviceMemory::reopened() {
  granule_ = device_.host_memory ? kHostGranule : kDeviceGranule;
  cache_limit_ = default_cache_limit(device_);
  bool cached = device_.host_memory && !device_.async && !device_.pool;
  if (cached && cache_slot_ == 0) cache_slot_ = new_cache_slot();
  device_.cache_slot.store(cached ? cache_slot_ : int8_t{0}, std::memory_order_relaxed);
}

DeviceMemory& DeviceMemory::of(Device& device) {
  if (auto* known = device.memory.load(std::memory_order_acquire)) [[likely]]
    return *static_cast<DeviceMemory*>(known);
  std::lock_guard lock(new_memory_mutex);
  if (auto* known = device.memory.load(std::memory_order_relaxed))
    return *static_cast<DeviceMemory*>(known);
  auto* memory = new DeviceMemory(device);
  memory->next_ = all_;
  all_ = memory;
  device.memory.store(memory, std::memory_order_release);
  return *memory;
}

// ---- requests ----

tenon_status DeviceMemory::allocate(uint64_t bytes, tenon_stream stream, void** out,
                                    tenon_err* err) try {
  if (device_.lost)
    return fail(err, TENON_UNAVAILABLE, "%s was opened before this process was forked",
                device_.name);
  std::lock_guard lock(mutex_);
  Block* block;
  TENON_TRY(take_block(bytes, stream, &block, err));
  if (Hold* hold = recording_of(stream)) note_use(block, *hold);
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

tenon_status DeviceMemory::allocate_chain(uint32_t size_class, void** chain, uint32_t* count,
                                          tenon_err* err) try {
  std::lock_guard lock(mutex_);
  *chain = nullptr;
  *count = 0;
  if (KeptChain* kept = kept_chains_[size_class]) {
    kept_chains_[size_class] = kept->next_chain;
    kept_bytes_ -= kept->count * class_bytes(size_class);
    *chain = kept;
    *count = kept->count;
    return TENON_OK;
  }
  for (; *count < class_batch(size_class); ++*count) {
    Block* block;
    tenon_status status =
        take_block(class_bytes(size_class), nullptr, &block, *count == 0 ? err : nullptr);
    if (status != TENON_OK) return *count == 0 ? status : TENON_OK;
    unpoison(block->data, sizeof(void*));
    std::memcpy(block->data, chain, sizeof(void*));
    *chain = block->data;
  }
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return *count == 0 ? fail_host_memory(err) : TENON_OK;
}

void DeviceMemory::deallocate_chain(uint32_t size_class, void* chain, uint32_t count) noexcept {
  if (!chain) return;
  std::lock_guard lock(mutex_);
  uint64_t bytes = count * class_bytes(size_class);
  if (kept_bytes_ + bytes > cache_limit_) return give_chain(chain);
  unpoison(chain, sizeof(KeptChain));
  auto* kept = static_cast<KeptChain*>(chain);
  kept->count = count;
  kept->next_chain = std::exchange(kept_chains_[size_class], kept);
  kept_bytes_ += bytes;
}

void DeviceMemory::give_kept_chains() noexcept {
  for (KeptChain*& first : kept_chains_)
    while (KeptChain* chain = first) {
      first = chain->next_chain;
      give_chain(chain);
    }
  kept_bytes_ = 0;
}

void DeviceMemory::give_chain(void* chain) noexcept {
  while (chain) {
    void* data = chain;
    std::memcpy(&chain, data, sizeof(void*));
    if (Block* block = used_.take(data)) give_block(block);
  }
}

bool DeviceMemory::recall() noexcept {
  bool is_any = false;
  usage_.for_each(
      [&](ThreadUsage& thread) { is_any |= static_cast<ThreadCache&>(thread).recall(); });
  ThreadCache* own = find_thread_cache(device_);
  if (own) is_any |= own->drain();
  return is_any;
}

// ---- blocks ----

uint64_t DeviceMemory::round_request(uint64_t bytes) const {
  if (device_.pool) return bytes;
  // A handle cannot be cut, so blocks of like size are made equal instead.
  if (device_.opaque_memory) return FreeBins::round_to_bin(round_up(bytes, granule_));
  return round_up(bytes, granule_);
}

FreeBins& DeviceMemory::bins_of(const Segment& segment) {
  return segment.small ? segment.arena->small : segment.arena->large;
}

Arena& DeviceMemory::arena_of(tenon_stream stream) {
  for (auto& arena : arenas_)
    if (arena->stream == stream) return *arena;
  Fit large = device_.opaque_memory ? Fit::kClose : Fit::kLowest;
  arenas_.push_back(std::make_unique<Arena>(Arena{stream, FreeBins(Fit::kClose), FreeBins(large)}));
  return *arenas_.back();
}

tenon_status DeviceMemory::take_block(uint64_t bytes, tenon_stream stream, Block** out,
                                      tenon_err* err) {
  if (bytes > kMaxRequest) return fail_out_of_memory(bytes, "no device has that much", err);
  bytes = round_request(bytes);
  if (pending_) poll_pending(false);
  used_.reserve_one();
  Arena& arena = arena_of(stream);
  Block* block = (bytes <= kSmallRequest ? arena.small : arena.large).find(bytes);
  // A handle cannot be split; it may exceed the request by a quarter at most.
  if (block && device_.opaque_memory && block->bytes > bytes + bytes / 4) block = nullptr;
  if (!block) TENON_TRY(grow(arena, bytes, &block, err));
  *out = use_block(block, bytes);
  return TENON_OK;
}

// Take a free block into use, leaving what is over as a new free block.
Block* DeviceMemory::use_block(Block* block, uint64_t bytes) {
  if (block->bytes > bytes && !device_.opaque_memory) cut_behind(block, bytes);
  bins_of(*block->segment).remove(block);
  block->state = BlockState::kUsed;
  note_change();
  used_.insert(block);
  totals_.handed += block->bytes;
  if (device_.host_memory) unpoison(block->data, block->bytes);
  return block;
}

// Cuts a free block in two; returns the second.
Block* DeviceMemory::cut_behind(Block* block, uint64_t bytes) {
  Block* rest = new_block();  // may throw: before anything has changed
  FreeBins& bins = bins_of(*block->segment);
  bins.remove(block);
  *rest = {.data = static_cast<char*>(block->data) + bytes,
           .bytes = block->bytes - bytes,
           .segment = block->segment,
           .previous = block,
           .next = block->next};
  if (rest->next) rest->next->previous = rest;
  block->next = rest;
  block->bytes = bytes;
  bins.insert(block);
  bins.insert(rest);
  return rest;
}

// A block comes back from its user; it has left the table.
void DeviceMemory::give_block(Block* block) noexcept {
  totals_.handed -= block->bytes;
  if (!block->uses || !record_events(block)) return free_block(block);
  park(block);
}

// Joins a free block with the one behind it, whose entry goes.
void DeviceMemory::absorb_next(Block* block) noexcept {
  Block* next = block->next;
  block->bytes += next->bytes;
  block->next = next->next;
  if (block->next) block->next->previous = block;
  drop_block(next);
}

// Merges an unused block that is in no bin with its free neighbours, and puts the result into a
// bin.
Block* DeviceMemory::join_free(Block* block) noexcept {
  FreeBins& bins = bins_of(*block->segment);
  if (device_.host_memory) poison(block->data, block->bytes);
  block->state = BlockState::kFree;
  note_change();
  if (Block* next = block->next; next && next->state == BlockState::kFree) {
    bins.remove(next);
    absorb_next(block);
  }
  if (Block* previous = block->previous; previous && previous->state == BlockState::kFree) {
    bins.remove(previous);
    absorb_next(previous);
    block = previous;
  }
  bins.insert(block);
  return block;
}

void DeviceMemory::free_block(Block* block) noexcept {
  block = join_free(block);
  if (totals_.free() > cache_limit_) release_pieces(block, totals_.free() - cache_limit_);
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

// ---- the end of a device ----

void DeviceMemory::list_leases(std::string& text) {
  UsageTotals totals = usage_.totals();
  auto separator = [&] { return text.empty() ? "" : ", "; };
  if (totals.allocations != totals.frees)
    text += separator() + std::to_string(totals.allocations - totals.frees) +
            " memory block(s) of together " + byte_text(static_cast<uint64_t>(totals.current));
  if (const int64_t pinned = pinned_.load(std::memory_order_relaxed))
    text += separator() + std::to_string(pinned) + " tensor(s) in pinned memory of the host";
  std::lock_guard lock(mutex_);
  if (!holds_.empty())
    text += separator() + std::to_string(holds_.size()) + " hold(s) of memory for recorded work";
}

void DeviceMemory::release_all() {
  // No thread uses the device any more.
  usage_.for_each([](ThreadUsage& thread) { static_cast<ThreadCache&>(thread).drain(); });
  std::lock_guard lock(mutex_);
  trim_locked();
  for (tenon_event event : spare_events_) device_.async->event_destroy(device_.handle, event);
  spare_events_.clear();
}

}  // namespace tenon::core
