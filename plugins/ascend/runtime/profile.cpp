// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>

#include "device.hpp"

namespace ascend {
namespace {

// Events are turned into records when so many have gathered.
constexpr size_t kCollectAt = 1024;

uint64_t host_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

int time_of(Event event, uint64_t* out_ns) {
  uint64_t microseconds = 0;
  const int error = acl.aclrtEventGetTimestamp(event, &microseconds);
  *out_ns = microseconds * 1000;
  return error;
}

Event timed_event(Stream stream) {
  Event event = nullptr;
  if (acl.aclrtCreateEventExWithFlag(&event, kEventTimeLine)) return nullptr;
  if (!acl.aclrtRecordEvent(event, stream)) return event;
  acl.aclrtDestroyEvent(event);
  return nullptr;
}

}  // namespace

Profile::Scope::Scope(tenon_device device, tenon_stream stream, uint32_t kind, uint64_t bytes) {
  if (!device->profile.enabled() || (stream && stream->capturing)) [[likely]]
    return;
  on_ = stream_of(device, stream);
  begin_ = timed_event(on_);
  if (!begin_) return;
  profile_ = &device->profile;
  record_.struct_size = sizeof record_;
  record_.kind = kind;
  record_.bytes = bytes;
  record_.stream = stream;
}

Profile::Scope::~Scope() {
  if (begin_) acl.aclrtDestroyEvent(begin_);
}

void Profile::Scope::finish(const char* name) {
  if (!profile_) return;
  const Event end = timed_event(on_);
  if (!end) return;
  std::strncpy(record_.name, name, sizeof record_.name - 1);
  profile_->add({std::exchange(begin_, nullptr), end, record_});
}

// Without memory of the host the record is dropped; the work is not affected.
void Profile::add(const Pending& pending) try {
  const std::lock_guard lock(mutex_);
  if (pending_.size() % kCollectAt == kCollectAt - 1) collect();
  pending_.push_back(pending);
} catch (const std::bad_alloc&) {
  acl.aclrtDestroyEvent(pending.begin);
  acl.aclrtDestroyEvent(pending.end);
}

void Profile::collect() {
  for (Pending& pending : pending_) {
    int status = 0;
    if (acl.aclrtQueryEventStatus(pending.end, &status) || status != kRecordedComplete) continue;
    if (!time_of(pending.begin, &pending.record.begin_ns) &&
        !time_of(pending.end, &pending.record.end_ns))
      finished_.push_back(pending.record);
    acl.aclrtDestroyEvent(pending.begin);
    acl.aclrtDestroyEvent(pending.end);
    pending.end = nullptr;
  }
  std::erase_if(pending_, [](const Pending& pending) { return !pending.end; });
  std::stable_sort(finished_.begin(), finished_.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
}

uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  const std::lock_guard lock(mutex_);
  collect();
  const auto count = static_cast<uint32_t>(std::min<size_t>(capacity, finished_.size()));
  for (uint32_t i = 0; i < count; ++i) {
    // The caller's records may be shorter than ours, or longer.
    tenon_profile_record record = finished_[i];
    record.struct_size = std::min<uint32_t>(record_size, sizeof record);
    std::memcpy(reinterpret_cast<char*>(out) + uint64_t{i} * record_size, &record,
                record.struct_size);
  }
  finished_.erase(finished_.begin(), finished_.begin() + count);
  return count;
}

void Profile::close() {
  set_enabled(false);
  const std::lock_guard lock(mutex_);
  for (Pending& pending : pending_) {
    acl.aclrtDestroyEvent(pending.begin);
    acl.aclrtDestroyEvent(pending.end);
  }
  pending_.clear();
}

// ---- the group ----

namespace {

tenon_status profile_start(tenon_device device, tenon_err*) {
  device->profile.set_enabled(true);
  return TENON_OK;
}

tenon_status profile_stop(tenon_device device, tenon_err*) {
  device->profile.set_enabled(false);
  return TENON_OK;
}

tenon_status profile_drain(tenon_device device, tenon_profile_record* out, uint32_t record_size,
                           uint32_t capacity, uint32_t* count, tenon_err* err) try {
  if (const tenon_status status = make_current(device, err)) return status;
  *count = device->profile.drain(out, record_size, capacity);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

// An event's time lies between two readings of the host's clock; the closest of a few pairs is best.
tenon_status clock_pair(tenon_device device, uint64_t* host_ns, uint64_t* device_ns,
                        tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  const std::lock_guard lock(device->mutex);
  uint64_t best = UINT64_MAX;
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    uint64_t time = 0;
    const uint64_t before = host_clock();
    const Event event = timed_event(device->stream);
    if (!event)
      return tenon::fail(err, TENON_INTERNAL, "ascend: clock_pair: no event could be recorded");
    int error = acl.aclrtSynchronizeStream(device->stream);
    const uint64_t after = host_clock();
    if (!error) error = time_of(event, &time);
    acl.aclrtDestroyEvent(event);
    if (error) return fail_acl(err, "aclrtEventGetTimestamp", error);
    if (after - before >= best) continue;
    best = after - before;
    *host_ns = before + best / 2;
    *device_ns = time;
  }
  return TENON_OK;
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

bool can_profile() { return acl.aclrtEventGetTimestamp; }

}  // namespace ascend
