// SPDX-License-Identifier: Apache-2.0
// The runtime of a device whose memory is the host's: as simple plugins are, with functions that do
// nothing and leave their results untouched. FAULT_ macros make it wrong in one way each.
#include <paddle/phi/backends/device_ext.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#define STANDIN_TEXT_OF(name) #name
#define STANDIN_TEXT(name) STANDIN_TEXT_OF(name)

namespace {

int current = 0;

C_Status initialize() {
#ifdef FAULT_INITIALIZE_FAILS
  return C_FAILED;
#else
  return C_SUCCESS;
#endif
}
C_Status set_device(const C_Device device) {
  current = device->id;
  return C_SUCCESS;
}
C_Status get_device(const C_Device device) {
  device->id = current;
  return C_SUCCESS;
}
C_Status get_device_count(size_t* count) {
#ifdef FAULT_COUNT_FAILS
  return C_INTERNAL_ERROR;
#endif
  *count = 2;
  return C_SUCCESS;
}
C_Status get_device_list(size_t* devices) {
  devices[0] = 0;
  devices[1] = 1;
  return C_SUCCESS;
}

C_Status create_stream(const C_Device, C_Stream*) { return C_SUCCESS; }
C_Status stream(const C_Device, C_Stream) { return C_SUCCESS; }
C_Status create_event(const C_Device, C_Event*) { return C_SUCCESS; }
C_Status event(const C_Device, C_Event) { return C_SUCCESS; }
C_Status record_event(const C_Device, C_Stream, C_Event) { return C_SUCCESS; }
C_Status synchronize_device(const C_Device) { return C_SUCCESS; }

// 8 bytes off every requested alignment.
C_Status allocate(const C_Device, void** memory, size_t size) {
  if (size > (size_t{1} << 40)) return C_FAILED;
  char* block = static_cast<char*>(std::malloc(size + 8));
  if (!block) return C_FAILED;
  *memory = block + 8;
  return C_SUCCESS;
}
[[gnu::unused]] C_Status deallocate(const C_Device, void* memory, size_t) {
  std::free(static_cast<char*>(memory) - 8);
  return C_SUCCESS;
}
// Done, though not as asked: to be reported and not to be taken for a failure.
[[gnu::unused]] C_Status copy(const C_Device, void* dst, const void* src, size_t size) {
  std::memcpy(dst, src, size);
  return C_WARNING;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void InitPlugin(CustomRuntimeParams* params) {
  PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params);
#ifdef FAULT_THROWS
  throw std::runtime_error("no driver on this machine");
#endif
#ifdef FAULT_NO_TYPE
  return;
#endif
#ifdef FAULT_OLD_VERSION
  params->version.patch = 0;
#endif
  params->device_type = STANDIN_TEXT(STANDIN);
#ifdef FAULT_BAD_NAME
  params->device_type = "Stand-In";
#endif
  params->sub_device_type = "v0";
  C_DeviceInterface* interface = params->interface;
#if defined(FAULT_OLD_LAYOUT)  // before xccl_get_comm_name
  std::memset(static_cast<void*>(interface), 0, 912);
#elif defined(FAULT_NEW_LAYOUT)
  std::memset(static_cast<void*>(interface), 0, 936);
#else
  std::memset(static_cast<void*>(interface), 0, sizeof *interface);
#endif
  interface->initialize = initialize;
  interface->set_device = set_device;
  interface->get_device = get_device;
  interface->get_device_count = get_device_count;
  interface->get_device_list = get_device_list;
  interface->create_stream = create_stream;
  interface->destroy_stream = stream;
  interface->synchronize_stream = stream;
  interface->create_event = create_event;
  interface->record_event = record_event;
  interface->destroy_event = event;
  interface->synchronize_event = event;
  interface->synchronize_device = synchronize_device;
  interface->device_memory_allocate = allocate;
#ifndef FAULT_NO_DEALLOCATE
  interface->device_memory_deallocate = deallocate;
#endif
#ifndef FAULT_NO_COPY
  interface->memory_copy_h2d = copy;
  interface->memory_copy_d2h = copy;
#endif
#ifdef FAULT_RESERVED  // where profiler_initialize was before the layout changed
  interface->reserved_ccl_api[7] = reinterpret_cast<void*>(initialize);
#endif
}
