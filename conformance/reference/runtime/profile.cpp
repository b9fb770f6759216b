// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "device.hpp"

namespace reference {

uint64_t host_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

Result Profile::run(Task& task, tenon_stream stream) {
  if (task.kind == Task::kControl || !on_) return task.work();
  const uint64_t begin = host_now();
  Result result = task.work();
  tenon_profile_record record = {
      .struct_size = sizeof record,
      .kind = task.kind,
      .begin_ns = at(begin),
      .end_ns = at(host_now()),
      .bytes = task.kind == TENON_PROFILE_KERNEL ? 0 : task.bytes,
      .stream = stream,
  };
  std::snprintf(record.name, sizeof record.name, "%s", task.name);
  std::lock_guard lock(mutex_);
  if (records_.size() == kMax) records_.pop_front();
  records_.push_back(record);
  return result;
}

// A host built with a later header has longer records, one built with an earlier header shorter
// ones.
uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  std::lock_guard lock(mutex_);
  const auto count = static_cast<uint32_t>(std::min<size_t>(capacity, records_.size()));
  for (uint32_t i = 0; i < count; ++i) {
    tenon_profile_record record = records_.front();
    records_.pop_front();
    record.struct_size = std::min<uint32_t>(record_size, sizeof record);
    std::memcpy(reinterpret_cast<char*>(out) + size_t{i} * record_size, &record,
                record.struct_size);
  }
  return count;
}

namespace {

tenon_status profile_start(tenon_device device, tenon_err*) {
  device->profile.switch_on(true);
  return TENON_OK;
}

tenon_status profile_stop(tenon_device device, tenon_err*) {
  device->profile.switch_on(false);
  return TENON_OK;
}

tenon_status profile_drain(tenon_device device, tenon_profile_record* out, uint32_t record_size,
                           uint32_t capacity, uint32_t* count, tenon_err*) {
  *count = device->profile.drain(out, record_size, capacity);
  return TENON_OK;
}

// A device with a clock of its own reads the host's before and after it, and takes the middle.
tenon_status clock_pair(tenon_device device, uint64_t* host_ns, uint64_t* device_ns, tenon_err*) {
  *host_ns = host_now();
  *device_ns = device->profile.at(*host_ns);
  return TENON_OK;
}

}  // namespace

const tenon_profile_api kProfile = {
    .struct_size = sizeof(tenon_profile_api),
    .profile_start = profile_start,
    .profile_stop = profile_stop,
    .profile_drain = profile_drain,
    .clock_pair = clock_pair,
};

}  // namespace reference
