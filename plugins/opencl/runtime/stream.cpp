// SPDX-License-Identifier: Apache-2.0
#include "stream.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "device.hpp"

namespace opencl {
namespace {

// Drivers gather commands until clFlush; after this many, a flush is worth its cost.
constexpr uint32_t kFlushEvery = 16;

tenon_status report(cl_int error, const char* what, tenon_err* err) {
  return error ? fail_driver(err, error, "%s: work queued earlier has failed", what) : TENON_OK;
}

}  // namespace

cl_int state_of(const Event& event) {
  cl_int state = CL_COMPLETE;
  if (!event) return state;
  cl_int error = cl.GetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                 &state, nullptr);
  return error ? error : state;
}

tenon_status wait_for(const Event& event, const char* what, tenon_err* err) {
  if (!event) return TENON_OK;
  cl_event waited = event.get();
  cl_int error = cl.WaitForEvents(1, &waited);
  cl_int state = state_of(event);  // the cause, where WaitForEvents only says that there is one
  return report(state < 0 ? state : error, what, err);
}

void flush(tenon_stream_s& stream) {
  if (stream.unflushed == 0) return;
  cl.Flush(stream.queue);
  stream.unflushed = 0;
}

Event last_of(tenon_stream_s& stream) {
  std::lock_guard lock(stream.mutex);
  flush(stream);
  return Event::borrow(stream.last);
}

cl_int follow_synchronous(tenon_stream_s& stream) {
  if (!stream.handle) return CL_SUCCESS;  // the synchronous stream itself, or our own
  tenon_stream_s& synchronous = stream.device->synchronous;
  uint64_t submitted = synchronous.submitted.load(std::memory_order_acquire);
  if (submitted == stream.synchronous_seen) return CL_SUCCESS;
  Event before = last_of(synchronous);
  if (state_of(before) != CL_COMPLETE) {
    cl_event waited = before.get();
    if (cl_int error = cl.EnqueueBarrierWithWaitList(stream.queue, 1, &waited, nullptr))
      return error;
  }
  stream.synchronous_seen = submitted;
  return CL_SUCCESS;
}

void submitted(tenon_stream_s& stream, const Work& work, cl_event event) {
  if (stream.last) cl.ReleaseEvent(stream.last);
  stream.last = event;
  if (++stream.unflushed >= kFlushEvery) flush(stream);
  if (work.kind != Work::kUnseen && stream.device->profile.enabled())
    stream.device->profile.add(stream.handle, work, event);
  if (&stream == &stream.device->synchronous)
    stream.submitted.fetch_add(1, std::memory_order_release);
}

tenon_status create_queue(tenon_device device, tenon_stream_s& stream, tenon_err* err) {
  cl_int error;
  stream.device = device;
  // Times are recorded only while a profile is taken, but a queue must be made for it.
  stream.queue =
      cl.CreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
  return error ? fail_driver(err, error, "create a queue") : TENON_OK;
}

void destroy_queue(tenon_stream_s& stream) {
  if (!stream.queue) return;
  cl.Finish(stream.queue);
  if (stream.last) cl.ReleaseEvent(stream.last);
  cl.ReleaseCommandQueue(stream.queue);
  stream.last = nullptr;
  stream.queue = nullptr;
}

// ---- waiting ----

namespace {

// What all streams have queued. Streams may be destroyed while it is waited for.
std::vector<Event> all_last(tenon_device device) {
  std::vector<Event> events;
  events.push_back(last_of(device->synchronous));
  std::lock_guard lock(device->streams_mutex);
  for (tenon_stream_s* stream : device->streams) events.push_back(last_of(*stream));
  return events;
}

}  // namespace

void drain(tenon_device device) try {
  for (const Event& event : all_last(device)) {
    cl_event waited = event.get();
    if (waited) cl.WaitForEvents(1, &waited);
  }
} catch (const std::bad_alloc&) {
  cl.Finish(device->synchronous.queue);
  std::lock_guard lock(device->streams_mutex);
  for (tenon_stream_s* stream : device->streams) cl.Finish(stream->queue);
}

tenon_status sync(tenon_device device, tenon_stream stream, tenon_err* err) try {
  if (stream) return wait_for(last_of(*stream), "sync", err);
  tenon_status status = TENON_OK;  // the first failure; the rest is waited for all the same
  for (const Event& event : all_last(device)) {
    tenon_status one = wait_for(event, "sync", err);
    if (status == TENON_OK) status = one;
  }
  return status;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// ---- the group ----

namespace {

// Priorities are hints, and OpenCL 1.2 has none.
tenon_status stream_create(tenon_device device, int32_t, tenon_stream* out, tenon_err* err) try {
  auto stream = std::make_unique<tenon_stream_s>();
  stream->handle = stream.get();
  TENON_TRY(create_queue(device, *stream, err));
  std::lock_guard lock(device->streams_mutex);
  try {
    device->streams.push_back(stream.get());
  } catch (const std::bad_alloc&) {
    destroy_queue(*stream);
    throw;
  }
  *out = stream.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  if (!stream) return;
  {
    std::lock_guard lock(device->streams_mutex);
    std::erase(device->streams, stream);
  }
  destroy_queue(*stream);
  delete stream;
}

}  // namespace

tenon_status event_create(tenon_device, uint32_t flags, tenon_event* out, tenon_err*);
void event_destroy(tenon_device, tenon_event);
tenon_status event_record(tenon_device, tenon_event, tenon_stream, tenon_err*);
tenon_status stream_wait(tenon_device, tenon_stream, tenon_event, tenon_err*);
tenon_status event_query(tenon_device, tenon_event, int32_t* done, tenon_err*);
tenon_status event_sync(tenon_device, tenon_event, tenon_err*);

const tenon_async_api kAsync = {
    .struct_size = sizeof(tenon_async_api),
    .reserved = 0,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_query = event_query,
    .event_sync = event_sync,
};

}  // namespace opencl
