// SPDX-License-Identifier: Apache-2.0
// Streams and events, for plugins whose create_stream and create_event make something.
#include "device/plugin.hpp"

struct tenon_event_s {
  C_Event handle;
  bool is_recorded;
};

namespace tenon::paddle {

C_Stream stream_of(tenon_device device, tenon_stream stream) {
  return stream ? reinterpret_cast<C_Stream>(stream) : device->own_stream;
}

void sync_stream(tenon_device device, C_Stream stream) {
  const C_DeviceInterface& slots = device->plugin->slots();
  if (!stream && !slots.synchronize_device) stream = device->own_stream;
  if (stream && slots.synchronize_stream)
    TENON_PADDLE_CALL(device, synchronize_stream, &device->handle, stream);
  else if (slots.synchronize_device)
    TENON_PADDLE_CALL(device, synchronize_device, &device->handle);
}

void finish_call(tenon_device device, tenon_stream stream) {
  if (!stream) sync_stream(device, device->own_stream);
}

tenon_status sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  return guarded(err, [&] { sync_stream(device, stream ? stream_of(device, stream) : nullptr); });
}

namespace {

tenon_status stream_create(tenon_device device, int32_t, tenon_stream* out, tenon_err* err) {
  return guarded(err, [&] {
    C_Stream stream = nullptr;
    TENON_PADDLE_CALL(device, create_stream, &device->handle, &stream);
    if (!stream)
      throw Error(TENON_INTERNAL, device->plugin->kind() + ": create_stream gave no stream");
    *out = reinterpret_cast<tenon_stream>(stream);
  });
}

void stream_destroy(tenon_device device, tenon_stream stream) {
  guarded(nullptr, [&] {
    sync_stream(device, stream_of(device, stream));
    TENON_PADDLE_CALL(device, destroy_stream, &device->handle, stream_of(device, stream));
  });
}

tenon_status event_create(tenon_device device, uint32_t, tenon_event* out, tenon_err* err) {
  return guarded(err, [&] {
    C_Event event = nullptr;
    TENON_PADDLE_CALL(device, create_event, &device->handle, &event);
    *out = new tenon_event_s{event, false};
  });
}

void event_destroy(tenon_device device, tenon_event event) {
  guarded(nullptr, [&] {
    if (event->is_recorded)
      TENON_PADDLE_CALL(device, synchronize_event, &device->handle, event->handle);
    TENON_PADDLE_CALL(device, destroy_event, &device->handle, event->handle);
  });
  delete event;
}

tenon_status event_record(tenon_device device, tenon_event event, tenon_stream stream,
                          tenon_err* err) {
  return guarded(err, [&] {
    TENON_PADDLE_CALL(device, record_event, &device->handle, stream_of(device, stream),
                      event->handle);
    event->is_recorded = true;
  });
}

tenon_status stream_wait(tenon_device device, tenon_stream stream, tenon_event event,
                         tenon_err* err) {
  return guarded(err, [&] {
    if (!event->is_recorded) return;
    if (device->plugin->slots().stream_wait_event)
      TENON_PADDLE_CALL(device, stream_wait_event, &device->handle, stream_of(device, stream),
                        event->handle);
    else  // the host waits instead, which orders later work too
      TENON_PADDLE_CALL(device, synchronize_event, &device->handle, event->handle);
  });
}

tenon_status event_query(tenon_device device, tenon_event event, int32_t* done, tenon_err* err) {
  return guarded(err, [&] {
    int32_t is_done = 1;
    if (event->is_recorded) {
      if (device->plugin->slots().query_event) {
        std::lock_guard lock(device->plugin->mutex());
        is_done = device->plugin->slots().query_event(&device->handle, event->handle) == C_SUCCESS;
      } else {
        TENON_PADDLE_CALL(device, synchronize_event, &device->handle, event->handle);
      }
    }
    *done = is_done;
  });
}

tenon_status event_sync(tenon_device device, tenon_event event, tenon_err* err) {
  return guarded(err, [&] {
    if (event->is_recorded)
      TENON_PADDLE_CALL(device, synchronize_event, &device->handle, event->handle);
  });
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

}  // namespace tenon::paddle
