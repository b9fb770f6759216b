// SPDX-License-Identifier: Apache-2.0
// A ring of pinned memory that small copies of pageable memory pass through. A driver may read
// pageable memory after the call returns; the contract says that it is consumed by then. Copying it
// into the ring first costs less than waiting for the device.
#pragma once

#include <cstdint>
#include <mutex>

#include "runtime/driver.hpp"

namespace gpu {

class Staging {
 public:
  static constexpr uint64_t kSlotBytes = 64 << 10;

  ~Staging();

  // Queues a copy of at most kSlotBytes to the device on `stream`. Waits only if every slot is still
  // being read.
  Error copy(void* dst, const void* src, uint64_t bytes, Stream stream);
  // Returns the memory to the driver; the device is current and idle.
  void close();

 private:
  static constexpr int kSlots = 16;
  std::mutex mutex_;
  char* memory_ = nullptr;
  Event done_[kSlots] = {};
  int next_ = 0;
};

}  // namespace gpu
