// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host: what a device copies from and to without a detour, as tensors of the host device.
#include <memory>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/memory/device_memory.hpp"
#include "kernel_core/runtime/stream.hpp"
#include "kernel_core/runtime/tensor.hpp"
#include "kernel_core/runtime/tensor_shape.hpp"

namespace tenon::core {
namespace {

constexpr uint64_t kAlign = 4096;

struct Pinned {
  Device* device;
  void* memory;
  uint64_t bytes;
};

// Copies from pinned memory run after the call that queued them has returned, so that they are waited for.
void drop_pinned(void* user) {
  auto* pinned = static_cast<Pinned*>(user);
  Device& device = *pinned->device;
  synchronize_streams(device);
  device.api->free(device.handle, pinned->memory, pinned->bytes, nullptr);
  DeviceMemory::of(device).count_pinned(-1);
  delete pinned;
}

tenon_status allocate(Device& device, uint64_t bytes, void** out, tenon_err* err) {
  const tenon_alloc_request request = {.struct_size = sizeof request,
                                       .kind = TENON_ALLOC_PINNED,
                                       .must_understand = 0,
                                       .bytes = bytes,
                                       .align = kAlign,
                                       .stream = nullptr};
  *out = nullptr;
  TENON_TRY(
      device_result(device, "alloc", device.api->alloc(device.handle, &request, out, err), err));
  if (*out) return TENON_OK;
  return fail(err, TENON_INTERNAL,
              "%s > alloc: returned OK and no memory; this is a bug in the plugin", device.name);
}

}  // namespace

tenon_status slots::tensor_create_pinned(tenon_device_id id, int32_t dtype, int32_t ndim,
                                         const int64_t* shape, tenon_tensor** out,
                                         tenon_err* err) try {
  Device* device;
  int64_t numel;
  TENON_TRY(open_device(id, &device, err));
  TENON_TRY(check_dtype(dtype, err));
  TENON_TRY(count_elements(ndim, shape, &numel, err));
  const tenon_device_id host = host_device();
  if (device->host_memory || host == TENON_DEVICE_NONE || numel == 0)  // it is reached as it is
    return tensor_create(host == TENON_DEVICE_NONE ? id : host, dtype, ndim, shape, out, err);
  auto pinned = std::make_unique<Pinned>(
      Pinned{device, nullptr, static_cast<uint64_t>(numel) * dtype_size(dtype)});
  TENON_TRY(allocate(*device, pinned->bytes, &pinned->memory, err));
  DeviceMemory::of(*device).count_pinned(+1);
  const tenon_status status = tensor_wrap(host, dtype, ndim, shape, nullptr, pinned->memory, 0,
                                          drop_pinned, pinned.get(), out, err);
  if (status == TENON_OK)
    pinned.release();
  else
    drop_pinned(pinned.release());
  return status;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

}  // namespace tenon::core
