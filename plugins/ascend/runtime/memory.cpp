// SPDX-License-Identifier: Apache-2.0
// Memory of a device: raw allocations, copies, fills.
#include <algorithm>
#include <cstring>
#include <new>

#include "device.hpp"

namespace ascend {
namespace {

// What aclrtMalloc aligns to; more is found inside a larger allocation.
constexpr uint64_t kAlignment = 512;

// A pattern is written on the host up to this size, and doubled on the device from there.
constexpr uint64_t kFirstFill = 4096;

// Copies on one stream. Without a stream each copy has finished when it returns.
class Copies {
 public:
  Copies(tenon_stream stream, tenon_err* err) : stream_(stream), err_(err) {}

  tenon_status copy(void* dst, const void* src, uint64_t bytes, CopyKind kind) const {
    const int error = stream_ ? acl.aclrtMemcpyAsync(dst, bytes, src, bytes, kind, stream_->stream)
                              : acl.aclrtMemcpy(dst, bytes, src, bytes, kind);
    if (error) return fail_acl(err_, stream_ ? "aclrtMemcpyAsync" : "aclrtMemcpy", error);
    // The ABI lets a caller change pageable memory once the call has returned.
    return kind == kDeviceToDevice || is_captured() ? TENON_OK : wait();
  }

  bool is_captured() const { return stream_ && stream_->capturing; }

  // From memory of this plugin, which may end before a recording does.
  tenon_status copy_to_device(void* dst, const void* src, uint64_t bytes) const {
    void* from = const_cast<void*>(src);
    if (is_captured())
      if (const tenon_status status = captured_host_memory(stream_, src, bytes, &from, err_))
        return status;
    return copy(dst, from, bytes, kHostToDevice);
  }

  tenon_status wait() const {
    const int error = stream_ ? acl.aclrtSynchronizeStream(stream_->stream) : 0;
    return error ? fail_acl(err_, "aclrtSynchronizeStream", error) : TENON_OK;
  }

  // AscendCL does not say what a copy of overlapping ranges does, so one goes through other memory.
  tenon_status copy_overlapping(void* dst, const void* src, uint64_t bytes) const {
    if (const tenon_status status = refuse_captured(stream_, "a copy onto itself", err_))
      return status;
    void* between = nullptr;
    if (const int error = acl.aclrtMalloc(&between, bytes, kHugeFirst))
      return fail_acl(err_, "aclrtMalloc", error);
    tenon_status status = copy(between, src, bytes, kDeviceToDevice);
    if (!status) status = copy(dst, between, bytes, kDeviceToDevice);
    const tenon_status waited = wait();  // also after a failure: a copy may be under way
    acl.aclrtFree(between);
    return status ? status : waited;
  }

