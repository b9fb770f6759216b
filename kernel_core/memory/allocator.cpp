// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/memory/allocator.hpp"

namespace tenon::core {

tenon_status allocate(Device& device, uint64_t bytes, tenon_stream stream, void** out,
                      tenon_err* err) {
  *out = nullptr;
  if (bytes == 0 || device.id == TENON_DEVICE_META) return TENON_OK;
  if (bytes > INT64_MAX) {
    return fail(err, TENON_OUT_OF_MEMORY, "%s > alloc: %llu bytes are more than any device has",
                device.name, static_cast<unsigned long long>(bytes));
  }
  tenon_alloc_request request = {.struct_size = sizeof request,
                                 .kind = TENON_ALLOC_DEVICE,
                                 .must_understand = 0,
                                 .bytes = (bytes + 63) & ~uint64_t{63},
                                 .align = 64,
                                 .stream = stream};
  return device_result(device, "alloc", device.api->alloc(device.handle, &request, out, err), err);
}

void deallocate(Device& device, void* data, uint64_t bytes, tenon_stream stream) noexcept {
  if (data) device.api->free(device.handle, data, (bytes + 63) & ~uint64_t{63}, stream);
}

}  // namespace tenon::core
