// SPDX-License-Identifier: Apache-2.0
// Devices, streams, events and host functions.
#include <cstdio>
#include <cstring>

#include "../failures.hpp"
#include "handles.hpp"
#include "trace.hpp"

namespace simulated {

Handles<Stream>& stream_handles() {
  static auto* all = new Handles<Stream>;
  return *all;
}

Handles<Event>& event_handles() {
  static auto* all = new Handles<Event>;
  return *all;
}

Error enter(const char* name) {
  if (Error error = count_call(name)) return error;
  trace_call();
  return is_initialised() ? error::SUCCESS : error::NOT_INITIALIZED;
}

// The default streams have numbers for handles: 0, 1 (legacy) and 2 (one for each thread, which is
// the legacy one here).
Error find_stream(StreamHandle handle, std::shared_ptr<Stream>* out) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) {
    Device* device = current();
    if (!device) return error::INVALID_CONTEXT;
    *out = device->default_stream();
  } else {
    *out = stream_handles().find(handle);
    if (!*out) return error::INVALID_HANDLE;
  }
  return (*out)->device.lost();
}

Error current_device(Device** out) {
  *out = current();
  return *out ? (*out)->lost() : error::INVALID_CONTEXT;
}

namespace api {

Error driver_version(int* version) {
  *version = SIMULATED_HIP ? 60443482 : 13000;
  return error::SUCCESS;
}

Error device_count(int* count) {
  *count = static_cast<int>(devices().size());
  return SIMULATED_HIP && *count == 0 ? error::NO_DEVICE : error::SUCCESS;
}

static Error find_device(int device, Device** out) {
  if (device < 0 || device >= static_cast<int>(devices().size())) return error::INVALID_DEVICE;
  *out = devices()[static_cast<size_t>(device)];
  return error::SUCCESS;
}

Error device_get(int* device, int index) {
  Device* found;
  TRY(find_device(index, &found));
  *device = index;
  return error::SUCCESS;
}

Error device_name(char* name, int capacity, int device) {
  Device* found;
  TRY(find_device(device, &found));
  std::snprintf(name, static_cast<size_t>(capacity), "%s", found->name().c_str());
  return error::SUCCESS;
}

Error device_uuid(char* uuid, int device) {
  Device* found;
  TRY(find_device(device, &found));
  std::memcpy(uuid, "simulated device", 16);
  uuid[15] = static_cast<char>('0' + device);
  return error::SUCCESS;
}

Error device_memory(size_t* bytes, int device) {
  Device* found;
  TRY(find_device(device, &found));
  *bytes = found->memory.bytes();
  return error::SUCCESS;
}

Error device_attribute(int* value, int attribute, int device) {
  Device* found;
  TRY(find_device(device, &found));
  return attribute_value(attribute, device, value) ? error::SUCCESS : error::INVALID_VALUE;
}

Error device_bus_id(char* text, int capacity, int device) {
  Device* found;
  TRY(find_device(device, &found));
  std::snprintf(text, static_cast<size_t>(capacity), "0000:%02x:00.0", device + 1);
  return error::SUCCESS;
}

Error can_access_peer(int* yes, int device, int peer) {
  Device *one, *other;
  TRY(find_device(device, &one));
  TRY(find_device(peer, &other));
  *yes = one->can_access(*other);
  return error::SUCCESS;
}

Error priority_range(int* least, int* greatest) {
  if (least) *least = SIMULATED_HIP ? 1 : 0;
  if (greatest) *greatest = SIMULATED_HIP ? -1 : -5;
  return error::SUCCESS;
}

Error synchronize() {
  Device* device;
  TRY(current_device(&device));
  TRY(refuse_global_captures());
  device->wait_for_all();
  return device->lost();
}

// ---- streams ----

Error stream_create(StreamHandle* out, unsigned flags, int priority) {
  Device* device;
  TRY(current_device(&device));
  if (!out || flags > Stream::kNonBlocking) return error::INVALID_VALUE;
  *out = stream_handles().add(device->create_stream(flags, priority));
  return error::SUCCESS;
}

Error stream_create_plain(StreamHandle* out, unsigned flags) {
  return stream_create(out, flags, 0);
}

// Does not wait: the work that is queued still runs.
Error stream_destroy(StreamHandle handle) {
  std::shared_ptr<Stream> stream = stream_handles().take(handle);
  if (!stream) return error::INVALID_HANDLE;
  stream->device.forget_stream(stream);
  stream->finish();
  return error::SUCCESS;
}

Error stream_sync(StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  TRY(refuse_capture(*stream));
  stream->tail().wait();
  return stream->device.lost();
}

Error stream_query(StreamHandle handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  TRY(refuse_capture(*stream));
  if (!stream->tail().passed()) return error::NOT_READY;
  return stream->device.lost();
}

Error stream_wait(StreamHandle handle, EventHandle event_handle, unsigned) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  std::shared_ptr<Event> event = event_handles().find(event_handle);
  return event ? event->make_wait(*stream) : error::INVALID_HANDLE;
}

Error stream_capturing(StreamHandle handle, int* status) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  std::shared_ptr<Capture> capture = stream->capture();
  *status = !capture ? 0 : capture->invalidated ? 2 : 1;
  return error::SUCCESS;
}

Error stream_priority(StreamHandle handle, int* priority) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  *priority = stream->priority;
  return error::SUCCESS;
}

Error launch_host(StreamHandle handle, HostFunction function, void* user) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(handle, &stream));
  return stream->submit([=]() -> Error {
    function(user);
    return error::SUCCESS;
  });
}

// ---- events ----

Error event_create(EventHandle* out, unsigned flags) {
  Device* device;
  TRY(current_device(&device));
  *out = event_handles().add(std::make_shared<Event>(*device, flags));
  return error::SUCCESS;
}

Error event_destroy(EventHandle handle) {
  return event_handles().take(handle) ? error::SUCCESS : error::INVALID_HANDLE;
}

Error event_record(EventHandle handle, StreamHandle stream_handle) {
  std::shared_ptr<Stream> stream;
  TRY(find_stream(stream_handle, &stream));
  std::shared_ptr<Event> event = event_handles().find(handle);
  // An event belongs to the device that was current when it was made.
  if (!event || &event->device != &stream->device) return error::INVALID_HANDLE;
  return event->record(*stream);
}

Error event_query(EventHandle handle) {
  std::shared_ptr<Event> event = event_handles().find(handle);
  if (!event) return error::INVALID_HANDLE;
  TRY(event->device.lost());
  return event->query();
}

Error event_sync(EventHandle handle) {
  std::shared_ptr<Event> event = event_handles().find(handle);
  if (!event) return error::INVALID_HANDLE;
  TRY(event->sync());
  return event->device.lost();
}

Error event_elapsed(float* milliseconds, EventHandle begin, EventHandle end) {
  std::shared_ptr<Event> first = event_handles().find(begin), last = event_handles().find(end);
  if (!first || !last) return error::INVALID_HANDLE;
  return Event::elapsed(*first, *last, milliseconds);
}

}  // namespace api
}  // namespace simulated
