// SPDX-License-Identifier: Apache-2.0
// Streams and events of XRE: the group `async`. Copies on the device, those from and to pinned memory, and fills are queued on
// the stream. An operator of XDNN runs on the default stream (library/call.hpp says why): it waits for what its stream was
// given before, and has finished when it returns. So streams let copies and other streams go on beside operators, and
// keep the order that programs want of them; they do not let the program run ahead of operators.
#include <memory>
#include <new>

#include "device.hpp"

struct tenon_event_s {
  void* event = nullptr;
  std::atomic<bool> recorded{false};
};

namespace kunlun {
namespace {

// XRE takes no priority.
tenon_status stream_create(tenon_device device, int32_t, tenon_stream* out, tenon_err* err) try {
  if (const tenon_status status = make_current(device, err)) return status;
  std::unique_ptr<tenon_stream_s> stream(new (std::nothrow) tenon_stream_s);
  if (!stream) return tenon::fail_host_memory(err);
  if (const int error = xpu.stream_create(&stream->stream))
    return fail_xpu(err, "xpu_stream_create", error);
  try {
    const std::lock_guard lock(device->streams_mutex);
    device->streams.insert(stream.get());
  } catch (const std::bad_alloc&) {
    xpu.stream_destroy(stream->stream);
    throw;
  }
  *out = stream.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  xpu.set_device(device->index);
  {
    const std::lock_guard lock(device->streams_mutex);
    device->streams.erase(stream);
  }
  xpu.wait(stream->stream);
  xpu.stream_destroy(stream->stream);
  delete stream;
}

tenon_status event_create(tenon_device device, uint32_t, tenon_event* out, tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  std::unique_ptr<tenon_event_s> event(new (std::nothrow) tenon_event_s);
  if (!event) return tenon::fail_host_memory(err);
  if (const int error = xpu.event_create(&event->event))
    return fail_xpu(err, "xpu_event_create", error);
  *out = event.release();
  return TENON_OK;
}

void event_destroy(tenon_device device, tenon_event event) {
  xpu.set_device(device->index);
  xpu.event_destroy(event->event);
  delete event;
}

tenon_status event_record(tenon_device device, tenon_event event, tenon_stream stream,
                          tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  if (const int error = xpu.event_record(event->event, stream_of(stream)))
    return fail_xpu(err, "xpu_event_record", error);
  // Work of the synchronous stream is done by now, and so is the event.
  const int error = stream ? 0 : xpu.wait(nullptr);
  if (error) return fail_xpu(err, "xpu_wait", error);
  event->recorded.store(true, std::memory_order_release);
  return TENON_OK;
}

tenon_status event_sync(tenon_device device, tenon_event event, tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  const int error = xpu.event_wait(event->event);
  return error ? fail_xpu(err, "xpu_event_wait", error) : TENON_OK;
}

tenon_status stream_wait(tenon_device device, tenon_stream stream, tenon_event event,
                         tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  if (!stream) return event_sync(device, event, err);  // later calls there begin when it returns
  if (const tenon_status status = make_current(device, err)) return status;
  const int error = xpu.stream_wait_event(stream->stream, event->event);
  return error ? fail_xpu(err, "xpu_stream_wait_event", error) : TENON_OK;
}

// XRE says "not yet" by some error, and has no other for a query.
tenon_status event_query(tenon_device device, tenon_event event, int32_t* done, tenon_err* err) {
  *done = 1;
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  *done = xpu.event_query(event->event) == 0;
  return TENON_OK;
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

bool has_streams() {
  return xpu.stream_create && xpu.stream_destroy && xpu.copy_async && xpu.event_create &&
         xpu.event_destroy && xpu.event_record && xpu.event_wait && xpu.event_query &&
         xpu.stream_wait_event;
}

}  // namespace kunlun
