// SPDX-License-Identifier: Apache-2.0
// Streams and events: the group `async`.
#include <atomic>
#include <memory>
#include <new>

#include "device.hpp"

struct tenon_event_s {
  ascend::Event event = nullptr;
  std::atomic<bool> recorded{false};
  std::atomic<uint32_t> aborts_before{0};  // of the device, when it was recorded
};

namespace ascend {
namespace {

// AscendCL takes no priority that means the same on every chip, so all streams have the usual one.
tenon_status stream_create(tenon_device device, int32_t, tenon_stream* out, tenon_err* err) try {
  if (const tenon_status status = make_current(device, err)) return status;
  std::unique_ptr<tenon_stream_s> stream(new (std::nothrow) tenon_stream_s);
  if (!stream) return tenon::fail_host_memory(err);
  if (const int error = acl.aclrtCreateStream(&stream->stream))
    return fail_acl(err, "aclrtCreateStream", error);
  try {
    const std::lock_guard lock(device->streams_mutex);
    device->streams.insert(stream.get());
  } catch (const std::bad_alloc&) {
    acl.aclrtDestroyStream(stream->stream);
    return tenon::fail_host_memory(err);
  }
  *out = stream.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  acl.aclrtSetDevice(device->index);
  {
    const std::lock_guard lock(device->streams_mutex);
    device->streams.erase(stream);
  }
  acl.aclrtSynchronizeStream(stream->stream);
  stream->executors.clear();
  acl.aclrtDestroyStream(stream->stream);
  delete stream;
}

// Work that was dropped records no event, so that a wait for this one would never end.
tenon_status check_dropped(tenon_device device, tenon_event event, tenon_err* err) {
  if (device->aborts == event->aborts_before) return TENON_OK;
  int recorded = 0;
  if (!acl.aclrtQueryEventStatus(event->event, &recorded) && recorded == kRecordedComplete)
    return TENON_OK;
  return tenon::fail(err, TENON_ABORTED,
                     "ascend: a communicator was aborted, and with it the work before this event");
}

// Events of aclrtCreateEventExWithFlag may be recorded again; those of aclrtCreateEvent are to be reset first.
tenon_status event_create(tenon_device device, uint32_t, tenon_event* out, tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  std::unique_ptr<tenon_event_s> event(new (std::nothrow) tenon_event_s);
  if (!event) return tenon::fail_host_memory(err);
  if (const int error = acl.aclrtCreateEventExWithFlag(&event->event, kEventSync))
    return fail_acl(err, "aclrtCreateEventExWithFlag", error);
  *out = event.release();
  return TENON_OK;
}

void event_destroy(tenon_device device, tenon_event event) {
  acl.aclrtSetDevice(device->index);
  acl.aclrtDestroyEvent(event->event);
  delete event;
}

tenon_status event_record(tenon_device device, tenon_event event, tenon_stream stream,
                          tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  event->aborts_before = device->aborts.load();
  if (const int error = acl.aclrtRecordEvent(event->event, stream_of(device, stream)))
    return fail_acl(err, "aclrtRecordEvent", error);
  // Work of the synchronous stream is done by now, and so is the event.
  const int error = stream ? 0 : acl.aclrtSynchronizeStream(device->stream);
  if (error) return fail_acl(err, "aclrtSynchronizeStream", error);
  event->recorded.store(true, std::memory_order_release);
  return TENON_OK;
}

tenon_status stream_wait(tenon_device device, tenon_stream stream, tenon_event event,
                         tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  if (const tenon_status status = check_dropped(device, event, err)) return status;
  if (!stream) {  // later calls there begin when this one has returned
    const int error = acl.aclrtSynchronizeEvent(event->event);
    return error ? fail_acl(err, "aclrtSynchronizeEvent", error) : TENON_OK;
  }
  const int error = acl.aclrtStreamWaitEvent(stream->stream, event->event);
  return error ? fail_acl(err, "aclrtStreamWaitEvent", error) : TENON_OK;
}

tenon_status event_query(tenon_device device, tenon_event event, int32_t* done, tenon_err* err) {
  int recorded = kRecordedComplete;
  if (event->recorded.load(std::memory_order_acquire)) {
    if (const tenon_status status = make_current(device, err)) return status;
    if (const int error = acl.aclrtQueryEventStatus(event->event, &recorded))
      return fail_acl(err, "aclrtQueryEventStatus", error);
    if (recorded != kRecordedComplete)
      if (const tenon_status status = check_dropped(device, event, err)) return status;
  }
  *done = recorded == kRecordedComplete;
  return TENON_OK;
}

tenon_status event_sync(tenon_device device, tenon_event event, tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  if (const tenon_status status = check_dropped(device, event, err)) return status;
  const int error = acl.aclrtSynchronizeEvent(event->event);
  return error ? fail_acl(err, "aclrtSynchronizeEvent", error) : TENON_OK;
}

}  // namespace

// All streams that have work, as one that waits for an event of a dropped stream would wait for ever. An event
// that is recorded meanwhile may be dropped, too, so that the number changes before and after.
void abort_streams(tenon_device device) {
  ++device->aborts;
  const std::lock_guard lock(device->streams_mutex);
  for (const tenon_stream stream : device->streams) {
    int status = kNotReady;
    if (acl.aclrtStreamQuery) acl.aclrtStreamQuery(stream->stream, &status);
    if (status != kNotReady) continue;
    stream->aborted = true;
    if (acl.aclrtStreamAbort) acl.aclrtStreamAbort(stream->stream);
  }
  if (acl.aclrtStreamAbort) acl.aclrtStreamAbort(device->stream);
  ++device->aborts;
}

tenon_status check_aborted(tenon_stream stream, tenon_err* err) {
  if (!stream->aborted.exchange(false)) return TENON_OK;
  return tenon::fail(err, TENON_ABORTED,
                     "ascend: a communicator was aborted, and with it the work of this stream");
}

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

}  // namespace ascend
