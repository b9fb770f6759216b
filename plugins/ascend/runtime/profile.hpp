// SPDX-License-Identifier: Apache-2.0
// Records of finished work, from the times of two events around each piece of it. AscendCL tells an event's time since
// the chip started, in microseconds, which is the device's clock.
#pragma once

#include <tenon/plugin.hpp>
#include <tenon/profile_records.hpp>

#include <atomic>
#include <mutex>
#include <vector>

#include "library/acl.hpp"

namespace ascend {

class Profile {
 public:
  // Around the calls that queue one piece of work. Does nothing while profiling is off, and on a stream that is captured.
  class Scope {
   public:
    Scope(tenon_device device, tenon_stream stream, uint32_t kind, uint64_t bytes = 0);
    ~Scope();  // drops the record unless it was finished
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    void finish(const char* name);

   private:
    Profile* profile_ = nullptr;  // nullptr: no record
    Stream on_ = nullptr;
    Event begin_ = nullptr;
    tenon_stream stream_ = nullptr;
    uint64_t bytes_ = 0;
    uint32_t kind_ = 0;
  };

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }
  uint32_t drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity);
  void close();

 private:
  struct Pending {
    Event begin, end;
    tenon_profile_record record;  // without its times
  };
  void add(const Pending& pending);
  void collect();  // with the lock held

  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  std::vector<Pending> pending_;
  tenon::ProfileRecords finished_;
};

extern const tenon_profile_api kProfile;
bool can_profile();  // this version of CANN tells the times of events

}  // namespace ascend
