// SPDX-License-Identifier: Apache-2.0
// Faults of a device that says that allocations end to end may be used as one, and then does not
// look further than the first.
#include <algorithm>
#include <map>

#include "tables.hpp"

namespace reference {
namespace {

std::mutex mutex;
std::map<const char*, uint64_t> given;  // address -> bytes

void remember_allocations() {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    const tenon_status status = kDevice.alloc(device, request, out, err);
    if (status != TENON_OK) return status;
    std::lock_guard lock(mutex);
    given[static_cast<const char*>(*out)] = request->bytes;
    return status;
  };
}

// `bytes`, or how many of them lie in the allocation that `from` lies in.
uint64_t in_one(const void* from, uint64_t bytes) {
  const char* at = static_cast<const char*>(from);
  std::lock_guard lock(mutex);
  auto it = given.upper_bound(at);
  if (it == given.begin()) return bytes;
  --it;
  return std::min(bytes, it->second - std::min(it->second, static_cast<uint64_t>(at - it->first)));
}

}  // namespace

FAULT(seam_not_copied) {
  remember_allocations();
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request shorter = *request;
    if (request->direction != TENON_COPY_DEVICE_TO_HOST)
      shorter.bytes = in_one(request->dst, shorter.bytes);
    if (request->direction != TENON_COPY_HOST_TO_DEVICE)
      shorter.bytes = in_one(request->src, shorter.bytes);
    return kDevice.copy(device, &shorter, err);
  };
}

FAULT(seam_not_exported) {
  remember_allocations();
  tables.ipc.ipc_export = [](tenon_device device, void* memory, uint64_t bytes,
                             tenon_ipc_handle* out, tenon_err* err) {
    return kIpc.ipc_export(device, memory, in_one(memory, bytes), out, err);
  };
}

}  // namespace reference
