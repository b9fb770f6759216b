// SPDX-License-Identifier: Apache-2.0
// Copies and fills.
#include <algorithm>
#include <cstring>
#include <new>

#include "device.hpp"

namespace opencl {
namespace {

using ull = unsigned long long;

tenon_status wait_unless(bool asynchronous, const Event& done, const char* what, tenon_err* err) {
  return asynchronous ? TENON_OK : wait_for(done, what, err);
}

// Between the host and the device. Pinned memory stays valid, so its copies may run later; but
// no thread may see an unfinished copy on the synchronous stream.
tenon_status copy_host(tenon_device device, const tenon_copy_request* request, bool to_device,
                       tenon_err* err) {
  const char* what = to_device ? "copy to device" : "copy to host";
  const char* host_side = to_device ? static_cast<const char*>(request->src) + request->src_offset
                                    : static_cast<char*>(request->dst) + request->dst_offset;
  Place place;
  TENON_TRY(
      to_device
          ? locate(device, request->dst, request->dst_offset, request->bytes, what, &place, err)
          : locate(device, request->src, request->src_offset, request->bytes, what, &place, err));
  if (!host_side || device->addresses.contains(host_side)) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "%s: expected host memory, got %p, an address of the device's", what,
                static_cast<const void*>(host_side));
  }
  Event done;
  cl_int error = submit(
      stream_of(device, request->stream), {TENON_PROFILE_COPY, request->bytes, what},
      [&](cl_command_queue queue, cl_event* event) {
        return to_device ? cl.EnqueueWriteBuffer(queue, place.memory, CL_FALSE, place.offset,
                                                 request->bytes, host_side, 0, nullptr, event)
                         : cl.EnqueueReadBuffer(queue, place.memory, CL_FALSE, place.offset,
                                                request->bytes, const_cast<char*>(host_side), 0,
                                                nullptr, event);
      },
      &done);
  if (error) return fail_driver(err, error, "%s %llu B", what, static_cast<ull>(request->bytes));
  bool asynchronous = request->stream && device->pinned.covers(host_side, request->bytes);
  return wait_unless(asynchronous, done, what, err);
}

// One piece of a copy on the device; the ranges do not overlap.
cl_int copy_piece(tenon_stream_s& stream, const Place& to, const Place& from, uint64_t bytes) {
  return submit(stream, {TENON_PROFILE_COPY, bytes, "copy on device"},
                [&](cl_command_queue queue, cl_event* event) {
                  return cl.EnqueueCopyBuffer(queue, from.memory, to.memory, from.offset, to.offset,
                                              bytes, 0, nullptr, event);
                });
}

tenon_status copy_device(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  uint64_t bytes = request->bytes;
  Place to, from;
  TENON_TRY(locate(device, request->dst, request->dst_offset, bytes, "copy to", &to, err));
  TENON_TRY(locate(device, request->src, request->src_offset, bytes, "copy from", &from, err));
  tenon_stream_s& stream = stream_of(device, request->stream);
  uint64_t distance = to.offset > from.offset ? to.offset - from.offset : from.offset - to.offset;
  if (to.memory == from.memory && distance == 0) return TENON_OK;
  cl_int error;
  if (to.memory != from.memory || distance >= bytes) {
    error = copy_piece(stream, to, from, bytes);
  } else {
    // Overlapping: OpenCL refuses it, the contract wants memmove.
    cl_mem between = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
    if (!error) error = copy_piece(stream, {between, 0}, from, bytes);
    if (!error) error = copy_piece(stream, to, {between, 0}, bytes);
    if (between) cl.ReleaseMemObject(between);  // lives on until the copies have run
  }
  return error ? fail_driver(err, error, "copy %llu B on the device", static_cast<ull>(bytes))
               : TENON_OK;
}

// A pattern at an address that is no multiple of it: OpenCL has no fill for that.
tenon_status fill_by_copy(tenon_device device, const Place& place, uint64_t bytes,
                          const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                          tenon_err* err) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;  // a multiple of every pattern
  auto piece = std::make_unique<char[]>(std::min(bytes, kPiece));
  for (uint64_t done = 0; done < std::min(bytes, kPiece); done += pattern_bytes)
    std::memcpy(&piece[done], pattern, pattern_bytes);
  tenon_stream_s& queue_of = stream_of(device, stream);
  Event done;
  cl_int error = CL_SUCCESS;
  for (uint64_t at = 0; at < bytes && !error; at += kPiece) {
    uint64_t count = std::min(bytes - at, kPiece);
    error = submit(
        queue_of, {TENON_PROFILE_FILL, count, "fill"},
        [&](cl_command_queue queue, cl_event* event) {
          return cl.EnqueueWriteBuffer(queue, place.memory, CL_FALSE, place.offset + at, count,
                                       piece.get(), 0, nullptr, event);
        },
        &done);
  }
  tenon_status waited = wait_for(done, "fill", err);  // the piece must outlive its copies
  return error ? fail_driver(err, error, "fill %llu B", static_cast<ull>(bytes)) : waited;
}

}  // namespace

tenon_status copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->bytes == 0) return TENON_OK;
  switch (request->direction) {
    case TENON_COPY_HOST_TO_DEVICE:
      return copy_host(device, request, true, err);
    case TENON_COPY_DEVICE_TO_HOST:
      return copy_host(device, request, false, err);
    case TENON_COPY_DEVICE_TO_DEVICE:
      return copy_device(device, request, err);
  }
  return fail(err, TENON_INVALID_ARGUMENT, "copy: expected a direction from 0 to 2, got %d",
              request->direction);
}

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                  const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                  tenon_err* err) try {
  bool known = pattern_bytes >= 1 && pattern_bytes <= 16 && !(pattern_bytes & (pattern_bytes - 1));
  if (!known || bytes % pattern_bytes) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "fill: expected whole patterns of 1, 2, 4, 8 or 16 B, got %llu B of %u B each",
                static_cast<ull>(bytes), pattern_bytes);
  }
  if (bytes == 0) return TENON_OK;
  Place place;
  TENON_TRY(locate(device, dst, offset, bytes, "fill", &place, err));
  if (place.offset % pattern_bytes)
    return fill_by_copy(device, place, bytes, pattern, pattern_bytes, stream, err);
  cl_int error = submit(stream_of(device, stream), {TENON_PROFILE_FILL, bytes, "fill"},
                        [&](cl_command_queue queue, cl_event* event) {
                          return cl.EnqueueFillBuffer(queue, place.memory, pattern, pattern_bytes,
                                                      place.offset, bytes, 0, nullptr, event);
                        });
  return error ? fail_driver(err, error, "fill %llu B", static_cast<ull>(bytes)) : TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

}  // namespace opencl
