// SPDX-License-Identifier: Apache-2.0
#include "vram.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace reference {
namespace {
constexpr uint64_t kGranule = 256;
constexpr uint64_t kPage = 4096;
constexpr uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}
}  // namespace

Vram::Vram() : file_(memfd_create("tenon-reference", MFD_CLOEXEC)) {
  if (file_ < 0 || ftruncate(file_, kBytes) != 0) return;
  void* memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (memory == MAP_FAILED) return;
  base_ = static_cast<char*>(memory);
  free_[0] = kBytes;
}

Vram::~Vram() {
  if (base_) munmap(base_, kBytes);
  if (file_ >= 0) close(file_);
}

void* Vram::allocate(uint64_t bytes, uint64_t align) {
  if (bytes > kBytes || align > kBytes) return nullptr;  // and no sum below overflows
  bytes = round_up(bytes, kGranule);
  align = std::max(align, kGranule);
  std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [hole, room] = *it;
    const uint64_t at = round_up(hole, align), end = at + bytes;
    if (end > hole + room) continue;
    free_.erase(it);
    if (at > hole) free_[hole] = at - hole;
    if (end < hole + room) free_[end] = hole + room - end;
    live_[at] = bytes;
    return base_ + at;
  }
  return nullptr;
}

void Vram::release(void* memory) {
  std::lock_guard lock(mutex_);
  auto it = live_.find(offset_of(memory));
  if (it == live_.end()) return;
  auto [begin, bytes] = *it;
  live_.erase(it);
  const uint64_t first = round_up(begin, kPage), last = (begin + bytes) / kPage * kPage;
  if (first < last)  // the system gets its pages back
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(last - first));
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == begin + bytes) {
    bytes += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  free_[begin] = bytes;
}

// Where the allocation ends, or the last of those that lie behind it end to end.
uint64_t Vram::end_of(std::map<uint64_t, uint64_t>::const_iterator live) const {
  uint64_t end = live->first + live->second;
  while (++live != live_.end() && live->first == end) end += live->second;
  return end;
}

uint64_t Vram::size_from(const void* memory) const {
  std::lock_guard lock(mutex_);
  auto it = live_.find(offset_of(memory));
  return it == live_.end() ? 0 : end_of(it) - it->first;
}

bool Vram::holds(const void* memory, uint64_t bytes) const {
  const uint64_t at = offset_of(memory);
  if (at >= kBytes || bytes > kBytes - at) return false;
  std::lock_guard lock(mutex_);
  auto it = live_.upper_bound(at);
  return it != live_.begin() && at + bytes <= end_of(std::prev(it));
}

}  // namespace reference
