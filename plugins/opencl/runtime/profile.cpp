// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <new>
#include <utility>

#include "device.hpp"

namespace opencl {
namespace {

// Events are heavy; finished ones are turned into records when so many have gathered.
constexpr size_t kCollectAt = 1024;

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
  const Pending pending = {event, tenon::profile_record(work.kind, work.name, work.bytes, stream)};
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
    finished_.add(pending.record);
    cl.ReleaseEvent(std::exchange(pending.event, nullptr));
  }
  std::erase_if(pending_, [](const Pending& pending) { return !pending.event; });
}

uint32_t Profile::drain(tenon_profile_record* out, uint32_t record_size, uint32_t capacity) {
  std::lock_guard lock(mutex_);
  collect();
  return finished_.drain(out, record_size, capacity);
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

// OpenCL 1.2 cannot ask for the device's time, but a command carries it.
tenon_status clock_pair(tenon_device device, uint64_t* host_ns, uint64_t* device_ns,
                        tenon_err* err) {
  cl_int error;
  cl_mem cell =
      cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof(cl_uint), nullptr, &error);
  if (error) return fail_driver(err, error, "clock_pair");
  error = tenon::pair_clocks(host_ns, device_ns, [&](uint64_t* time) {
    cl_uint word = 0;
    Event done;
    cl_int failure = submit(
        device->service, kOrdering,
        [&](cl_command_queue queue, cl_event* event) {
          return cl.EnqueueWriteBuffer(queue, cell, CL_FALSE, 0, sizeof word, &word, 0, nullptr,
                                       event);
        },
        &done);
    cl_event waited = done.get();
    if (!failure) failure = cl.WaitForEvents(1, &waited);
    if (!failure) *time = device_clock(waited, CL_PROFILING_COMMAND_END);
    return failure;
  });
  cl.ReleaseMemObject(cell);
  return error ? fail_driver(err, error, "clock_pair") : TENON_OK;
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
