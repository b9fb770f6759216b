// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile.hpp"

#include <new>

#include "runtime/device.hpp"
#include "runtime/tracer.hpp"

namespace gpu {
namespace {

// Events are turned into records when so many have gathered.
constexpr size_t kCollectAt = 1024;
constexpr unsigned kEventTiming = 0;

}  // namespace

Profile::Scope::Scope(tenon_device device, tenon_stream_s& stream, uint32_t kind, const char* name,
                      uint64_t bytes)
    : stream_(stream), kind_(kind), name_(name), bytes_(bytes) {
  if (!device->profile.enabled() || stream.capturing) return;
  if (tracer::is_used()) {
    traced_ = tracer::enter(
        {&device->profile, stream.is_synchronous ? nullptr : &stream, kind, name, bytes});
    return;
  }
  if (driver.event_create(&begin_, kEventTiming)) return;
  if (driver.event_record(begin_, stream.stream)) return;
  profile_ = &device->profile;
}

Profile::Scope::~Scope() {
  if (traced_) tracer::leave();
  if (begin_) driver.event_destroy(begin_);
}

void Profile::Scope::finish() {
  if (!profile_) return;
  Pending pending = {begin_, nullptr, {}};
  if (driver.event_create(&pending.end, kEventTiming)) return;
  if (driver.event_record(pending.end, stream_.stream)) {
    driver.event_destroy(pending.end);
    return;
  }
  pending.record =
      tenon::profile_record(kind_, name_, bytes_, stream_.is_synchronous ? nullptr : &stream_);
  begin_ = nullptr;  // the profile owns it now
  profile_->add(pending);
}

// Without memory of the host the record is dropped; the work is not affected.
void Profile::add(const Pending& pending) try {
  std::lock_guard lock(mutex_);
  if (pending_.size() % kCollectAt == kCollectAt - 1) collect();
  pending_.push_back(pending);
} catch (const std::bad_alloc&) {
  driver.event_destroy(pending.begin);
  driver.event_destroy(pending.end);
}

bool Profile::time_between(Event from, Event to, uint64_t* out) {
  float milliseconds = 0;
  if (!from || driver.event_elapsed(&milliseconds, from, to)) return false;
  *out = milliseconds > 0 ? static_cast<uint64_t>(double{milliseconds} * 1e6) : 0;
  return true;
}

void Profile::collect() {
  for (Pending& pending : pending_) {
    if (driver.event_query(pending.end) == error::kNotReady) continue;
    // The duration is measured by itself: a float holds it exactly enough, but not a time of day.
    uint64_t duration = 0;
    if (time_between(zero_, pending.begin, &pending.record.begin_ns) &&
        time_between(pending.begin, pending.end, &duration)) {
      pending.record.end_ns = pending.record.begin_ns + duration;
      finished_.add(pending.record);
    }
    driver.event_destroy(pending.begin);
    driver.event_destroy(pending.end);
    pending.end = nullptr;
  }
  std::erase_if(pending_, [](const Pending& pending) { return !pending.end; });
}

Error Profile::begin_clock(Stream stream) {
  if (zero_) return error::kSuccess;
  Error error = driver.event_create(&zero_, kEventTiming);
  if (!error) error = driver.event_record(zero_, stream);
  return error ? error : driver.event_sync(zero_);
}

tenon_status Profile::start(tenon_device device, tenon_err* err) {
  if (enabled()) return TENON_OK;
  if (tracer::is_used()) {
    const std::string why = tracer::start();
    if (!why.empty()) return fail(err, TENON_UNAVAILABLE, "profile_start: %s", why.c_str());
  } else {
    std::lock_guard lock(mutex_);
    tenon_stream_s& stream = device->synchronous;
    if (const Error error = begin_clock(stream.stream))
      return fail_device(device, &stream, error, err, "profile_start");
  }
  enabled_.store(true, std::memory_order_relaxed);
  return TENON_OK;
}

void Profile::stop() {
  if (enabled_.exchange(false) && tracer::is_used()) tracer::stop();
}

void Profile::add_traced(const tenon_profile_record& record) {
  std::lock_guard lock(mutex_);
  finished_.add(record);
}

uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  if (tracer::is_used()) tracer::flush();
  std::lock_guard lock(mutex_);
  collect();
  return finished_.drain(out, record_size, capacity);
}

Error Profile::now(Stream stream, uint64_t* out) {
  if (tracer::is_used()) return tracer::now(out) ? error::kSuccess : error::kInvalidValue;
  std::lock_guard lock(mutex_);
  Event event = nullptr;
  if (Error error = begin_clock(stream)) return error;
  Error error = driver.event_create(&event, kEventTiming);
  if (error) return error;
  error = driver.event_record(event, stream);
  if (!error) error = driver.event_sync(event);
  if (!error && !time_between(zero_, event, out)) error = error::kInvalidValue;
  driver.event_destroy(event);
  return error;
}

void Profile::close() {
  stop();
  tracer::forget(this);
  std::lock_guard lock(mutex_);
  for (Pending& pending : pending_) {
    driver.event_destroy(pending.begin);
    driver.event_destroy(pending.end);
  }
  pending_.clear();
  if (zero_) driver.event_destroy(zero_);
  zero_ = nullptr;
}

// ---- the group ----

namespace {

tenon_status profile_start(tenon_device device, tenon_err* err) try {
  Current current(device);
  return device->profile.start(device, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status profile_stop(tenon_device device, tenon_err*) {
  device->profile.stop();
  return TENON_OK;
}

tenon_status profile_drain(tenon_device device, tenon_profile_record* out, uint32_t record_size,
                           uint32_t capacity, uint32_t* count, tenon_err* err) try {
  Current current(device);
  *count = device->profile.drain(out, record_size, capacity);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status clock_pair(tenon_device device, uint64_t* host_ns, uint64_t* device_ns,
                        tenon_err* err) {
  Current current(device);
  tenon_stream_s& stream = device->synchronous;
  const Error error = tenon::pair_clocks(
      host_ns, device_ns, [&](uint64_t* time) { return device->profile.now(stream.stream, time); });
  return error ? fail_device(device, &stream, error, err, "clock_pair") : TENON_OK;
}

}  // namespace

const tenon_profile_api kProfile = {
    .struct_size = sizeof(tenon_profile_api),
    .reserved = 0,
    .profile_start = profile_start,
    .profile_stop = profile_stop,
    .profile_drain = profile_drain,
    .clock_pair = clock_pair,
};

}  // namespace gpu
