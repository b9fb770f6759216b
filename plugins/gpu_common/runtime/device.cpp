// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

tenon_device_s::tenon_device_s() = default;

tenon_device_s::~tenon_device_s() {
  if (!context && !synchronous.stream) return;
  {
    gpu::Current current(this);
    for (auto& library : libraries_) library.reset();
    gpu::destroy_stream(synchronous);
    if (synchronous.marker) gpu::driver.event_destroy(synchronous.marker);
    staging.close();
    profile.close();
  }
  gpu::vendor::close_context(ordinal, context);
}

namespace gpu {
namespace {

std::atomic<tenon_device> open_devices[kMaxDevices];

void put(char* to, size_t room, const std::string& text) {
  std::snprintf(to, room, "%s", text.c_str());
}

tenon_status count_devices(int* count, tenon_err* err) {
  GPU_TRY(load_driver(err));
  Error error = driver.device_count(count);
  if (error == error::kNoDevice) *count = 0;
  return error && error != error::kNoDevice ? fail_driver(err, error, "count devices") : TENON_OK;
}

std::string device_name(int ordinal) {
  char name[256] = {};
  driver.device_name(name, sizeof name, ordinal);
  return name;
}

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                       tenon_err* err) try {
  int found = 0;
  GPU_TRY(count_devices(&found, err));
  for (int i = 0; i < found && static_cast<uint32_t>(i) < capacity; ++i) {
    int ordinal = i;
    if (Error error = driver.device_get(&ordinal, i))
      return fail_driver(err, error, "describe device %d", i);
    size_t bytes = 0;
    driver.device_memory(&bytes, ordinal);
    char bus[32] = {};
    driver.device_bus_id(bus, sizeof bus, ordinal);
    out[i] = {.struct_size = sizeof(tenon_device_info),
              .memory_bytes = bytes,
              .dl_device_type = vendor::kDlDeviceType};
    put(out[i].name, sizeof out[i].name, device_name(ordinal));
    put(out[i].arch, sizeof out[i].arch, vendor::architecture(ordinal));
    put(out[i].bus_id, sizeof out[i].bus_id, bus);
  }
  *count = static_cast<uint32_t>(found);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) try {
  int found = 0;
  GPU_TRY(count_devices(&found, err));
  if (index >= static_cast<uint32_t>(found))
    return fail(err, TENON_NOT_FOUND, "open: expected an index below %d, got %u", found, index);
  auto device = std::make_unique<tenon_device_s>();
  if (Error error = driver.device_get(&device->ordinal, static_cast<int>(index)))
    return fail_driver(err, error, "open device %u", index);
  if (Error error = vendor::open_context(device->ordinal, &device->context))
    return fail_driver(err, error, "open device %u", index);
  Current current(device.get());
  device->name = device_name(device->ordinal);
  device->architecture = vendor::architecture(device->ordinal);
  int version = 0;
  driver.driver_version(&version);
  device->identity = device->architecture + "\ndriver " + std::to_string(version);
  const char* blocking = std::getenv(vendor::kBlockingVariable);
  device->blocking = blocking && *blocking && *blocking != '0';
  device->synchronous.is_synchronous = true;
  GPU_TRY(create_stream(device.get(), device->synchronous, 0, err));
  if (Error error = driver.event_create(&device->synchronous.marker, kEventDisableTiming))
    return fail_driver(err, error, "open device %u", index);
  *out = device.release();
  open_devices[index % kMaxDevices].store(*out, std::memory_order_release);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

void close(tenon_device device) {
  for (auto& each : open_devices) {
    tenon_device expected = device;
    each.compare_exchange_strong(expected, nullptr);
  }
  delete device;
}

// Closing a device has finished its work, and there are neither threads nor callbacks of ours.
tenon_status quiesce(uint64_t, tenon_err*) { return TENON_OK; }

const tenon_quiesce_api kQuiesce = {
    .struct_size = sizeof(tenon_quiesce_api),
    .reserved = 0,
    .quiesce = quiesce,
};

constexpr tenon_device_api device_table(const tenon_pool_api* pool) {
  return {
      .struct_size = sizeof(tenon_device_api),
      .revision = TENON_ABI_REVISION,
      .features = 0,
      .kind = vendor::kKind,
      .enumerate = enumerate,
      .open = open,
      .close = close,
      .alloc = alloc,
      .free = release,
      .copy = copy,
      .fill = fill,
      .sync = sync,
      .async = &kAsync,
      .pool = pool,
      .graph = &kGraph,
      .profile = &kProfile,
      .collective = &kCollective,
      .ipc = &kIpc,
      .quiesce = &kQuiesce,
      .compile = &kCompile,
      .exchange = &kExchange,
  };
}

}  // namespace

tenon_device open_device(uint32_t index) {
  return open_devices[index % kMaxDevices].load(std::memory_order_acquire);
}

int attribute(int ordinal, int number) {
  int value = 0;
  driver.device_attribute(&value, number, ordinal);
  return value;
}

tenon_status fail_device(tenon_device device, const tenon_stream_s* stream, Error error,
                         tenon_err* err, const char* format, ...) {
  char what[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (error == error::kAborted)
    return fail(err, TENON_ABORTED,
                "%s: a communicator was aborted while work was queued; its results are incomplete",
                what);
  if (!is_sticky(error)) return fail_driver(err, error, "%s", what);
  Error none = 0;
  device->lost.compare_exchange_strong(none, error);
  // Calls without a stream report the failure of work on some stream, most often this one.
  if (!stream) stream = &device->synchronous;
  const char* kernel = stream->last_kernel.load(std::memory_order_relaxed);
  if (!kernel) kernel = "none on this stream";
  if (device->blocking)
    return fail_driver(err, error, "%s: device %d is lost, after the kernel %s", what,
                       device->ordinal, kernel);
  return fail_driver(err, error,
                     "%s: device %d is lost; work queued earlier has failed, the last kernel "
                     "launched was %s (with %s=1 the error names the kernel at fault)",
                     what, device->ordinal, kernel, vendor::kBlockingVariable);
}

// The host's allocator serves steady states without a call of the driver; the driver's pool shares
// memory with other libraries in the process.
const tenon_device_api kDevice = device_table(nullptr);
const tenon_device_api kDeviceWithPool = device_table(&kPool);

}  // namespace gpu
