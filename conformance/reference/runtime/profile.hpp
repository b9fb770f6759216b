// SPDX-License-Identifier: Apache-2.0
// The device's clock, and what ran when on it.
#pragma once

#include <tenon/abi.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "queue.hpp"

namespace reference {

uint64_t host_now();  // CLOCK_MONOTONIC, ns

class Profile {
 public:
  Profile() : origin_(host_now()) {}

  Result run(Task& task,
             tenon_stream stream);  // the task's work, with a record of it if switched on

  void switch_on(bool on) { on_ = on; }
  uint32_t drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity);
  // The device counts nanoseconds since it was opened; a real one has a counter of its own.
  uint64_t at(uint64_t host_ns) const { return host_ns - origin_; }

 private:
  // A program that forgets to drain must not eat the host's memory: the oldest records go first.
  static constexpr size_t kMax = 1 << 18;

  const uint64_t origin_;
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::deque<tenon_profile_record> records_;
};

}  // namespace reference
