// SPDX-License-Identifier: Apache-2.0
// The eight functions of a device whose memory and kernels are in another process. All work there
// is done on its synchronous stream, so each call has finished when it returns.
#include <algorithm>
#include <tenon/tensor.hpp>

#include "service/proxy.hpp"
#include "wire/stream_copy.hpp"

namespace tenon::isolated {
namespace {

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->kind != TENON_ALLOC_DEVICE)
    return fail(
        err, TENON_UNSUPPORTED,
        "isolated: expected device memory; pinned and managed memory would have to be in two "
        "processes");
  Request call(device->proxy->connection);
  call.message().put(device->index);
  call.message().put(request->bytes);
  call.message().put(request->align);
  const tenon_status status = call.run(Command::kAlloc, err);
  if (status != TENON_OK) return status;
  Reader answer = call.answer();
  const auto address = answer.get<uint64_t>();
  if (!answer.ok()) return call.fail_answer(err);
  *out = reinterpret_cast<void*>(address);
  return TENON_OK;
}

// What a process held is gone with it.
void release(tenon_device device, void* memory, uint64_t bytes, tenon_stream) {
  if (!device->proxy->connection.is_usable()) return;
  Request call(device->proxy->connection);
  call.message().put(device->index);
  call.message().put(reinterpret_cast<uint64_t>(memory));
  call.message().put(bytes);
  call.run(Command::kFree, nullptr);
}

// Addresses are counted up here; only a device with handles is given offsets.
void put_range(Request& call, tenon_device device, const void* memory, uint64_t offset,
               uint64_t bytes) {
  const bool is_opaque =
      device->proxy->description.devices[device->index].flags & TENON_DEVICE_OPAQUE_MEMORY;
  call.message().put(device->index);
  call.message().put(reinterpret_cast<uint64_t>(memory) + (is_opaque ? 0 : offset));
  call.message().put(is_opaque ? offset : uint64_t{0});
  call.message().put(bytes);
}

// Through the two halves of the lane: while the process empties one, this side fills the other.
tenon_status copy_in(tenon_device device, const tenon_copy_request& request, tenon_err* err) {
  Request call(device->proxy->connection);
  auto* source = static_cast<const char*>(request.src) + request.src_offset;
  bool is_waiting = false;
  uint32_t half = 0;
  for (uint64_t done = 0; done < request.bytes; half ^= 1) {
    const uint64_t bytes = std::min(request.bytes - done, kStagingBytes);
    if (device->proxy->connection.is_usable())
      stream_copy(call.staging(half), source + done, bytes);
    if (is_waiting)
      if (const tenon_status status = call.wait(err); status != TENON_OK) return status;
    put_range(call, device, request.dst, request.dst_offset + done, bytes);
    call.message().put(half);
    if (const tenon_status status = call.post(Command::kCopyIn, err); status != TENON_OK)
      return status;
    is_waiting = true;
    done += bytes;
  }
  return call.wait(err);
}

// Likewise: while this side empties one half, the process fills the other.
tenon_status copy_out(tenon_device device, const tenon_copy_request& request, tenon_err* err) {
  Request call(device->proxy->connection);
  auto* target = static_cast<char*>(request.dst) + request.dst_offset;
  auto ask = [&](uint64_t done, uint32_t half) {
    put_range(call, device, request.src, request.src_offset + done,
              std::min(request.bytes - done, kStagingBytes));
    call.message().put(half);
    return call.post(Command::kCopyOut, err);
  };
  tenon_status status = ask(0, 0);
  uint32_t half = 0;
  for (uint64_t done = 0; done < request.bytes && status == TENON_OK; half ^= 1) {
    const uint64_t bytes = std::min(request.bytes - done, kStagingBytes);
    status = call.wait(err);
    if (status != TENON_OK) break;
    const bool is_last = done + bytes == request.bytes;
    if (!is_last) status = ask(done + bytes, half ^ 1);
    std::memcpy(target + done, call.staging(half), bytes);
    done += bytes;
  }
  return status;
}

tenon_status copy_on(tenon_device device, const tenon_copy_request& request, tenon_err* err) {
  Request call(device->proxy->connection);
  put_range(call, device, request.dst, request.dst_offset, request.bytes);
  call.message().put(reinterpret_cast<uint64_t>(request.src));
  call.message().put(request.src_offset);
  return call.run(Command::kCopyOn, err);
}

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->bytes == 0) return TENON_OK;
  switch (request->direction) {
    case TENON_COPY_HOST_TO_DEVICE:
      return copy_in(device, *request, err);
    case TENON_COPY_DEVICE_TO_HOST:
      return copy_out(device, *request, err);
    case TENON_COPY_DEVICE_TO_DEVICE:
      return copy_on(device, *request, err);
  }
  return fail(err, TENON_UNSUPPORTED, "isolated: unknown copy direction");
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream, tenon_err* err) {
  if (pattern_bytes == 0 || pattern_bytes > 16 || bytes % pattern_bytes != 0)
    return fail(err, TENON_INVALID_ARGUMENT,
                "isolated: fill: expected whole patterns of up to 16 bytes");
  Request call(device->proxy->connection);
  put_range(call, device, dst, offset, bytes);
  call.message().put(pattern_bytes);
  call.message().put_array(static_cast<const unsigned char*>(pattern), pattern_bytes);
  return call.run(Command::kFill, err);
}

tenon_status sync(tenon_device device, tenon_stream, tenon_err* err) {
  Request call(device->proxy->connection);
  call.message().put(device->index);
  return call.run(Command::kSync, err);
}

void close(tenon_device device) { close_one_device(*device->proxy); }

}  // namespace

// enumerate and open are given no device yet: see slots.cpp.
void fill_device_table(Proxy& proxy) {
  tenon_device_api& table = proxy.device;
  table.struct_size = sizeof table;
  table.revision = TENON_ABI_REVISION;
  table.features =
      TENON_DEVICE_FEATURE_OWN_KERNELS_ONLY;  // others know only addresses of this process
  table.kind = proxy.description.kind.c_str();
  table.close = close;
  table.alloc = alloc;
  table.free = release;
  table.copy = copy;
  table.fill = fill;
  table.sync = sync;
}

}  // namespace tenon::isolated
