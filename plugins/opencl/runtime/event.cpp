// SPDX-License-Identifier: Apache-2.0
// An event is the last command of a stream at the moment of recording.
#include <new>

#include "device.hpp"

struct tenon_event_s {
  std::mutex mutex;
  opencl::Event recorded;  // empty: never recorded, or there was no work
  bool synchronous = false;
};

namespace opencl {
namespace {

struct Recorded {
  Event event;
  bool synchronous;
};

Recorded read(tenon_event event) {
  std::lock_guard lock(event->mutex);
  return {Event::borrow(event->recorded.get()), event->synchronous};
}

}  // namespace

tenon_status event_create(tenon_device, uint32_t, tenon_event* out, tenon_err* err) {
  auto* event = new (std::nothrow) tenon_event_s;
  if (!event) return fail_host_memory(err);
  *out = event;
  return TENON_OK;
}

void event_destroy(tenon_device, tenon_event event) { delete event; }

tenon_status event_record(tenon_device device, tenon_event event, tenon_stream stream, tenon_err*) {
  Event last = last_of(stream_of(device, stream));
  std::lock_guard lock(event->mutex);
  event->recorded = std::move(last);
  event->synchronous = stream == nullptr;
  return TENON_OK;
}

tenon_status stream_wait(tenon_device device, tenon_stream stream, tenon_event event,
                         tenon_err* err) {
  Event before = read(event).event;
  if (state_of(before) == CL_COMPLETE) return TENON_OK;
  cl_int error =
      submit(stream_of(device, stream), kOrdering, [&](cl_command_queue queue, cl_event* done) {
        cl_event waited = before.get();
        return cl.EnqueueBarrierWithWaitList(queue, 1, &waited, done);
      });
  return error ? fail_driver(err, error, "wait for an event on a stream") : TENON_OK;
}

tenon_status event_query(tenon_device, tenon_event event, int32_t* done, tenon_err* err) {
  Recorded recorded = read(event);
  // Note [The synchronous stream]: its work has finished, as seen from every thread.
  if (recorded.synchronous) TENON_TRY(wait_for(recorded.event, "event_query", err));
  cl_int state = state_of(recorded.event);
  if (state < 0) return fail_driver(err, state, "event_query: work queued earlier has failed");
  *done = state == CL_COMPLETE;
  return TENON_OK;
}

tenon_status event_sync(tenon_device, tenon_event event, tenon_err* err) {
  return wait_for(read(event).event, "event_sync", err);
}

}  // namespace opencl
