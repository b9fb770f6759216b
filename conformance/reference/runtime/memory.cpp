// SPDX-License-Identifier: Apache-2.0
// alloc, free, copy, fill. Copies keep the one promise that vendors forget: pageable host memory is
// consumed, or filled, when the call returns.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "device.hpp"

namespace reference {
namespace {

bool lies_in(const std::map<const char*, uint64_t>& ranges, const void* memory, uint64_t bytes) {
  const char* at = static_cast<const char*>(memory);
  auto it = ranges.upper_bound(at);
  if (it == ranges.begin()) return false;
  --it;
  const auto inside = static_cast<uint64_t>(at - it->first);
  return inside <= it->second && bytes <= it->second - inside;
}

bool is_pinned(tenon_device device, const void* memory, uint64_t bytes) {
  std::lock_guard lock(device->mutex);
  return lies_in(device->pinned, memory, bytes);
}

tenon_status alloc_pinned(tenon_device device, const tenon_alloc_request* request, void** out,
                          tenon_err* err) {
  // aligned_alloc wants whole multiples of the alignment.
  const uint64_t bytes = (request->bytes + request->align - 1) / request->align * request->align;
  void* memory = bytes < request->bytes ? nullptr : std::aligned_alloc(request->align, bytes);
  if (!memory)
    return tenon::fail(err, TENON_OUT_OF_MEMORY, "reference: no pinned host memory left");
  std::lock_guard lock(device->mutex);
  device->pinned[static_cast<const char*>(memory)] = bytes;
  *out = memory;
  return TENON_OK;
}

void give_back(tenon_device device, void* memory) {
  {
    std::lock_guard lock(device->mutex);
    if (device->pinned.erase(static_cast<const char*>(memory))) return std::free(memory);
  }
  device->vram.release(memory);
}

Task copy_task(void* dst, const void* src, uint64_t bytes) {
  return {TENON_PROFILE_COPY, "copy", bytes, [=] {
            std::memmove(dst, src, bytes);  // ranges on the device may overlap
            return Result{};
          }};
}

tenon_status copy_to_device(tenon_device device, const tenon_copy_request& request,
                            tenon_err* err) {
  const void* src = request.src;
  if (!request.stream || is_pinned(device, src, request.bytes))
    return enqueue(device, request.stream, copy_task(request.dst, src, request.bytes), err);
  std::shared_ptr<void> snapshot(std::malloc(request.bytes), std::free);
  if (!snapshot)
    return tenon::fail(err, TENON_OUT_OF_MEMORY, "reference: no memory to stage a copy");
  std::memcpy(snapshot.get(), src, request.bytes);
  Task task = copy_task(request.dst, snapshot.get(), request.bytes);
  task.work = [snapshot, work = std::move(task.work)] { return work(); };
  return enqueue(device, request.stream, std::move(task), err);
}

tenon_status copy_to_host(tenon_device device, const tenon_copy_request& request, tenon_err* err) {
  const bool later = is_pinned(device, request.dst, request.bytes);
  if (!later && request.stream && request.stream->recording)
    return tenon::fail(
        err, TENON_FAILED_PRECONDITION,
        "reference: a copy to pageable host memory waits for its stream, which is being "
        "captured; copy after capture_end, or to pinned memory");
  const tenon_status status =
      enqueue(device, request.stream, copy_task(request.dst, request.src, request.bytes), err);
  return status != TENON_OK || later || !request.stream ? status : wait_for(request.stream, err);
}

// Boards reach each other's memory.
tenon_status copy_from_peer(tenon_device device, const tenon_copy_request& request,
                            tenon_err* err) {
  tenon_status status =
      check_range(request.src_device, request.src, request.bytes, "copy: source", err);
  if (status == TENON_OK)
    status = check_range(device, request.dst, request.bytes, "copy: destination", err);
  if (status == TENON_OK)
    status =
        enqueue(device, request.stream, copy_task(request.dst, request.src, request.bytes), err);
  return status != TENON_OK || !request.stream ? status : wait_for(request.stream, err);
}

}  // namespace

tenon_status check_range(tenon_device device, const void* memory, uint64_t bytes, const char* who,
                         tenon_err* err) {
  if (device->vram.holds(memory, bytes)) return TENON_OK;
  {
    std::lock_guard lock(device->mutex);
    if (lies_in(device->imported, memory, bytes)) return TENON_OK;
  }
  return tenon::fail(
      err, TENON_INVALID_ARGUMENT,
      std::string("reference: ") + who +
          ": expected memory of this device, got an address outside its allocations");
}

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  if (request->align == 0 || (request->align & (request->align - 1)) != 0)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       "reference: alloc: expected an alignment that is a power of two");
  if (request->kind == TENON_ALLOC_PINNED) return alloc_pinned(device, request, out, err);
  if (request->kind != TENON_ALLOC_DEVICE && request->kind != TENON_ALLOC_MANAGED)
    return tenon::fail(err, TENON_UNSUPPORTED, "reference: alloc: unknown kind of memory");
  // The host reaches the board's memory too, so managed memory is nothing special here.
  void* memory = device->vram.allocate(request->bytes, request->align);
  if (!memory)
    return tenon::fail(err, TENON_OUT_OF_MEMORY,
                       "reference: out of board memory; a board has 2 GiB");
  *out = memory;
  return TENON_OK;
}

