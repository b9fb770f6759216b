// SPDX-License-Identifier: Apache-2.0
// Memory of a device: raw allocations, copies, fills.
#include <tenon/device_memory.hpp>

#include "device.hpp"

namespace ascend {
namespace {

constexpr uint64_t kAlignment = 512;  // of aclrtMalloc

CopyKind kind_of(int32_t direction) {
  return direction == TENON_COPY_HOST_TO_DEVICE   ? kHostToDevice
         : direction == TENON_COPY_DEVICE_TO_HOST ? kDeviceToHost
                                                  : kDeviceToDevice;
}

// AscendCL on one stream. Without a stream each copy has finished when it returns.
class Driver {
 public:
  Driver(tenon_stream stream, tenon_err* err) : stream_(stream), err_(err) {}

  tenon_status allocate(void** out, uint64_t bytes, bool is_pinned) const {
    // With a stream it is for a copy onto itself.
    if (const tenon_status status = refuse_captured(stream_, "a copy onto itself", err_))
      return status;
    const int error =
        is_pinned ? acl.aclrtMallocHost(out, bytes) : acl.aclrtMalloc(out, bytes, kHugeFirst);
    return error ? fail_acl(err_, is_pinned ? "aclrtMallocHost" : "aclrtMalloc", error) : TENON_OK;
  }
  void release(void* memory, bool is_pinned) const {
    is_pinned ? acl.aclrtFreeHost(memory) : acl.aclrtFree(memory);
  }

  tenon_status copy(void* dst, const void* src, uint64_t bytes, int32_t direction) const {
    const CopyKind kind = kind_of(direction);
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
    return copy(dst, from, bytes, TENON_COPY_HOST_TO_DEVICE);
  }

  tenon_status wait() const {
    const int error = stream_ ? acl.aclrtSynchronizeStream(stream_->stream) : 0;
    return error ? fail_acl(err_, "aclrtSynchronizeStream", error) : TENON_OK;
  }

 private:
  tenon_stream stream_;
  tenon_err* err_;
};

tenon_status fill_bytes(char* to, uint64_t bytes, const void* pattern, uint32_t pattern_bytes,
                        tenon_stream stream, tenon_err* err) {
  if (pattern_bytes == 1) {
    const int value = *static_cast<const unsigned char*>(pattern);
    const int error = stream ? acl.aclrtMemsetAsync(to, bytes, value, bytes, stream->stream)
                             : acl.aclrtMemset(to, bytes, value, bytes);
    return error ? fail_acl(err, stream ? "aclrtMemsetAsync" : "aclrtMemset", error) : TENON_OK;
  }
  return tenon::fill_range(Driver(stream, err), to, bytes, pattern, pattern_bytes);
}

}  // namespace

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (const tenon_status status = make_current(device, err)) return status;
  return tenon::allocate_aligned(Driver(nullptr, err), device->memory, *request, kAlignment,
                                 "ascend", "AscendCL", out, err);
}

void release(tenon_device device, void* memory, uint64_t, tenon_stream stream) {
  acl.aclrtSetDevice(device->index);
  if (stream) acl.aclrtSynchronizeStream(stream->stream);  // its work may use the memory
  tenon::release_aligned(Driver(nullptr, nullptr), device->memory, memory);
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
  const tenon_status status = tenon::copy_range(Driver(request->stream, err), request->dst,
                                                request->src, request->bytes, request->direction);
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
  return Driver(request->stream, err).copy_to_device(request->dst, request->src, request->bytes);
}

}  // namespace ascend
