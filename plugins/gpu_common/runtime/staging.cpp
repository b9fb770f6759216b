// SPDX-License-Identifier: Apache-2.0
#include "runtime/staging.hpp"

#include <cstring>

namespace gpu {

Staging::~Staging() = default;

Error Staging::copy(void* dst, const void* src, uint64_t bytes, Stream stream) {
  std::lock_guard lock(mutex_);
  if (!memory_) {
    void* memory = nullptr;
    if (Error error = driver.host_alloc(&memory, kSlotBytes * kSlots, kHostPortable)) return error;
    memory_ = static_cast<char*>(memory);
  }
  const int slot = next_;
  next_ = (next_ + 1) % kSlots;
  Error error = error::kSuccess;
  if (done_[slot])
    error = driver.event_sync(done_[slot]);
  else
    error = driver.event_create(&done_[slot], kEventDisableTiming);
  if (error) return error;
  char* staged = memory_ + slot * kSlotBytes;
  std::memcpy(staged, src, bytes);
  error = driver.copy_to_device(dst, staged, bytes, stream);
  return error ? error : driver.event_record(done_[slot], stream);
}

void Staging::close() {
  for (Event& done : done_)
    if (done) driver.event_destroy(done);
  if (memory_) driver.host_free(memory_);
  memory_ = nullptr;
}

}  // namespace gpu
