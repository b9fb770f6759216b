// SPDX-License-Identifier: Apache-2.0
// Faults of alloc, free, copy and fill, and of how they fail.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tables.hpp"

namespace reference {

FAULT(oom_aborts) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    if (request->bytes > Vram::kBytes) std::abort();
    return kDevice.alloc(device, request, out, err);
  };
}

FAULT(oom_wrong_code) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    if (request->bytes > Vram::kBytes) return tenon::fail(err, TENON_INTERNAL, "driver error 2");
    return kDevice.alloc(device, request, out, err);
  };
}

FAULT(error_without_text) {
  tables.device.open = [](uint32_t index, tenon_device* out, tenon_err* err) {
    return index < kDevices ? kDevice.open(index, out, err) : tenon_status{TENON_NOT_FOUND};
  };
}

FAULT(open_out_of_range) {
  tables.device.open = [](uint32_t index, tenon_device* out, tenon_err* err) {
    return kDevice.open(index % kDevices, out, err);
  };
}

FAULT(zero_copy_fails) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    if (request->bytes == 0) return tenon::fail(err, TENON_INVALID_ARGUMENT, "nothing to copy");
    return kDevice.copy(device, request, err);
  };
}

FAULT(peer_copies_nothing) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    const bool is_peer = request->must_understand & TENON_COPY_PEER;
    return is_peer ? tenon_status{TENON_OK} : kDevice.copy(device, request, err);
  };
}

namespace {
std::mutex shifted_mutex;
std::set<void*> shifted;  // given out 256 bytes after their beginning
}  // namespace

FAULT(misaligned_alloc) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    if (request->align <= 256) return kDevice.alloc(device, request, out, err);
    tenon_alloc_request asked = *request;
    asked.bytes += 256;
    void* memory = nullptr;
    const tenon_status status = kDevice.alloc(device, &asked, &memory, err);
    if (status != TENON_OK) return status;
    std::lock_guard lock(shifted_mutex);
    shifted.insert(*out = static_cast<char*>(memory) + 256);
    return status;
  };
  tables.device.free = [](tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
    std::lock_guard lock(shifted_mutex);
    if (shifted.erase(memory)) memory = static_cast<char*>(memory) - 256;
    kDevice.free(device, memory, bytes, stream);
  };
}

FAULT(copy_one_short) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request shorter = *request;
    if (shorter.bytes > 0) --shorter.bytes;
    return kDevice.copy(device, &shorter, err);
  };
}

FAULT(overlap_as_memcpy) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    char* dst = static_cast<char*>(request->dst);
    const char* src = static_cast<const char*>(request->src);
    const uint64_t bytes = request->bytes;
    const bool overlap =
        request->direction == TENON_COPY_DEVICE_TO_DEVICE && src < dst && dst < src + bytes;
    if (!overlap) return kDevice.copy(device, request, err);
    return enqueue(device, request->stream,
                   {TENON_PROFILE_COPY, "copy", bytes,
                    [=] {
                      for (uint64_t i = 0; i < bytes; ++i) dst[i] = src[i];
                      return Result{};
                    }},
                   err);
  };
}

FAULT(fill_repeats_first_byte) {
  tables.device.fill = [](tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                          const void* pattern, uint32_t, tenon_stream stream, tenon_err* err) {
    return kDevice.fill(device, dst, offset, bytes, pattern, 1, stream, err);
  };
}

FAULT(free_leaks) {
  tables.device.free = [](tenon_device, void*, uint64_t, tenon_stream) {};
}

}  // namespace reference
