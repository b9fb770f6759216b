// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <tenon/parallel.hpp>

#include <tenon/tensor.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>

namespace tenon::cpu {
namespace {

// Blocks of this size and more are mapped on their own, on huge pages where the system has them: fewer
// page faults and TLB misses. The host caches blocks, so the system call is rare.
constexpr uint64_t kHugePage = uint64_t{2} << 20;

// A block that is split over threads when it is moved.
constexpr int64_t kCopyGrain = 1 << 20;

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) & ~(unit - 1); }

bool is_mapped(uint64_t bytes) { return bytes >= kHugePage; }

constexpr int kMapping = MAP_PRIVATE | MAP_ANONYMOUS;

// Where the next block of more than one huge page is mapped: behind the block before, so that the
// host can join the two into one growing piece of memory. Blocks of one huge page hold small
// allocations for a long time and are mapped elsewhere.
std::atomic<uintptr_t> growing_end{0};

// Finds an address with free address space behind it, as much as the memory of any machine. The
// space is not reserved, so another mapping may take it. Returns 0 if the address space is limited.
uintptr_t find_room() {
  constexpr uint64_t kRoom = uint64_t{1} << 40;
  void* room = mmap(nullptr, kRoom, PROT_NONE, kMapping | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return 0;
  munmap(room, kRoom);
  return round_up(reinterpret_cast<uintptr_t>(room), kHugePage);
}

// Map `length` bytes exactly at `address`; NULL: that is not possible.
void* map_at(uintptr_t address, uint64_t length) {
  void* wanted = reinterpret_cast<void*>(address);
  void* memory =
      mmap(wanted, length, PROT_READ | PROT_WRITE, kMapping | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == wanted) return memory;
  if (memory != MAP_FAILED) munmap(memory, length);  // a kernel that takes the address for a wish
  return nullptr;
}

// `length` bytes behind those mapped before, or where there is room for more to follow; NULL: neither.
void* map_growing(uint64_t length) {
  uintptr_t address = growing_end.load(std::memory_order_relaxed);
  void* memory = address ? map_at(address, length) : nullptr;
  if (!memory) {
    address = find_room();
    memory = address ? map_at(address, length) : nullptr;
  }
  if (memory) growing_end.store(address + length, std::memory_order_relaxed);
  return memory;
}

// Anywhere: reserve a huge page more than needed and return what the alignment leaves over.
void* map_aligned(uint64_t length) {
  void* reserved = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, kMapping, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t aligned = round_up(begin, kHugePage);
  if (aligned > begin) munmap(reserved, aligned - begin);
  const uintptr_t end = begin + length + kHugePage;
  if (end > aligned + length) {
    munmap(reinterpret_cast<void*>(aligned + length), end - aligned - length);
  }
  return reinterpret_cast<void*>(aligned);
}

void* map_huge(uint64_t bytes) {
  const uint64_t length = round_up(bytes, kHugePage);
  void* memory = length > kHugePage ? map_growing(length) : nullptr;
  if (!memory) memory = map_aligned(length);
  if (memory) madvise(memory, length, MADV_HUGEPAGE);  // a wish; the memory works without
  return memory;
}

void unmap_huge(void* memory, uint64_t bytes) {
  const uint64_t length = round_up(bytes, kHugePage);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  uintptr_t end = begin + length;
  munmap(memory, length);
  growing_end.compare_exchange_strong(end, begin, std::memory_order_relaxed);  // what was last
}

// Calls f(begin, end) in parallel on pieces of [0, bytes).
template <class F>
void in_pieces(uint64_t bytes, F&& f) {
  const auto total = static_cast<int64_t>(bytes);
  if (total < 2 * kCopyGrain) return f(0, total);
  using Body = std::remove_reference_t<F>;
  host->parallel_for(
      0, total, kCopyGrain,
      [](void* body, int64_t begin, int64_t end) { (*static_cast<Body*>(body))(begin, end); }, &f);
}

}  // namespace

tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  const uint64_t bytes = request->bytes;
  void* memory = nullptr;
  if (bytes > static_cast<uint64_t>(INT64_MAX) - 2 * kHugePage) {
    memory = nullptr;
  } else if (is_mapped(bytes) && request->align <= kHugePage) {
    memory = map_huge(bytes);
  } else {
    // Both kinds must be told apart by size alone when they are freed.
    const uint64_t align = std::max<uint64_t>(request->align, 64);
    if (is_mapped(bytes)) {
      return fail(err, TENON_UNSUPPORTED,
                  "expected an alignment of at most 2 MiB, got " + std::to_string(request->align));
    }
    memory = std::aligned_alloc(align, round_up(bytes, align));
  }
  if (!memory) {
    return fail(err, TENON_OUT_OF_MEMORY,
                "the system has no " + std::to_string(bytes) + " bytes of memory left");
  }
  *out = memory;
  return TENON_OK;
}

void free(tenon_device, void* memory, uint64_t bytes, tenon_stream) {
  if (!memory) return;
  if (is_mapped(bytes)) {
    unmap_huge(memory, bytes);
  } else {
    std::free(memory);
  }
}

tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->bytes == 0) return TENON_OK;
  char* to = static_cast<char*>(request->dst) + request->dst_offset;
  const char* from = static_cast<const char*>(request->src) + request->src_offset;
  const bool overlap = to < from + request->bytes && from < to + request->bytes;
  if (overlap) {
    std::memmove(to, from, request->bytes);
  } else {
    in_pieces(request->bytes, [=](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
  }
  return TENON_OK;
}

tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err* err) {
  if (bytes == 0) return TENON_OK;
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) ||
      bytes % pattern_bytes) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "expected a pattern of 1, 2, 4, 8 or 16 bytes that divides the range, got " +
                    std::to_string(pattern_bytes) + " bytes for " + std::to_string(bytes));
  }
  char* to = static_cast<char*>(dst) + offset;
  const char* unit = static_cast<const char*>(pattern);
  const bool uniform =
      std::all_of(unit, unit + pattern_bytes, [&](char c) { return c == unit[0]; });
  if (uniform) {
    in_pieces(bytes, [=](int64_t begin, int64_t end) {
      std::memset(to + begin, unit[0], static_cast<size_t>(end - begin));
    });
    return TENON_OK;
  }
  // A piece may begin anywhere: its first 16 bytes are the pattern, rotated to where the piece
  // begins.
  in_pieces(bytes, [=](int64_t begin, int64_t end) {
    char block[16];
    for (int i = 0; i < 16; ++i) block[i] = unit[(begin + i) % pattern_bytes];
    int64_t at = begin;
    for (; at + 16 <= end; at += 16) std::memcpy(to + at, block, 16);
    std::memcpy(to + at, block, static_cast<size_t>(end - at));
  });
  return TENON_OK;
}

}  // namespace tenon::cpu
