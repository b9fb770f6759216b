// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <new>
#include <utility>

#include "device.hpp"

namespace ascend {
namespace {

// Events are turned into records when so many have gathered.
constexpr size_t kCollectAt = 1024;

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
  kind_ = kind;
  bytes_ = bytes;
  stream_ = stream;
}

Profile::Scope::~Scope() {
  if (begin_) acl.aclrtDestroyEvent(begin_);
}

void Profile::Scope::finish(const char* name) {
  if (!profile_) return;
  const Event end = timed_event(on_);
  if (!end) return;
  profile_->add(
      {std::exchange(begin_, nullptr), end, tenon::profile_record(kind_, name, bytes_, stream_)});
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
      finished_.add(pending.record);
    acl.aclrtDestroyEvent(pending.begin);
    acl.aclrtDestroyEvent(pending.end);
    pending.end = nullptr;
  }
  std::erase_if(pending_, [](const Pending& pending) { return !pending.end; });
}

uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  const std::lock_guard lock(mutex_);
  collect();
  return finished_.drain(out, record_size, capacity);
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

tenon_status clock_pair(tenon_device device, uint64_t* host_ns, uint64_t* device_ns,
                        tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  const std::lock_guard lock(device->mutex);
  return tenon::pair_clocks(host_ns, device_ns, [&](uint64_t* time) -> tenon_status {
    const Event event = timed_event(device->stream);
    if (!event)
      return tenon::fail(err, TENON_INTERNAL, "ascend: clock_pair: no event could be recorded");
    int error = acl.aclrtSynchronizeStream(device->stream);
    if (!error) error = time_of(event, time);
    acl.aclrtDestroyEvent(event);
    return error ? fail_acl(err, "aclrtEventGetTimestamp", error) : TENON_OK;
  });
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
