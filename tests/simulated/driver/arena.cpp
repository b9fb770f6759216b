// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace simulated {
namespace {

// The device process maps the same addresses, so they must be free in both. Programs, libraries and
// stacks lie at 0x5500... and above 0x7e00...; ThreadSanitizer leaves only the lowest addresses free,
// AddressSanitizer only high ones.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kFirst = uint64_t{0x20} << 32;
#else
constexpr uint64_t kFirst = uint64_t{0x20} << 40;
#endif
constexpr uint64_t kStep = uint64_t{16} << 30;
constexpr int kSteps = 20;

void* reserve(uint64_t bytes) {
  for (int step = 0; step < kSteps; ++step) {
    auto* wanted = reinterpret_cast<void*>(kFirst + static_cast<uint64_t>(step) * kStep);
    void* got = mmap(wanted, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) return got;
    if (got != MAP_FAILED) munmap(got, bytes);
  }
  std::fprintf(stderr, "simulated: no addresses are free for %llu bytes of memory\n",
               static_cast<unsigned long long>(bytes));
  std::abort();
}

uint64_t whole_pages(uint64_t bytes) { return (bytes + Arena::kPage - 1) & ~(Arena::kPage - 1); }

}  // namespace

Arena::Arena(uint64_t bytes, uint64_t imports, bool accessible) : bytes_(bytes), imports_(imports) {
  file_ = memfd_create("simulated-memory", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes)) != 0) {
    std::perror("simulated: a file in memory");
    std::abort();
  }
  void* base = reserve(bytes + imports);
  base_ = reinterpret_cast<uint64_t>(base);
  const int flags = MAP_SHARED | MAP_NORESERVE;
  if (accessible) {
    mmap(base, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file_, 0);
    alias_ = static_cast<char*>(base);
  } else {
    void* alias = mmap(nullptr, bytes + imports, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mmap(alias, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file_, 0);
    alias_ = static_cast<char*>(alias);
  }
  free_[0] = bytes;
  if (imports) free_imports_[bytes] = imports;
}

bool Arena::take(Ranges& free, uint64_t bytes, uint64_t* out) {
  for (auto it = free.begin(); it != free.end(); ++it) {
    const auto [at, room] = *it;
    if (room < bytes) continue;
    free.erase(it);
    if (room > bytes) free[at + bytes] = room - bytes;
    *out = at;
    return true;
  }
  return false;
}

void Arena::put_back(Ranges& free, uint64_t at, uint64_t bytes) {
  auto after = free.lower_bound(at);
  if (after != free.end() && after->first == at + bytes) {
    bytes += after->second;
    after = free.erase(after);
  }
  if (after != free.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == at) {
      before->second += bytes;
      return;
    }
  }
  free[at] = bytes;
}

void* Arena::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > bytes_) return nullptr;
  bytes = whole_pages(bytes);
  std::lock_guard lock(mutex_);
  uint64_t at;
  if (!take(free_, bytes, &at)) return nullptr;
  live_[at] = bytes;
  used_ += bytes;
  return reinterpret_cast<void*>(base_ + at);
}

bool Arena::release(void* memory) {
  std::lock_guard lock(mutex_);
  auto it = live_.find(offset_of(memory));
  if (it == live_.end() || it->first >= bytes_) return false;
  const auto [at, bytes] = *it;
  live_.erase(it);
  used_ -= bytes;
  // The system gets the pages back, and what was in them is gone.
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
            static_cast<off_t>(bytes));
  put_back(free_, at, bytes);
  return true;
}

void Arena::release_all() {
  std::lock_guard lock(mutex_);
  live_.erase(live_.begin(), live_.lower_bound(bytes_));
  free_ = {{0, bytes_}};
  used_ = 0;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_));
}

void* Arena::import(int file, uint64_t offset, uint64_t bytes) {
  if (bytes == 0 || bytes > imports_ || offset % kPage) return nullptr;
  bytes = whole_pages(bytes);
  std::lock_guard lock(mutex_);
  uint64_t at;
  if (!take(free_imports_, bytes, &at)) return nullptr;
  void* mapped = mmap(alias_ + at, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    put_back(free_imports_, at, bytes);
    return nullptr;
  }
  live_[at] = bytes;
  return reinterpret_cast<void*>(base_ + at);
}

bool Arena::close_import(void* memory) {
  std::lock_guard lock(mutex_);
  auto it = live_.find(offset_of(memory));
  if (it == live_.end() || it->first < bytes_) return false;
  const auto [at, bytes] = *it;
  live_.erase(it);
  mmap(alias_ + at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  put_back(free_imports_, at, bytes);
  return true;
}

bool Arena::find(const void* memory, void** base, uint64_t* bytes) const {
  if (!contains(memory)) return false;
  const uint64_t at = offset_of(memory);
  std::lock_guard lock(mutex_);
  auto it = live_.upper_bound(at);
  if (it == live_.begin()) return false;
  --it;
  if (at >= it->first + it->second) return false;
  *base = reinterpret_cast<void*>(base_ + it->first);
  *bytes = it->second;
  return true;
}

char* Arena::access(const void* memory, uint64_t bytes) const {
  if (!contains(memory)) return nullptr;
  const uint64_t at = offset_of(memory);
  std::lock_guard lock(mutex_);
  auto it = live_.upper_bound(at);
  if (it == live_.begin()) return nullptr;
  --it;
  uint64_t end = it->first + it->second;
  while (++it != live_.end() && it->first == end && end < bytes_) end += it->second;
  return at <= end && bytes <= end - at ? alias_ + at : nullptr;
}

uint64_t Arena::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace simulated
