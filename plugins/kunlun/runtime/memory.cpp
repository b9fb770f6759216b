// SPDX-License-Identifier: Apache-2.0
// Memory of a device: raw allocations, copies, fills.
#include <tenon/device_memory.hpp>

#include <cstdlib>

#include "device.hpp"

namespace kunlun {
namespace {

CopyKind kind_of(int32_t direction) {
  return direction == TENON_COPY_HOST_TO_DEVICE   ? kHostToDevice
         : direction == TENON_COPY_DEVICE_TO_HOST ? kDeviceToHost
                                                  : kDeviceToDevice;
}

// XRE on one stream. Without a stream each copy has finished when it returns, and so have those from and to pageable
// memory: the ABI lets a caller change it then.
class Driver {
 public:
  Driver(tenon_device device, tenon_stream stream, tenon_err* err)
      : device_(device), stream_(stream_of(stream)), err_(err) {}

  tenon_status allocate(void** out, uint64_t bytes, bool is_pinned) const {
    const int error =
        is_pinned ? xpu.allocate_host(out, bytes, 0) : xpu.allocate(out, bytes, kMainMemory);
    return error ? fail_xpu(err_, is_pinned ? "xpu_host_alloc" : "xpu_malloc", error) : TENON_OK;
  }
  void release(void* memory, bool is_pinned) const {
    is_pinned ? xpu.release_host(memory) : xpu.release(memory);
  }

  tenon_status copy(void* dst, const void* src, uint64_t bytes, int32_t direction) const {
    const CopyKind kind = kind_of(direction);
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

  tenon_status copy_to_device(void* dst, const void* src, uint64_t bytes) const {
    return copy(dst, src, bytes, TENON_COPY_HOST_TO_DEVICE);
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
  return tenon::copy_range(Driver(device, request->stream, err), request->dst, request->src,
                           request->bytes, request->direction);
}

}  // namespace

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (const tenon_status status = make_current(device, err)) return status;
  // No header says what the addresses are aligned to.
  return tenon::allocate_aligned(Driver(device, nullptr, err), device->memory, *request, 0,
                                 "kunlun", "XRE", out, err);
}

void release(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  xpu.set_device(device->index);
  if (stream) xpu.wait(stream->stream);  // its work may use the memory
  tenon::release_aligned(Driver(device, nullptr, nullptr), device->memory, memory);
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
  const tenon_status status = tenon::fill_range(
      Driver(device, stream, err), static_cast<char*>(dst) + offset, bytes, pattern, pattern_bytes);
  if (!status) profile.finish("fill");
  return status;
}

}  // namespace kunlun
