// SPDX-License-Identifier: Apache-2.0
// The board's memory: one anonymous file, mapped once, that other processes can map too. The pages
// exist once they are touched. First fit, because a caching host or our own pool stands in front.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace reference {

class Vram {
 public:
  static constexpr uint64_t kBytes = uint64_t{2} << 30;

  Vram();
  ~Vram();
  Vram(const Vram&) = delete;

  bool ready() const { return base_ != nullptr; }
  void* allocate(uint64_t bytes, uint64_t align);  // nullptr: no room
  void release(void* memory);                      // what allocate returned, once
  // Of the live allocation that begins there, and of those that follow it end to end, which may be
  // used as one; 0: there is none.
  uint64_t size_from(const void* memory) const;
  // Whether [memory, memory + bytes) lies in such memory.
  bool holds(const void* memory, uint64_t bytes) const;

  int file() const { return file_; }
  uint64_t offset_of(const void* memory) const {
    return static_cast<uint64_t>(static_cast<const char*>(memory) - base_);
  }

 private:
  uint64_t end_of(std::map<uint64_t, uint64_t>::const_iterator live) const;

  int file_ = -1;
  char* base_ = nullptr;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_, live_;  // offset -> bytes
};

}  // namespace reference
