// SPDX-License-Identifier: Apache-2.0
// Streams and events: the group `async`.
#include <atomic>
#include <memory>
#include <new>

#include "device.hpp"

struct tenon_event_s {
  ascend::Event event = nullptr;
  std::atomic<bool> recorded{false};
};

namespace ascend {
namespace {

// AscendCL takes no priority that means the same on every chip, so all streams have the usual one.
tenon_status stream_create(tenon_device device, int32_t, tenon_stream* out, tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  std::unique_ptr<tenon_stream_s> stream(new (std::nothrow) tenon_stream_s);
  if (!stream) return tenon::fail_host_memory(err);
  if (const int error = acl.aclrtCreateStream(&stream->stream))
    return fail_acl(err, "aclrtCreateStream", error);
  *out = stream.release();
  return TENON_OK;
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  acl.aclrtSetDevice(device->index);
  acl.aclrtSynchronizeStream(stream->stream);
  acl.aclrtDestroyStream(stream->stream);
  delete stream;
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
  }
  *done = recorded == kRecordedComplete;
  return TENON_OK;
}

tenon_status event_sync(tenon_device device, tenon_event event, tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  const int error = acl.aclrtSynchronizeEvent(event->event);
  return error ? fail_acl(err, "aclrtSynchronizeEvent", error) : TENON_OK;
}

}  // namespace

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
