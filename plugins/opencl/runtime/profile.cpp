// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "device.hpp"

namespace opencl {
namespace {

// Events are heavy; finished ones are turned into records when so many have gathered.
constexpr size_t kCollectAt = 1024;

uint64_t host_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t device_clock(cl_event event, cl_profiling_info moment) {
  cl_ulong time = 0;
  cl.GetEventProfilingInfo(event, moment, sizeof time, &time, nullptr);
  return time;
}

}  // namespace

Profile::~Profile() {
  for (Pending& pending : pending_)
    if (pending.event) cl.ReleaseEvent(pending.event);
}

void Profile::add(tenon_stream stream, const Work& work, cl_event event) try {
  Pending pending = {event, {}};
  pending.record.struct_size = sizeof pending.record;
  pending.record.kind = work.kind;
  pending.record.bytes = work.kind == TENON_PROFILE_KERNEL ? 0 : work.bytes;
  pending.record.stream = stream;
  std::strncpy(pending.record.name, work.name, sizeof pending.record.name - 1);
  std::lock_guard lock(mutex_);
  if (pending_.size() % kCollectAt == kCollectAt - 1) collect();
  pending_.push_back(pending);
  cl.RetainEvent(event);
} catch (const std::bad_alloc&) {
}

void Profile::collect() {
  for (Pending& pending : pending_) {
    if (!pending.event || state_of(Event::borrow(pending.event)) > CL_COMPLETE) continue;
    pending.record.begin_ns = device_clock(pending.event, CL_PROFILING_COMMAND_START);
    pending.record.end_ns = device_clock(pending.event, CL_PROFILING_COMMAND_END);
    finished_.push_back(pending.record);
    cl.ReleaseEvent(std::exchange(pending.event, nullptr));
  }
  std::erase_if(pending_, [](const Pending& pending) { return !pending.event; });
  std::stable_sort(finished_.begin(), finished_.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
}

uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  std::lock_guard lock(mutex_);
  collect();
  uint32_t count = static_cast<uint32_t>(std::min<size_t>(capacity, finished_.size()));
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

// ---- the group ----

namespace {

tenon_status profile_start(tenon_device device, tenon_err*) {
  device->profile.enable(true);
  return TENON_OK;
}

tenon_status profile_stop(tenon_device device, tenon_err*) {
  device->profile.enable(false);
  return TENON_OK;
}

tenon_status profile_drain(tenon_device device, tenon_profile_record* out, uint32_t record_size,
                           uint32_t capacity, uint32_t* count, tenon_err* err) try {
  *count = device->profile.drain(out, record_size, capacity);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// OpenCL 1.2 cannot ask for the device's time, but a command carries it: the time of a tiny one
// lies between two readings of the host's clock. The closest of a few pairs is the best.
tenon_status clock_pair(tenon_device device, uint64_t* host_ns, uint64_t* device_ns,
                        tenon_err* err) {
  cl_int error;
  cl_mem cell =
      cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof(cl_uint), nullptr, &error);
  if (error) return fail_driver(err, error, "clock_pair");
  uint64_t best = UINT64_MAX, best_host = 0, best_device = 0;
  constexpr int kTries = 5;
  for (int i = 0; i < kTries && !error; ++i) {
    cl_uint word = 0;
    Event done;
    uint64_t before = host_clock();
    error = submit(
        device->service, kOrdering,
        [&](cl_command_queue queue, cl_event* event) {
          return cl.EnqueueWriteBuffer(queue, cell, CL_FALSE, 0, sizeof word, &word, 0, nullptr,
                                       event);
        },
        &done);
    cl_event waited = done.get();
    if (!error) error = cl.WaitForEvents(1, &waited);
    uint64_t after = host_clock();
    if (error || after - before >= best) continue;
    best = after - before;
    best_host = before + best / 2;
    best_device = device_clock(waited, CL_PROFILING_COMMAND_END);
  }
  cl.ReleaseMemObject(cell);
  if (error) return fail_driver(err, error, "clock_pair");
  *host_ns = best_host;
  *device_ns = best_device;
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

}  // namespace opencl
