// SPDX-License-Identifier: Apache-2.0
// Faults of alloc, free, copy and fill, and of how they fail.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
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

FAULT(odd_source_short) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request shorter = *request;
    const bool is_odd = reinterpret_cast<uintptr_t>(request->src) % 2 == 1;
    if (request->direction == TENON_COPY_HOST_TO_DEVICE && is_odd && request->bytes >= 4096)
      --shorter.bytes;
    return kDevice.copy(device, &shorter, err);
  };
}

FAULT(large_copy_short) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    tenon_copy_request shorter = *request;
    const uint64_t before = shorter.bytes - 1;
    if (shorter.bytes > 1 << 21 && (before & (before - 1)) == 0) shorter.bytes = before;
    return kDevice.copy(device, &shorter, err);
  };
}

namespace {

// Memory of more than 4 GiB lies outside of the board's, and fill counts in it with 32 bits.
constexpr uint64_t kHuge = uint64_t{1} << 32;
std::atomic<char*> huge{nullptr};
uint64_t huge_bytes = 0;
bool is_huge(const void* memory) {
  const char* at = static_cast<const char*>(memory);
  return huge && at >= huge && at < huge + huge_bytes;
}

}  // namespace

FAULT(fill_of_32_bits) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    if (request->bytes <= kHuge || request->bytes > 2 * kHuge || huge)
      return kDevice.alloc(device, request, out, err);
    void* memory = mmap(nullptr, request->bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return tenon::fail(err, TENON_OUT_OF_MEMORY, "no room");
    huge_bytes = request->bytes;
    huge = static_cast<char*>(memory);
    *out = memory;
    return tenon_status{TENON_OK};
  };
  tables.device.free = [](tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
    if (!is_huge(memory)) return kDevice.free(device, memory, bytes, stream);
    munmap(huge.exchange(nullptr), huge_bytes);
  };
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    if (!is_huge(request->dst) && !is_huge(request->src)) return kDevice.copy(device, request, err);
    std::memmove(request->dst, request->src, request->bytes);
    return tenon_status{TENON_OK};
  };
  tables.device.fill = [](tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                          const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                          tenon_err* err) {
    if (!is_huge(dst))
      return kDevice.fill(device, dst, offset, bytes, pattern, pattern_bytes, stream, err);
    char* at = huge + static_cast<uint32_t>(static_cast<char*>(dst) + offset - huge);
    std::memset(at, *static_cast<const char*>(pattern), bytes);
    return tenon_status{TENON_OK};
  };
}

namespace {
std::mutex large_mutex;
void* large = nullptr;  // one for all of a size
int large_users = 0;
}  // namespace

FAULT(large_allocations_share) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    if (request->bytes != 256 << 20) return kDevice.alloc(device, request, out, err);
    std::lock_guard lock(large_mutex);
    tenon_status status = TENON_OK;
    if (large_users == 0) status = kDevice.alloc(device, request, &large, err);
    if (status == TENON_OK) ++large_users, *out = large;
    return status;
  };
  tables.device.free = [](tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
    std::lock_guard lock(large_mutex);
    if (memory == large && --large_users > 0) return;
    kDevice.free(device, memory, bytes, stream);
  };
}

FAULT(second_device_idle) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    const bool is_silent = device->index == 1 && request->direction == TENON_COPY_HOST_TO_DEVICE;
    return is_silent ? tenon_status{TENON_OK} : kDevice.copy(device, request, err);
  };
}

FAULT(allocations_end) {
  tables.device.alloc = [](tenon_device device, const tenon_alloc_request* request, void** out,
                           tenon_err* err) {
    static std::atomic<uint32_t> given{0};
    if (++given > 65536) return tenon::fail(err, TENON_OUT_OF_MEMORY, "no descriptor left");
    return kDevice.alloc(device, request, out, err);
  };
}

FAULT(copy_leaks) {
  tables.device.copy = [](tenon_device device, const tenon_copy_request* request, tenon_err* err) {
    if (request->direction == TENON_COPY_HOST_TO_DEVICE && request->bytes == 4096) lose_a_page();
    return kDevice.copy(device, request, err);
  };
}

FAULT(free_leaks) {
  tables.device.free = [](tenon_device, void*, uint64_t, tenon_stream) {};
}

}  // namespace reference
