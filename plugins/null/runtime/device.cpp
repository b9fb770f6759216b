// SPDX-License-Identifier: Apache-2.0
// The null device: one piece of hardware, always there.
#include "null.hpp"

namespace null_device {
namespace {

constexpr uint32_t kCount = 1;
tenon_device_s devices[kCount] = {{0}};

// Called before anything else. If your driver is absent, say so with tenon::fail: the plugin is
// then refused with your text. If it is there and finds no hardware, report zero devices.
tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err*) {
  for (uint32_t i = 0; i < kCount && i < capacity; ++i) {
    out[i] = {.struct_size = sizeof(tenon_device_info),
              .flags = 0,  // not TENON_DEVICE_HOST_MEMORY: tensors come and go through copy()
              .name = "Null device",
              .arch = "none",
              .dl_device_type = 12};  // kDLExtDev: DLPack has no number for it
  }
  *count = kCount;
  return TENON_OK;
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) {
  if (index >= kCount) return tenon::fail(err, TENON_NOT_FOUND, "null: there is only device 0");
  *out = &devices[index];
  return TENON_OK;
}

void close(tenon_device) {}

// Every call finishes before it returns, so there is nothing to wait for.
tenon_status sync(tenon_device, tenon_stream, tenon_err*) { return TENON_OK; }

}  // namespace

// The whole device at a glance.
const tenon_device_api kDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .features = 0,
    .kind = "null",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .fill = fill,
    .sync = sync,
    .async = nullptr,  // no streams: the host uses the synchronous one
};

}  // namespace null_device
