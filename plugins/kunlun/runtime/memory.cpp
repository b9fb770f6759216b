// SPDX-License-Identifier: Apache-2.0
// Memory of a device: raw allocations, copies, fills.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "device.hpp"

namespace kunlun {
namespace {

// A pattern is written on the host up to this size, and doubled on the device from there.
constexpr uint64_t kFirstFill = 4096;

// Copies on one stream. Without a stream each copy has finished when it returns, and so have those from and to pageable
// memory: the ABI lets a caller change it then.
class Copies {
 public:
  Copies(tenon_device device, tenon_stream stream, tenon_err* err)
      : device_(device), stream_(stream_of(stream)), err_(err) {}

  tenon_status copy(void* dst, const void* src, uint64_t bytes, CopyKind kind) const {
    const int error =
        stream_ ? xpu.copy_async(dst, src, bytes, kind, stream_) : xpu.copy(dst, src, bytes, kind);
    if (error) return fail_xpu(err_, stream_ ? "xpu_memcpy_async" : "xpu_memcpy", error);
    const void* const on_host = kind == kHostToDevice ? src : kind == kDeviceToHost ? dst : nullptr;
    // Without a stream those on the device may be queued, as kernels are.
    const bool may_return =
        stream_ ? !on_host || device_->memory.is_pinned(on_host, bytes) : kind != kDeviceToDevice;
    return may_return ? TENON_OK : wait();
  }

  tenon_status wait() const {
    const int error = xpu.wait(stream_);
    return error ? fail_xpu(err_, "xpu_wait", error) : TENON_OK;
  }

  // XRE does not say what a copy of overlapping ranges does, so one goes through other memory.
  tenon_status copy_overlapping(void* dst, const void* src, uint64_t bytes) const {
    void* between = nullptr;
    if (const int error = xpu.allocate(&between, bytes, kMainMemory))
      return fail_xpu(err_, "xpu_malloc", error);
    tenon_status status = copy(between, src, bytes, kDeviceToDevice);
    if (!status) status = copy(dst, between, bytes, kDeviceToDevice);
    const tenon_status waited = wait();  // also after a failure: a copy may be under way
    xpu.release(between);
    return status ? status : waited;
  }

 private:
  tenon_device device_;
  void* stream_;
  tenon_err* err_;
};

// From another chip. No header says whose default stream the copy is on, or that it has ended: both are waited for.
tenon_status copy_from_peer(tenon_device device, const tenon_copy_request* request,
                            tenon_err* err) {
  if (!xpu.copy_peer)
    return tenon::fail(err, TENON_UNSUPPORTED, "kunlun: XRE lacks xpu_memcpy_peer");
  int error = request->stream ? xpu.wait(request->stream->stream) : 0;
  if (error) return fail_xpu(err, "xpu_wait", error);
  error = xpu.copy_peer(device->index, request->dst, request->src_device->index, request->src,
                        request->bytes);
  if (std::abs(error) == kNotSupported)
    return tenon::fail(err, TENON_UNSUPPORTED,
                       "kunlun: " + describe_failure("xpu_memcpy_peer", error));
  if (error) return fail_xpu(err, "xpu_memcpy_peer", error);
  for (const tenon_device each : {request->src_device, device}) {
    if (const tenon_status status = make_current(each, err)) return status;
    if (const int waited = xpu.wait(nullptr); !error) error = waited;
  }
  return error ? fail_xpu(err, "xpu_wait", error) : TENON_OK;
}

tenon_status copy_bytes(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  if (request->must_understand & TENON_COPY_PEER) return copy_from_peer(device, request, err);
  const Copies copies(device, request->stream, err);
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

tenon_status fill_bytes(tenon_device device, char* to, uint64_t bytes, const void* pattern,
                        uint32_t pattern_bytes, tenon_stream stream, tenon_err* err) {
  char first[kFirstFill];  // a multiple of every size of a pattern
  uint64_t done = std::min(bytes, kFirstFill);
  for (uint64_t at = 0; at < done; at += pattern_bytes)
    std::memcpy(first + at, pattern, pattern_bytes);
  const Copies copies(device, stream, err);
  tenon_status status = copies.copy(to, first, done, kHostToDevice);
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
        "kunlun: expected device or pinned memory, got a request for managed memory, "
        "which XRE does not have");
  const bool is_pinned = request->kind == TENON_ALLOC_PINNED;
  // No header says what the addresses are aligned to: an aligned one is found inside a larger allocation.
  const uint64_t room = request->bytes + request->align;
  if (room < request->bytes)
    return tenon::fail(err, TENON_OUT_OF_MEMORY, "kunlun: the size overflows 64 bits");
  void* memory = nullptr;
  const int error =
      is_pinned ? xpu.allocate_host(&memory, room, 0) : xpu.allocate(&memory, room, kMainMemory);
  if (error) return fail_xpu(err, is_pinned ? "xpu_host_alloc" : "xpu_malloc", error);
  try {
    *out = device->memory.align(memory, request->align, is_pinned, request->bytes);
  } catch (const std::bad_alloc&) {
    is_pinned ? xpu.release_host(memory) : xpu.release(memory);
    return tenon::fail_host_memory(err);
  }
  return TENON_OK;
}

void release(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  xpu.set_device(device->index);
  if (stream) xpu.wait(stream->stream);  // its work may use the memory
  const tenon::AlignedMemory::Origin origin = device->memory.take(memory);
  origin.is_pinned ? xpu.release_host(origin.memory) : xpu.release(origin.memory);
}

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, TENON_COPY_PEER, err);
  if (request->bytes == 0) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  Profile::Scope profile(device, request->stream, TENON_PROFILE_COPY, request->bytes);
  const tenon_status status = copy_bytes(device, request, err);
  if (!status) profile.finish("copy");
  return status;
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                  tenon_err* err) {
  if (bytes == 0) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  Profile::Scope profile(device, stream, TENON_PROFILE_FILL, bytes);
  const tenon_status status = fill_bytes(device, static_cast<char*>(dst) + offset, bytes, pattern,
                                         pattern_bytes, stream, err);
  if (!status) profile.finish("fill");
  return status;
}

}  // namespace kunlun
