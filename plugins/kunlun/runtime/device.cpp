// SPDX-License-Identifier: Apache-2.0
// Devices of XRE: which there are, opening, waiting.
#include "device.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

namespace kunlun {

tenon_status fail_xpu(tenon_err* err, const char* function, int error) {
  const int code = std::abs(error);
  const bool no_memory = code == kNoDeviceMemory || code == kNoHostMemory;
  return tenon::fail(err, no_memory ? TENON_OUT_OF_MEMORY : TENON_INTERNAL,
                     "kunlun: " + describe_failure(function, error));
}

tenon_status make_current(tenon_device device, tenon_err* err) {
  const int error = xpu.set_device(device->index);
  return error ? fail_xpu(err, "xpu_set_device", error) : TENON_OK;
}

namespace {

// DeviceModel of xpu/defs.h: what begins a generation.
const char* generation(uint64_t model) {
  return model < 2 ? "kunlun1" : model < 300 ? "kunlun2" : model < 600 ? "kunlun3" : "unknown";
}

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err* err) {
  if (!runtime_problem().empty())
    return tenon::fail(err, TENON_UNAVAILABLE, "kunlun: " + runtime_problem());
  int found = 0;
  if (const int error = xpu.device_count(&found)) return fail_xpu(err, "xpu_device_count", error);
  for (uint32_t i = 0; i < static_cast<uint32_t>(found) && i < capacity; ++i) {
    out[i] = {.struct_size = sizeof(tenon_device_info), .flags = 0, .dl_device_type = 12};
    uint64_t model = 0, bytes = 0;
    const bool is_known = !xpu.device_attribute(&model, kModel, static_cast<int>(i));
    std::snprintf(out[i].name, sizeof out[i].name, "Kunlun (model %llu)",
                  static_cast<unsigned long long>(model));
    std::snprintf(out[i].arch, sizeof out[i].arch, "%s", is_known ? generation(model) : "unknown");
    if (!xpu.device_attribute(&bytes, kMemoryBytes, static_cast<int>(i)))
      out[i].memory_bytes = bytes;
  }
  *count = static_cast<uint32_t>(found);
  return TENON_OK;
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) {
  std::unique_ptr<tenon_device_s> device(new (std::nothrow) tenon_device_s);
  if (!device) return tenon::fail_host_memory(err);
  device->index = static_cast<int>(index);
  if (const tenon_status status = make_current(device.get(), err)) return status;
  *out = device.release();
  return TENON_OK;
}

void close(tenon_device device) {
  xpu.set_device(device->index);
  xpu.wait(nullptr);
  if (device->context) xpu.destroy_context(device->context);
  delete device;
}

tenon_status sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  if (const tenon_status status = make_current(device, err)) return status;
  int error = xpu.wait(stream_of(stream));
  if (!stream) {
    const std::lock_guard lock(device->streams_mutex);
    for (const tenon_stream each : device->streams)
      if (const int other = xpu.wait(each->stream); !error) error = other;
  }
  return error ? fail_xpu(err, "xpu_wait", error) : TENON_OK;
}

}  // namespace

const tenon_device_api kDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .features = 0,
    .kind = "kunlun",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .fill = fill,
    .sync = sync,
    .profile = &kProfile,
};

}  // namespace kunlun
