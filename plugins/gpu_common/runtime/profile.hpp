// SPDX-License-Identifier: Apache-2.0
// Records of finished work: those of the vendor's tracing library where there is one (tracer.hpp), otherwise from pairs of
// events around each piece of it. The driver tells only the time between two events, as a float in milliseconds, so times are
// measured from an event that is recorded when profiling starts or the clock is first read. That event is the zero of the
// device's clock then.
#pragma once

#include <tenon/profile_records.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/driver.hpp"

struct tenon_stream_s;

namespace gpu {

class Profile {
 public:
  // Around the calls that queue one piece of work. Does nothing while profiling is off, and on a
  // stream that is captured.
  class Scope {
   public:
    // `name` lives as long as the device.
    Scope(tenon_device device, tenon_stream_s& stream, uint32_t kind, const char* name,
          uint64_t bytes = 0);
    ~Scope();  // drops the record unless it was finished
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    void finish();

   private:
    Profile* profile_ = nullptr;  // nullptr: no record from events
    bool traced_ = false;
    tenon_stream_s& stream_;
    Event begin_ = nullptr;
    uint32_t kind_;
    const char* name_;
    uint64_t bytes_;
  };

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // The device is current in all of these.
  tenon_status start(tenon_device device, tenon_err* err);
  void stop();
  uint32_t drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity);
  // A record of the tracing library, on any thread.
  void add_traced(const tenon_profile_record& record);
  // Now, on the device's clock; waits for the stream if that is a clock of events.
  Error now(Stream stream, uint64_t* out);
  void close();

 private:
  struct Pending {
    Event begin, end;
    tenon_profile_record record;  // without its times
  };
  void add(const Pending& pending);
  // With the lock held.
  void collect();
  Error begin_clock(Stream stream);
  static bool time_between(Event from, Event to, uint64_t* out_ns);

  std::atomic<bool> enabled_{false};
  std::mutex mutex_;
  Event zero_ = nullptr;
  std::vector<Pending> pending_;
  tenon::ProfileRecords finished_;
};

}  // namespace gpu
