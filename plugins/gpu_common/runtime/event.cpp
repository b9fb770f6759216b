// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <new>

#include "runtime/device.hpp"

struct tenon_event_s {
  gpu::Event event = nullptr;
  std::atomic<bool> recorded{false};
  std::atomic<bool> synchronous{false};
};

namespace gpu {

tenon_status event_create(tenon_device device, uint32_t, tenon_event* out, tenon_err* err) {
  Current current(device);
  auto* event = new (std::nothrow) tenon_event_s;
  if (!event) return fail_host_memory(err);
  if (Error error = driver.event_create(&event->event, kEventDisableTiming)) {
    delete event;
    return fail_device(device, nullptr, error, err, "create an event");
  }
  *out = event;
  return TENON_OK;
}

void event_destroy(tenon_device device, tenon_event event) {
  Current current(device);
  driver.event_destroy(event->event);
  delete event;
}

tenon_status event_record(tenon_device device, tenon_event event, tenon_stream stream,
                          tenon_err* err) {
  Current current(device);
  tenon_stream_s& on = stream_of(device, stream);
  Error error = follow_synchronous(on);
  if (!error) error = driver.event_record(event->event, on.stream);
  if (error) return fail_device(device, &on, error, err, "event_record");
  event->synchronous.store(on.is_synchronous, std::memory_order_relaxed);
  event->recorded.store(true, std::memory_order_release);
  return TENON_OK;
}

tenon_status stream_wait(tenon_device device, tenon_stream stream, tenon_event event,
                         tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  Current current(device);
  tenon_stream_s& on = stream_of(device, stream);
  Error error = driver.stream_wait(on.stream, event->event, 0);
  submitted(on);
  return error ? fail_device(device, &on, error, err, "wait for an event on a stream") : TENON_OK;
}

tenon_status event_query(tenon_device device, tenon_event event, int32_t* done, tenon_err* err) {
  *done = 1;
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  Current current(device);
  // Note [The synchronous stream]: its work counts as finished.
  Error error = event->synchronous.load(std::memory_order_relaxed)
                    ? driver.event_sync(event->event)
                    : driver.event_query(event->event);
  if (error == error::kNotReady) {
    *done = 0;
    return TENON_OK;
  }
  return error ? fail_device(device, nullptr, error, err, "event_query") : TENON_OK;
}

tenon_status event_sync(tenon_device device, tenon_event event, tenon_err* err) {
  if (!event->recorded.load(std::memory_order_acquire)) return TENON_OK;
  Current current(device);
  Error error = driver.event_sync(event->event);
  return error ? fail_device(device, nullptr, error, err, "event_sync") : TENON_OK;
}

}  // namespace gpu
