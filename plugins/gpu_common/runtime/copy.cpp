// SPDX-License-Identifier: Apache-2.0
// Copies and fills.
#include <algorithm>
#include <cstring>

#include "runtime/device.hpp"

namespace gpu {
namespace {

using ull = unsigned long long;

// By TENON_COPY_*.
constexpr const char* kDirections[] = {"copy to device", "copy to host", "copy on device"};

// Between the host and the device. Pinned memory given out by us stays valid, so its copies may run
// later; every other memory of the host is consumed, or filled, when the call returns.
Error copy_host(tenon_device device, tenon_stream_s& stream, bool to_device, void* dst,
                const void* src, uint64_t bytes) {
  const bool pinned = device->pinned.covers(to_device ? src : dst, bytes);
  Error error;
  if (to_device) {
    if (!pinned && bytes <= Staging::kSlotBytes && !stream.capturing)
      return device->staging.copy(dst, src, bytes, stream.stream);
    error = driver.copy_to_device(dst, src, bytes, stream.stream);
  } else {
    error = driver.copy_to_host(dst, src, bytes, stream.stream);
  }
  const bool may_run_later = pinned && (to_device || !stream.is_synchronous);
  if (!error && !may_run_later) error = wait_for(stream);
  return error;
}

Error copy_device(tenon_stream_s& stream, void* dst, const void* src, uint64_t bytes) {
  auto to = reinterpret_cast<uintptr_t>(dst), from = reinterpret_cast<uintptr_t>(src);
  const uint64_t distance = to > from ? to - from : from - to;
  if (distance == 0) return error::kSuccess;
  if (distance >= bytes) return driver.copy_on_device(dst, src, bytes, stream.stream);
  // The ranges overlap: the contract wants memmove, the driver promises nothing. A copy in between
  // is freed in the order of the stream.
  void* between = nullptr;
  Error error = driver.pool_alloc(&between, bytes, stream.stream);
  if (error) return error;
  error = driver.copy_on_device(between, src, bytes, stream.stream);
  if (!error) error = driver.copy_on_device(dst, between, bytes, stream.stream);
  Error freed = driver.pool_free(between, stream.stream);
  return error ? error : freed;
}

// The shortest period of a pattern: 0 repeated sixteen times is a pattern of one byte.
uint32_t period(const unsigned char* pattern, uint32_t bytes) {
  while (bytes > 1 && std::memcmp(pattern, pattern + bytes / 2, bytes / 2) == 0) bytes /= 2;
  return bytes;
}

// Patterns of 8 and 16 bytes, for which the driver has no function: one is written, then what is
// there is doubled.
Error fill_by_doubling(tenon_device device, tenon_stream_s& stream, char* dst, uint64_t bytes,
                       const void* pattern, uint32_t pattern_bytes) {
  char first[4096] = {};  // g++ does not see that the loop fills what is copied
  const uint64_t head = std::min<uint64_t>(bytes, sizeof first);
  for (uint64_t at = 0; at < head; at += pattern_bytes)
    std::memcpy(first + at, pattern, std::min<uint64_t>(pattern_bytes, head - at));
  Error error = device->staging.copy(dst, first, head, stream.stream);
  for (uint64_t done = head; done < bytes && !error; done *= 2)
    error = driver.copy_on_device(dst + done, dst, std::min(done, bytes - done), stream.stream);
  return error;
}

Error fill_stream(tenon_device device, tenon_stream_s& stream, char* dst, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes) {
  unsigned char word[16];
  std::memcpy(word, pattern, pattern_bytes);
  const uint32_t shortest = period(word, pattern_bytes);
  // The driver refuses addresses that are no multiple of the element.
  const bool aligned = reinterpret_cast<uintptr_t>(dst) % shortest == 0;
  if (shortest == 1) return driver.fill8(dst, word[0], bytes, stream.stream);
  if (shortest == 2 && aligned) {
    unsigned short value;
    std::memcpy(&value, word, sizeof value);
    return driver.fill16(dst, value, bytes / 2, stream.stream);
  }
  if (shortest == 4 && aligned) {
    unsigned value;
    std::memcpy(&value, word, sizeof value);
    return driver.fill32(dst, value, bytes / 4, stream.stream);
  }
  return fill_by_doubling(device, stream, dst, bytes, word, shortest);
}

}  // namespace

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, TENON_COPY_PEER, err);
  if (request->bytes == 0) return TENON_OK;
  void* dst = static_cast<char*>(request->dst) + request->dst_offset;
  const void* src = static_cast<const char*>(request->src) + request->src_offset;
  if (!request->dst || !request->src)
    return fail(err, TENON_INVALID_ARGUMENT, "copy %llu B: expected two addresses, got NULL",
                static_cast<ull>(request->bytes));
  if (request->direction < 0 || request->direction > TENON_COPY_DEVICE_TO_DEVICE)
    return fail(err, TENON_INVALID_ARGUMENT, "copy: expected a direction from 0 to 2, got %d",
                request->direction);
  if (request->must_understand & TENON_COPY_PEER)
    return copy_from_peer(device, request, dst, src, err);
  Current current(device);
  tenon_stream_s& stream = stream_of(device, request->stream);
  const char* const what = kDirections[request->direction];
  Profile::Scope profile(device, stream, TENON_PROFILE_COPY, what, request->bytes);
  Error error = follow_synchronous(stream);
  if (!error) {
    if (request->direction == TENON_COPY_DEVICE_TO_DEVICE)
      error = copy_device(stream, dst, src, request->bytes);
    else
      error = copy_host(device, stream, request->direction == TENON_COPY_HOST_TO_DEVICE, dst, src,
                        request->bytes);
  }
  profile.finish();
  submitted(stream);
  return error ? fail_device(device, &stream, error, err, "%s %llu B", what,
                             static_cast<ull>(request->bytes))
               : TENON_OK;
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream on, tenon_err* err) {
  bool known = pattern_bytes >= 1 && pattern_bytes <= 16 && !(pattern_bytes & (pattern_bytes - 1));
  if (!known || bytes % pattern_bytes) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "fill: expected whole patterns of 1, 2, 4, 8 or 16 B, got %llu B of %u B each",
                static_cast<ull>(bytes), pattern_bytes);
  }
  if (bytes == 0) return TENON_OK;
  Current current(device);
  tenon_stream_s& stream = stream_of(device, on);
  Profile::Scope profile(device, stream, TENON_PROFILE_FILL, "fill", bytes);
  Error error = follow_synchronous(stream);
  if (!error)
    error = fill_stream(device, stream, static_cast<char*>(dst) + offset, bytes, pattern,
                        pattern_bytes);
  profile.finish();
  submitted(stream);
  return error ? fail_device(device, &stream, error, err, "fill %llu B", static_cast<ull>(bytes))
               : TENON_OK;
}

}  // namespace gpu