 private:
  tenon_stream stream_;
  tenon_err* err_;
};

tenon_status copy_bytes(const tenon_copy_request* request, tenon_err* err) {
  const Copies copies(request->stream, err);
  const auto dst = reinterpret_cast<uintptr_t>(request->dst);
  const auto src = reinterpret_cast<uintptr_t>(request->src);
  switch (request->direction) {
    case TENON_COPY_HOST_TO_DEVICE:
      return copies.copy(request->dst, request->src, request->bytes, kHostToDevice);
    case TENON_COPY_DEVICE_TO_HOST:
      return copies.copy(request->dst, request->src, request->bytes, kDeviceToHost);
    default:
      if (dst == src) return TENON_OK;
      if (dst < src + request->bytes && src < dst + request->bytes)
        return copies.copy_overlapping(request->dst, request->src, request->bytes);
      return copies.copy(request->dst, request->src, request->bytes, kDeviceToDevice);
  }
}

tenon_status fill_bytes(char* to, uint64_t bytes, const void* pattern, uint32_t pattern_bytes,
                        tenon_stream stream, tenon_err* err) {
  if (pattern_bytes == 1) {
    const int value = *static_cast<const unsigned char*>(pattern);
    const int error = stream ? acl.aclrtMemsetAsync(to, bytes, value, bytes, stream->stream)
                             : acl.aclrtMemset(to, bytes, value, bytes);
    return error ? fail_acl(err, stream ? "aclrtMemsetAsync" : "aclrtMemset", error) : TENON_OK;
  }
  const Copies copies(stream, err);
  char first[kFirstFill];  // a multiple of every size of a pattern
  uint64_t done = std::min(bytes, kFirstFill);
  for (uint64_t at = 0; at < done; at += pattern_bytes)
    std::memcpy(first + at, pattern, pattern_bytes);
  tenon_status status = copies.copy_to_device(to, first, done);
  for (; !status && done < bytes; done = std::min(bytes, done * 2))
    status = copies.copy(to + done, to, std::min(done, bytes - done), kDeviceToDevice);
  return status;
}

}  // namespace

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (const tenon_status status = make_current(device, err)) return status;
  if (request->kind == TENON_ALLOC_MANAGED)
    return tenon::fail(
        err, TENON_UNSUPPORTED,
        "ascend: expected device or pinned memory, got a request for managed memory, "
        "which AscendCL does not have");
  const bool is_pinned = request->kind == TENON_ALLOC_PINNED;
  const uint64_t room = request->bytes + (request->align > kAlignment ? request->align : 0);
  if (room < request->bytes)
    return tenon::fail(err, TENON_OUT_OF_MEMORY, "ascend: the size overflows 64 bits");
  void* memory = nullptr;
  const int error =
      is_pinned ? acl.aclrtMallocHost(&memory, room) : acl.aclrtMalloc(&memory, room, kHugeFirst);
  if (error) return fail_acl(err, is_pinned ? "aclrtMallocHost" : "aclrtMalloc", error);
  try {
    *out = device->memory.align(memory, request->align, is_pinned);
  } catch (const std::bad_alloc&) {
    is_pinned ? acl.aclrtFreeHost(memory) : acl.aclrtFree(memory);
    return tenon::fail_host_memory(err);
  }
  return TENON_OK;
}

void release(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  acl.aclrtSetDevice(device->index);
  if (stream) acl.aclrtSynchronizeStream(stream->stream);  // its work may use the memory
  const tenon::AlignedMemory::Origin origin = device->memory.take(memory);
  origin.is_pinned ? acl.aclrtFreeHost(origin.memory) : acl.aclrtFree(origin.memory);
}

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, TENON_COPY_PEER, err);
  if (request->bytes == 0) return TENON_OK;
  if (request->must_understand & TENON_COPY_PEER) return copy_from_peer(device, request, err);
  if (const tenon_status status = make_current(device, err)) return status;
  // CANN calls copies of pageable memory unsafe while a stream is captured, and does not say what becomes of them.
  if (request->direction != TENON_COPY_DEVICE_TO_DEVICE)
    if (const tenon_status status =
            refuse_captured(request->stream, "a copy between host and device", err))
      return status;
  Profile::Scope profile(device, request->stream, TENON_PROFILE_COPY, request->bytes);
  const tenon_status status = copy_bytes(request, err);
  if (!status) profile.finish("copy");
  return status;
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                  tenon_err* err) {
  if (bytes == 0) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  Profile::Scope profile(device, stream, TENON_PROFILE_FILL, bytes);
  const tenon_status status =
      fill_bytes(static_cast<char*>(dst) + offset, bytes, pattern, pattern_bytes, stream, err);
  if (!status) profile.finish("fill");
  return status;
}

tenon_status copy_captured(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  if (!request->stream || !request->stream->capturing) return copy(device, request, err);
  if (const tenon_status status = make_current(device, err)) return status;
  return Copies(request->stream, err).copy_to_device(request->dst, request->src, request->bytes);
}

}  // namespace ascend
