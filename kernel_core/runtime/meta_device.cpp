// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/meta_device.hpp"

#include <cstring>

#include "kernel_core/types/status.hpp"

namespace tenon::core {
namespace {

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err*) {
  if (capacity > 0) {
    std::strcpy(out->name, "shapes and dtypes without data");
    out->dl_device_type = 12;  // kDLExtDev
  }
  *count = 1;
  return TENON_OK;
}

tenon_status open(uint32_t, tenon_device* out, tenon_err*) {
  static char handle;
  *out = reinterpret_cast<tenon_device>(&handle);
  return TENON_OK;
}

void close(tenon_device) {}

// The allocator answers for this device itself; nothing else has a reason to ask.
tenon_status alloc(tenon_device, const tenon_alloc_request*, void**, tenon_err* err) {
  return fail(err, TENON_UNSUPPORTED, "meta has no memory");
}

void free(tenon_device, void*, uint64_t, tenon_stream) {}

tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err* err) {
  if (request->direction != TENON_COPY_DEVICE_TO_HOST || request->bytes == 0) return TENON_OK;
  return fail(err, TENON_FAILED_PRECONDITION,
              "a tensor on meta has a shape and a dtype but no values to read; "
              "create it on a device that computes");
}

tenon_status fill(tenon_device, void*, uint64_t, uint64_t, const void*, uint32_t, tenon_stream,
                  tenon_err*) {
  return TENON_OK;
}

tenon_status sync(tenon_device, tenon_stream, tenon_err*) { return TENON_OK; }

}  // namespace

const tenon_device_api kMetaDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .kind = "meta",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = free,
    .copy = copy,
    .fill = fill,
    .sync = sync,
};

}  // namespace tenon::core
