// SPDX-License-Identifier: Apache-2.0
// Device memory for the length of one kernel call, in order with the call's stream.
#pragma once

#include "kernel_core/memory/allocator.hpp"

namespace tenon::core {

class ScratchArena {
 public:
  ScratchArena(Device& device, tenon_stream stream) : device_(device), stream_(stream) {}
  ScratchArena(const ScratchArena&) = delete;
  ScratchArena& operator=(const ScratchArena&) = delete;
  ~ScratchArena() {
    if (count_ != 0) [[unlikely]]
      release();
  }

  // Valid until the arena dies. Zero bytes: NULL.
  tenon_status allocate(uint64_t bytes, void** out, tenon_err* err);

 private:
  struct Block {
    void* data;
    uint64_t bytes;
  };
  static constexpr uint32_t kInline = 4;  // more than kernels commonly ask for
  void release() noexcept;

  Device& device_;
  tenon_stream stream_;
  uint32_t count_ = 0;
  ScratchArena* more_ = nullptr;
  Block blocks_[kInline];
};

}  // namespace tenon::core
