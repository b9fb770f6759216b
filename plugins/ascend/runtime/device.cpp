// SPDX-License-Identifier: Apache-2.0
// Devices of AscendCL: which there are, opening, waiting.
#include "device.hpp"

#include <cstdio>
#include <memory>
#include <new>

namespace ascend {

tenon_status fail_acl(tenon_err* err, const char* function, int error) {
  const bool no_memory =
      error == kBadAlloc || error == kStorageOverLimit || error == kDeviceOutOfMemory;
  tenon_status status = no_memory ? TENON_OUT_OF_MEMORY : TENON_INTERNAL;
  if (error == kStreamAborted) status = TENON_ABORTED;
  return tenon::fail(err, status, "ascend: " + describe_failure(function, error));
}

tenon_status make_current(tenon_device device, tenon_err* err) {
  const int error = acl.aclrtSetDevice(device->index);
  return error ? fail_acl(err, "aclrtSetDevice", error) : TENON_OK;
}

namespace {

tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err* err) {
  if (!runtime_problem().empty())
    return tenon::fail(err, TENON_UNAVAILABLE, "ascend: " + runtime_problem());
  uint32_t found = 0;
  if (const int error = acl.aclrtGetDeviceCount(&found))
    return fail_acl(err, "aclrtGetDeviceCount", error);
  const char* chip = acl.aclrtGetSocName();
  for (uint32_t i = 0; i < found && i < capacity; ++i) {
    out[i] = {.struct_size = sizeof(tenon_device_info), .flags = 0, .dl_device_type = 12};
    std::snprintf(out[i].name, sizeof out[i].name, "%s", chip ? chip : "Ascend");
    std::snprintf(out[i].arch, sizeof out[i].arch, "%s", chip ? chip : "unknown");
    size_t free = 0, total = 0;
    if (!acl.aclrtSetDevice(static_cast<int32_t>(i)) && !acl.aclrtGetMemInfo(kHbm, &free, &total))
      out[i].memory_bytes = total;
  }
  *count = found;
  return TENON_OK;
}

tenon_status open(uint32_t index, tenon_device* out, tenon_err* err) {
  std::unique_ptr<tenon_device_s> device(new (std::nothrow) tenon_device_s);
  if (!device) return tenon::fail_host_memory(err);
  device->index = static_cast<int32_t>(index);
  if (const tenon_status status = make_current(device.get(), err)) return status;
  if (const int error = acl.aclrtCreateStream(&device->stream))
    return fail_acl(err, "aclrtCreateStream", error);
  *out = device.release();
  return TENON_OK;
}

void close(tenon_device device) {
  acl.aclrtSetDevice(device->index);
  device->profile.close();
  device->executors.clear();
  acl.aclrtDestroyStream(device->stream);
  acl.aclrtResetDevice(device->index);
  delete device;
}

tenon_status sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  if (const tenon_status status = refuse_captured(stream, "sync", err)) return status;
  if (const tenon_status status = make_current(device, err)) return status;
  const int error =
      stream ? acl.aclrtSynchronizeStream(stream->stream) : acl.aclrtSynchronizeDevice();
  if (stream) {
    if (const tenon_status status = check_aborted(stream, err)) return status;
  } else {
    tenon_status status = TENON_OK;
    const std::lock_guard lock(device->streams_mutex);
    for (const tenon_stream each : device->streams)
      if (!status) status = check_aborted(each, err);
    if (status) return status;
  }
  if (!error) return TENON_OK;
  return fail_acl(err, stream ? "aclrtSynchronizeStream" : "aclrtSynchronizeDevice", error);
}

}  // namespace

const tenon_device_api kDevice = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .features = 0,
    .kind = "ascend",
    .enumerate = enumerate,
    .open = open,
    .close = close,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .fill = fill,
    .sync = sync,
    .async = &kAsync,
    .collective = &kCollective,
    .exchange = &kExchange,
};

}  // namespace ascend
