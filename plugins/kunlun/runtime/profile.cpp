// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <new>

#include "device.hpp"

namespace kunlun {

Profile::Scope::Scope(tenon_device device, tenon_stream stream, uint32_t kind, uint64_t bytes)
    : profile_(device->profile.enabled() ? &device->profile : nullptr),
      stream_(stream),
      kind_(kind),
      bytes_(bytes),
      begin_(profile_ ? tenon::host_clock_ns() : 0) {}

void Profile::Scope::finish(const char* name) {
  if (!profile_ || (stream_ && xpu.wait(stream_->stream))) return;
  tenon_profile_record record = tenon::profile_record(kind_, name, bytes_, stream_);
  record.begin_ns = begin_;
  record.end_ns = tenon::host_clock_ns();
  profile_->add(record);
}

// Without memory of the host the record is dropped; the work is not affected.
void Profile::add(const tenon_profile_record& record) try {
  const std::lock_guard lock(mutex_);
  records_.add(record);
} catch (const std::bad_alloc&) {
}

uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  const std::lock_guard lock(mutex_);
  return records_.drain(out, record_size, capacity);
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
  *count = device->profile.drain(out, record_size, capacity);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

tenon_status clock_pair(tenon_device, uint64_t* host_ns, uint64_t* device_ns, tenon_err*) {
  *host_ns = *device_ns = tenon::host_clock_ns();
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

}  // namespace kunlun
