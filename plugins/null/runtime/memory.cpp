// SPDX-License-Identifier: Apache-2.0
// Memory of the null device: ordinary memory that the host treats as out of its reach.
#include <cstdlib>
#include <cstring>

#include "null.hpp"

namespace null_device {

// Raw memory only: caching, reuse and retry after TENON_OUT_OF_MEMORY are the host's business.
tenon_status alloc(tenon_device, const tenon_alloc_request* request, void** out, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  if (request->kind != TENON_ALLOC_DEVICE)
    return tenon::fail(err, TENON_UNSUPPORTED,
                       "null: expected device memory; this device has no other");
  // aligned_alloc wants whole multiples of the alignment.
  uint64_t bytes = (request->bytes + request->align - 1) / request->align * request->align;
  void* memory = bytes < request->bytes ? nullptr : std::aligned_alloc(request->align, bytes);
  if (!memory) return tenon::fail(err, TENON_OUT_OF_MEMORY, "null: out of memory");
  *out = memory;
  return TENON_OK;
}

void release(tenon_device, void* memory, uint64_t, tenon_stream) { std::free(memory); }

tenon_status copy(tenon_device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  // All three directions are one here. memmove: ranges on the device may overlap.
  if (request->bytes > 0) std::memmove(request->dst, request->src, request->bytes);
  return TENON_OK;
}

tenon_status fill(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream, tenon_err*) {
  char* at = static_cast<char*>(dst) + offset;
  for (uint64_t done = 0; done < bytes; done += pattern_bytes)
    std::memcpy(at + done, pattern, pattern_bytes);
  return TENON_OK;
}

}  // namespace null_device
