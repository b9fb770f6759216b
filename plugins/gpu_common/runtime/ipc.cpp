// SPDX-License-Identifier: Apache-2.0
// Device memory of one process, used by another. The driver's handle takes all 64 bytes of ours, so
// the size cannot travel with it; the driver is queried for the size of what was opened.
#include <cstring>

#include "runtime/device.hpp"

namespace gpu {
namespace {

static_assert(sizeof(tenon_ipc_handle) == sizeof(IpcHandle));

tenon_status ipc_export(tenon_device device, void* memory, uint64_t bytes, tenon_ipc_handle* out,
                        tenon_err* err) {
  if (!device->allocated.covers(memory, bytes))
    return fail(err, TENON_INVALID_ARGUMENT, "ipc_export: expected memory of this device, got %p",
                memory);
  Current current(device);
  IpcHandle handle = {};
  if (Error error = driver.ipc_export(&handle, memory))
    return fail_device(device, nullptr, error, err, "ipc_export");
  std::memcpy(out, &handle, sizeof handle);
  return TENON_OK;
}

tenon_status ipc_open(tenon_device device, const tenon_ipc_handle* given, void** out,
                      uint64_t* bytes, tenon_err* err) {
  Current current(device);
  IpcHandle handle;
  std::memcpy(&handle, given, sizeof handle);
  Error error = driver.ipc_open(out, handle, kIpcLazyPeerAccess);
  if (!error) error = vendor::allocation_bytes(*out, bytes);
  return error ? fail_device(device, nullptr, error, err, "ipc_open") : TENON_OK;
}

void ipc_close(tenon_device device, void* memory) {
  Current current(device);
  driver.ipc_close(memory);
}

}  // namespace

const tenon_ipc_api kIpc = {
    .struct_size = sizeof(tenon_ipc_api),
    .reserved = 0,
    .ipc_export = ipc_export,
    .ipc_open = ipc_open,
    .ipc_close = ipc_close,
};

}  // namespace gpu
