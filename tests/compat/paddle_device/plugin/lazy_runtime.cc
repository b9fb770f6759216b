// SPDX-License-Identifier: Apache-2.0
// A device that does nothing before it must: copies on a stream wait in a queue until the stream,
// an event or the device is waited for. What is forgotten to be ordered shows as old values.
#include <paddle/phi/backends/device_ext.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <utility>
#include <vector>

struct C_Stream_st {
  std::vector<std::function<void()>> queue;
  void drain() {
    for (auto& work : std::exchange(queue, {})) work();
  }
};
struct C_Event_st {
  C_Stream stream;
};

namespace {

std::set<C_Stream>& streams() {
  static std::set<C_Stream> all;
  return all;
}

C_Status one_device(size_t* count) {
  *count = 1;
  return C_SUCCESS;
}
C_Status list(size_t* devices) {
  devices[0] = 0;
  return C_SUCCESS;
}
C_Status device(const C_Device) { return C_SUCCESS; }

C_Status create_stream(const C_Device, C_Stream* stream) {
  *stream = new C_Stream_st;
  streams().insert(*stream);
  return C_SUCCESS;
}
C_Status destroy_stream(const C_Device, C_Stream stream) {
  if (!stream->queue.empty()) return C_ERROR;
  streams().erase(stream);
  delete stream;
  return C_SUCCESS;
}
C_Status synchronize_stream(const C_Device, C_Stream stream) {
  stream->drain();
  return C_SUCCESS;
}
C_Status synchronize_device(const C_Device) {
  for (C_Stream stream : streams()) stream->drain();
  return C_SUCCESS;
}
C_Status create_event(const C_Device, C_Event* event) {
  *event = new C_Event_st{nullptr};
  return C_SUCCESS;
}
C_Status destroy_event(const C_Device, C_Event event) {
  delete event;
  return C_SUCCESS;
}
C_Status record_event(const C_Device, C_Stream stream, C_Event event) {
  event->stream = stream;
  return C_SUCCESS;
}
// A stream that is gone has nothing left to do.
C_Status synchronize_event(const C_Device, C_Event event) {
  if (streams().count(event->stream)) event->stream->drain();
  return C_SUCCESS;
}
C_Status query_event(const C_Device, C_Event event) {
  return streams().count(event->stream) && !event->stream->queue.empty() ? C_FAILED : C_SUCCESS;
}

C_Status allocate(const C_Device, void** memory, size_t size) {
  *memory = std::malloc(size);
  return *memory ? C_SUCCESS : C_FAILED;
}
C_Status deallocate(const C_Device, void* memory, size_t) {
  std::free(memory);
  return C_SUCCESS;
}
C_Status copy(const C_Device, void* dst, const void* src, size_t size) {
  std::memcpy(dst, src, size);
  return C_SUCCESS;
}
C_Status async_copy(const C_Device, C_Stream stream, void* dst, const void* src, size_t size) {
  stream->queue.push_back([=] { std::memcpy(dst, src, size); });
  return C_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void InitPlugin(CustomRuntimeParams* params) {
  PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params);
  params->device_type = "standin_lazy";
  // This one clears nothing: what it does not set must count as absent.
  C_DeviceInterface* interface = params->interface;
  interface->set_device = device;
  interface->get_device = device;
  interface->get_device_count = one_device;
  interface->get_device_list = list;
  interface->create_stream = create_stream;
  interface->destroy_stream = destroy_stream;
  interface->synchronize_stream = synchronize_stream;
  interface->synchronize_device = synchronize_device;
  interface->create_event = create_event;
  interface->destroy_event = destroy_event;
  interface->record_event = record_event;
  interface->synchronize_event = synchronize_event;
  interface->query_event = query_event;
  interface->device_memory_allocate = allocate;
  interface->device_memory_deallocate = deallocate;
  interface->memory_copy_h2d = copy;
  interface->memory_copy_d2h = copy;
  interface->memory_copy_d2d = copy;
  interface->async_memory_copy_d2d = async_copy;
}
