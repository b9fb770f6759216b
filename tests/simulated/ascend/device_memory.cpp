// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "../failures.hpp"

namespace simulated::ascend {
namespace {

constexpr size_t kAlignment = 512;  // of aclrtMalloc
constexpr size_t kPadding = 32;     // which aclrtMalloc adds behind the request

struct Arena {
  size_t total = environment("SIMULATED_ASCEND_MEMORY_MB", 4096) << 20;
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

Arena& arena() {
  static Arena* const one = new Arena;  // outlives every exit handler
  return *one;
}

}  // namespace

void* device_allocate(size_t bytes) {
  Arena& a = arena();
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
  Arena& a = arena();
  const std::lock_guard lock(a.mutex);
  const auto found = a.used.find(static_cast<size_t>(static_cast<char*>(memory) - a.device));
  if (found == a.used.end()) return false;
  a.in_use -= found->second;
  a.used.erase(found);
  return true;
}

size_t device_total() { return arena().total; }
size_t device_free() {
  Arena& a = arena();
  const std::lock_guard lock(a.mutex);
  return a.total - a.in_use;
}

}  // namespace simulated::ascend

void* simulated_ascend_translate(const void* address, size_t bytes) {
  auto& a = simulated::ascend::arena();
  const std::lock_guard lock(a.mutex);
  const auto* at = static_cast<const char*>(address);
  if (!a.device || at < a.device || at >= a.device + a.total) return nullptr;
  const auto offset = static_cast<size_t>(at - a.device);
  auto next = a.used.upper_bound(offset);
  if (next == a.used.begin()) return nullptr;
  const auto [begin, size] = *--next;
  return offset + bytes <= begin + size ? a.bytes + offset : nullptr;
}