// Work that is queued may still use it, so it goes back in the stream's order.
void release(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  if (!memory) return;
  if (!stream) return give_back(device, memory);
  stream->queue->submit({.work = [=] {
    give_back(device, memory);
    return Result{};
  }});
}

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, TENON_COPY_PEER, err);
  const int32_t direction = request->direction;
  if (direction < TENON_COPY_HOST_TO_DEVICE || direction > TENON_COPY_DEVICE_TO_DEVICE)
    return tenon::fail(err, TENON_UNSUPPORTED, "reference: copy: unknown direction");
  if (request->bytes == 0) return TENON_OK;
  if (request->must_understand & TENON_COPY_PEER) return copy_from_peer(device, *request, err);
  tenon_status status = TENON_OK;
  if (direction != TENON_COPY_HOST_TO_DEVICE)
    status = check_range(device, request->src, request->bytes, "copy: source", err);
  if (status == TENON_OK && direction != TENON_COPY_DEVICE_TO_HOST)
    status = check_range(device, request->dst, request->bytes, "copy: destination", err);
  if (status != TENON_OK) return status;
  if (direction == TENON_COPY_HOST_TO_DEVICE) return copy_to_device(device, *request, err);
  if (direction == TENON_COPY_DEVICE_TO_HOST) return copy_to_host(device, *request, err);
  return enqueue(device, request->stream, copy_task(request->dst, request->src, request->bytes),
                 err);
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                  tenon_err* err) {
  if (pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0 ||
      bytes % pattern_bytes != 0)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       "reference: fill: expected whole patterns of 1, 2, 4, 8 or 16 bytes");
  if (bytes == 0) return TENON_OK;
  char* at = static_cast<char*>(dst) + offset;
  if (tenon_status status = check_range(device, at, bytes, "fill", err); status != TENON_OK)
    return status;
  struct {
    char bytes[16];
  } repeated;
  std::memcpy(repeated.bytes, pattern, pattern_bytes);
  return enqueue(device, stream,
                 {TENON_PROFILE_FILL, "fill", bytes,
                  [=] {
                    std::memcpy(at, repeated.bytes, pattern_bytes);
                    for (uint64_t done = pattern_bytes; done < bytes;
                         done *= 2)  // what is there, again
                      std::memcpy(at + done, at, std::min(done, bytes - done));
                    return Result{};
                  }},
                 err);
}

}  // namespace reference
