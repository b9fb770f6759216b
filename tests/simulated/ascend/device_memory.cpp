// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#include "../failures.hpp"

namespace simulated::ascend {
namespace {

constexpr size_t kAlignment = 512;  // of aclrtMalloc
constexpr size_t kPadding = 32;     // which aclrtMalloc adds behind the request

struct Arena {
  size_t total = environment("SIMULATED_" SIMULATED_CHIP "_MEMORY_MB", 4096) << 20;
  char* device = nullptr;  // PROT_NONE
  char* bytes = nullptr;
  std::mutex mutex;
  std::map<size_t, size_t> used;  // offset to size
  size_t in_use = 0;

  Arena() {
    const int file = memfd_create("simulated_ascend", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(total)) != 0) return;
    void* shown =
        mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* hidden =
        mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    ::close(file);
    if (shown == MAP_FAILED || hidden == MAP_FAILED) return;
    device = static_cast<char*>(shown);
    bytes = static_cast<char*>(hidden);
  }
};

Arena& arena(int device) {
  static auto* const all =
      new Arena[static_cast<size_t>(device_count())];  // outlives exit handlers
  return all[device];
}

// nullptr: it is no chip's.
Arena* arena_of(const void* address) {
  const auto* at = static_cast<const char*>(address);
  for (int device = 0; device < device_count(); ++device) {
    Arena& a = arena(device);
    if (a.device && at >= a.device && at < a.device + a.total) return &a;
  }
  return nullptr;
}

}  // namespace

int device_count() {
  static const auto count = static_cast<int>(
      std::clamp<uint64_t>(environment("SIMULATED_" SIMULATED_CHIP "_DEVICES", 1), 1, kMaxDevices));
  return count;
}

void* device_allocate(size_t bytes, int device) {
  Arena& a = arena(device);
  const std::lock_guard lock(a.mutex);
  if (!a.device || bytes > a.total) return nullptr;
  const size_t size = (bytes + kPadding + kAlignment - 1) / kAlignment * kAlignment;
  size_t at = 0;  // first fit
  for (const auto& [offset, length] : a.used) {
    if (offset - at >= size) break;
    at = offset + length;
  }
  if (at + size > a.total) return nullptr;
  a.used[at] = size;
  a.in_use += size;
  return a.device + at;
}

bool device_release(void* memory) {
  Arena* const found_arena = arena_of(memory);
  if (!found_arena) return false;
  Arena& a = *found_arena;
  const std::lock_guard lock(a.mutex);
  const auto found = a.used.find(static_cast<size_t>(static_cast<char*>(memory) - a.device));
  if (found == a.used.end()) return false;
  a.in_use -= found->second;
  a.used.erase(found);
  return true;
}

size_t device_total(int device) { return arena(device).total; }
size_t device_free(int device) {
  Arena& a = arena(device);
  const std::lock_guard lock(a.mutex);
  return a.total - a.in_use;
}

}  // namespace simulated::ascend

void* simulated_ascend_translate(const void* address, size_t bytes) {
  simulated::ascend::Arena* const found = simulated::ascend::arena_of(address);
  if (!found) return nullptr;
  const auto& a = *found;
  const std::lock_guard lock(found->mutex);
  const auto* at = static_cast<const char*>(address);
  const auto offset = static_cast<size_t>(at - a.device);
  auto next = a.used.upper_bound(offset);
  if (next == a.used.begin()) return nullptr;
  const auto [begin, size] = *--next;
  return offset + bytes <= begin + size ? a.bytes + offset : nullptr;
}

int simulated_ascend_device_of(const void* address) {
  const auto* const found = simulated::ascend::arena_of(address);
  return found ? static_cast<int>(found - &simulated::ascend::arena(0)) : -1;
}
