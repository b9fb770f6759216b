// SPDX-License-Identifier: Apache-2.0
// Records of finished work, read from the events of commands once they have passed.
#pragma once

#include <tenon/profile_records.hpp>

#include <atomic>
#include <mutex>
#include <vector>

#include "driver.hpp"

namespace opencl {

// What a record says about a command. `name` outlives the call that queues the command, no more.
struct Work {
  uint32_t kind;  // TENON_PROFILE_*; kUnseen: no record
  uint64_t bytes;
  const char* name;

  static constexpr uint32_t kUnseen = ~uint32_t{0};
};
constexpr Work kOrdering = {Work::kUnseen, 0, nullptr};

class Profile {
 public:
  ~Profile();

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void enable(bool on) { enabled_.store(on, std::memory_order_relaxed); }

  // Note a command that was just queued. Dropped, and the profile with it no worse, if the host has
  // no memory for it.
  void add(tenon_stream stream, const Work& work, cl_event event);
  // Moves up to `capacity` records out, oldest first.
  uint32_t drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity);

 private:
  struct Pending {
    cl_event event;
    tenon_profile_record record;  // without its times
  };
  void collect();  // with the lock held

  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  std::vector<Pending> pending_;
  tenon::ProfileRecords finished_;
};

extern const tenon_profile_api kProfile;

}  // namespace opencl
