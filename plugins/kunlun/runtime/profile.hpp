// SPDX-License-Identifier: Apache-2.0
// Records of finished work, by the clock of the host: XRE's events carry no times. An operator is waited for anyway, so that its
// record goes from its call to the end of that wait. While a profile is taken copies and fills on streams are
// waited for, too.
#pragma once

#include <tenon/profile_records.hpp>

#include <atomic>
#include <mutex>

namespace kunlun {

class Profile {
 public:
  // Around the calls that queue one piece of work. Does nothing while profiling is off.
  class Scope {
   public:
    Scope(tenon_device device, tenon_stream stream, uint32_t kind, uint64_t bytes = 0);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    // Waits for the stream, and keeps the record: not for work that failed, which has none.
    void finish(const char* name);

   private:
    Profile* profile_;  // nullptr: no record
    tenon_stream stream_;
    uint32_t kind_;
    uint64_t bytes_;
    uint64_t begin_;
  };

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void set_enabled(bool enabled) { enabled_.store(enabled, std::memory_order_relaxed); }
  uint32_t drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity);

 private:
  void add(const tenon_profile_record& record);

  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  tenon::ProfileRecords records_;
};

extern const tenon_profile_api kProfile;

}  // namespace kunlun
