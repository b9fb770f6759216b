// SPDX-License-Identifier: Apache-2.0
// Memory of a device whose vendor's runtime allocates and copies, and does no more: allocations of any alignment, copies of
// ranges that overlap, fills with a pattern.
//
// `Driver` is that runtime on one stream. Each function that returns a status has written the error where it fails:
//   tenon_status allocate(void** out, uint64_t bytes, bool is_pinned) const
//   void release(void* memory, bool is_pinned) const
//   tenon_status copy(void* dst, const void* src, uint64_t bytes, int32_t direction) const    // TENON_COPY_*
//   tenon_status copy_to_device(void* dst, const void* src, uint64_t bytes) const    // from memory that ends with the call
//   tenon_status wait() const    // for the copies
#pragma once

#include <tenon/aligned_memory.hpp>
#include <tenon/plugin.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

namespace tenon {

// Memory for a request, aligned as it wants; `memory` remembers it. `driver_alignment` is what addresses of the driver are
// aligned to: more is found inside a larger allocation. `plugin` and `runtime` name both in errors.
template <class Driver>
tenon_status allocate_aligned(const Driver& driver, AlignedMemory& memory,
                              const tenon_alloc_request& request, uint64_t driver_alignment,
                              const char* plugin, const char* runtime, void** out, tenon_err* err) {
  if (request.kind == TENON_ALLOC_MANAGED)
    return fail(err, TENON_UNSUPPORTED,
                std::string(plugin) +
                    ": expected device or pinned memory, got a request for managed memory, which " +
                    runtime + " does not have");
  const bool is_pinned = request.kind == TENON_ALLOC_PINNED;
  const uint64_t room = request.bytes + (request.align > driver_alignment ? request.align : 0);
  if (room < request.bytes)
    return fail(err, TENON_OUT_OF_MEMORY, std::string(plugin) + ": the size overflows 64 bits");
  void* found = nullptr;
  if (const tenon_status status = driver.allocate(&found, room, is_pinned)) return status;
  try {
    *out = memory.align(found, request.align, is_pinned, request.bytes);
  } catch (const std::bad_alloc&) {
    driver.release(found, is_pinned);
    return fail_host_memory(err);
  }
  return TENON_OK;
}

template <class Driver>
void release_aligned(const Driver& driver, AlignedMemory& memory, void* address) {
  const AlignedMemory::Origin origin = memory.take(address);
  driver.release(origin.memory, origin.is_pinned);
}

// A copy on the device or between it and the host. No vendor says what copies of overlapping ranges do, so that one goes
// through other memory.
template <class Driver>
tenon_status copy_range(const Driver& driver, void* dst, const void* src, uint64_t bytes,
                        int32_t direction) {
  const auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
  if (direction != TENON_COPY_DEVICE_TO_DEVICE || to + bytes <= from || from + bytes <= to)
    return driver.copy(dst, src, bytes, direction);
  if (to == from) return TENON_OK;
  void* between = nullptr;
  if (const tenon_status status = driver.allocate(&between, bytes, false)) return status;
  tenon_status status = driver.copy(between, src, bytes, direction);
  if (!status) status = driver.copy(dst, between, bytes, direction);
  const tenon_status waited = driver.wait();  // also after a failure: a copy may be under way
  driver.release(between, false);
  return status ? status : waited;
}

// `bytes` of a pattern, whose size divides 16: written on the host for the first 4 KiB, and doubled on the device from there.
template <class Driver>
tenon_status fill_range(const Driver& driver, char* to, uint64_t bytes, const void* pattern,
                        uint32_t pattern_bytes) {
  constexpr uint64_t kFirst = 4096;
  char first[kFirst];
  uint64_t done = std::min(bytes, kFirst);
  for (uint64_t at = 0; at < done; at += pattern_bytes)
    std::memcpy(first + at, pattern, pattern_bytes);
  tenon_status status = driver.copy_to_device(to, first, done);
  for (; !status && done < bytes; done = std::min(bytes, done * 2))
    status = driver.copy(to + done, to, std::min(done, bytes - done), TENON_COPY_DEVICE_TO_DEVICE);
  return status;
}

}  // namespace tenon
