// SPDX-License-Identifier: Apache-2.0
// Memory: allocation, copies, fills.
#include <algorithm>
#include <cstring>
#include <new>

#include "device.hpp"

namespace opencl {
namespace {

using ull = unsigned long long;

// Many drivers allocate at first use, where running out is no longer an error that names its cause; so
// the buffer is made to exist now.
cl_int materialize(tenon_device device, cl_mem memory) {
  Event done;
  cl_int error = submit(
      device->service, kOrdering,
      [&](cl_command_queue queue, cl_event* event) {
        return cl.EnqueueMigrateMemObjects(queue, 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED,
                                           0, nullptr, event);
      },
      &done);
  if (error) return error;
  cl_event event = done.get();
  return cl.WaitForEvents(1, &event);
}

tenon_status alloc_device(tenon_device device, const tenon_alloc_request* request, void** out,
                          tenon_err* err) {
  uint64_t bytes = request->bytes;
  if (bytes > device->buffer_bytes) {
    return fail(err, TENON_OUT_OF_MEMORY, "alloc %llu B: the device's buffers have at most %llu B",
                static_cast<ull>(bytes), static_cast<ull>(device->buffer_bytes));
  }
  uint64_t before = device->allocated.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes > device->memory_bytes) {
    device->allocated.fetch_sub(bytes, std::memory_order_relaxed);
    return fail(err, TENON_OUT_OF_MEMORY, "alloc %llu B: %llu B of the device's %llu B are taken",
                static_cast<ull>(bytes), static_cast<ull>(before),
                static_cast<ull>(device->memory_bytes));
  }
  cl_int error;
  cl_mem memory = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  if (!error) error = materialize(device, memory);
  Buffer* buffer = nullptr;
  tenon_status status = TENON_OK;
  if (error == CL_OUT_OF_RESOURCES || error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    error = CL_MEM_OBJECT_ALLOCATION_FAILURE;  // so say some drivers
  if (error) {
    status = fail_driver(err, error, "alloc %llu B", static_cast<ull>(bytes));
  } else {
    buffer = device->addresses.place(memory, bytes, request->align);
    if (!buffer) {
      status = fail(err, TENON_OUT_OF_MEMORY, "alloc %llu B: no addresses are left for it",
                    static_cast<ull>(bytes));
    }
  }
  if (status != TENON_OK) {
    if (memory) cl.ReleaseMemObject(memory);
    device->allocated.fetch_sub(bytes, std::memory_order_relaxed);
    return status;
  }
  *out = reinterpret_cast<void*>(buffer->address);
  return TENON_OK;
}

tenon_status alloc_pinned(tenon_device device, const tenon_alloc_request* request, void** out,
                          tenon_err* err) {
  uint64_t bytes = request->bytes + request->align;  // the driver knows no alignment but its own
  if (bytes < request->bytes || bytes > device->buffer_bytes) {
    return fail(err, TENON_OUT_OF_MEMORY, "alloc %llu B pinned: the device's buffers have at most %llu B",
                static_cast<ull>(request->bytes), static_cast<ull>(device->buffer_bytes));
  }
  cl_int error;
  cl_mem memory = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes,
                                  nullptr, &error);
  if (error) return fail_driver(err, error, "alloc %llu B pinned", static_cast<ull>(bytes));
  void* mapped = cl.EnqueueMapBuffer(device->service.queue, memory, CL_TRUE,
                                     CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &error);
  if (error) {
    cl.ReleaseMemObject(memory);
    return fail_driver(err, error, "alloc %llu B pinned", static_cast<ull>(bytes));
  }
  auto address = (reinterpret_cast<uintptr_t>(mapped) + request->align - 1) & ~(request->align - 1);
  *out = reinterpret_cast<void*>(address);
  device->pinned.insert(*out, {memory, mapped, request->bytes});
  return TENON_OK;
}

tenon_status wait_unless(bool asynchronous, const Event& done, const char* what, tenon_err* err) {
  return asynchronous ? TENON_OK : wait_for(done, what, err);
}

// Between the host and the device. Pinned memory stays valid, so its copies may run later; but nobody
// may see a copy on the synchronous stream unfinished.
tenon_status copy_host(tenon_device device, const tenon_copy_request* request, bool to_device,
                       tenon_err* err) {
  const char* what = to_device ? "copy to device" : "copy to host";
  const char* host_side = to_device ? static_cast<const char*>(request->src) + request->src_offset
                                    : static_cast<char*>(request->dst) + request->dst_offset;
  Place place;
  OPENCL_TRY(to_device ? locate(device, request->dst, request->dst_offset, request->bytes, what, &place, err)
                       : locate(device, request->src, request->src_offset, request->bytes, what, &place, err));
  if (!host_side || device->addresses.contains(host_side)) {
    return fail(err, TENON_INVALID_ARGUMENT, "%s: expected host memory, got %p, an address of the device's",
                what, static_cast<const void*>(host_side));
  }
  Event done;
  cl_int error = submit(
      stream_of(device, request->stream), {TENON_PROFILE_COPY, request->bytes, what},
      [&](cl_command_queue queue, cl_event* event) {
        return to_device ? cl.EnqueueWriteBuffer(queue, place.memory, CL_FALSE, place.offset, request->bytes,
                                                 host_side, 0, nullptr, event)
                         : cl.EnqueueReadBuffer(queue, place.memory, CL_FALSE, place.offset, request->bytes,
                                                const_cast<char*>(host_side), 0, nullptr, event);
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
                  return cl.EnqueueCopyBuffer(queue, from.memory, to.memory, from.offset, to.offset, bytes,
                                              0, nullptr, event);
                });
}

tenon_status copy_device(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  uint64_t bytes = request->bytes;
  Place to, from;
  OPENCL_TRY(locate(device, request->dst, request->dst_offset, bytes, "copy to", &to, err));
  OPENCL_TRY(locate(device, request->src, request->src_offset, bytes, "copy from", &from, err));
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
  return error ? fail_driver(err, error, "copy %llu B on the device", static_cast<ull>(bytes)) : TENON_OK;
}

// A pattern at an address that is no multiple of it: OpenCL has no fill for that.
tenon_status fill_by_copy(tenon_device device, const Place& place, uint64_t bytes, const void* pattern,
                          uint32_t pattern_bytes, tenon_stream stream, tenon_err* err) {
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
          return cl.EnqueueWriteBuffer(queue, place.memory, CL_FALSE, place.offset + at, count, piece.get(), 0,
                                       nullptr, event);
        },
        &done);
  }
  tenon_status waited = wait_for(done, "fill", err);  // the piece must outlive its copies
  return error ? fail_driver(err, error, "fill %llu B", static_cast<ull>(bytes)) : waited;
}

}  // namespace

tenon_status locate(tenon_device device, const void* address, uint64_t offset, uint64_t bytes,
                    const char* what, Place* out, tenon_err* err) {
  uintptr_t at = reinterpret_cast<uintptr_t>(address) + offset;
  const Buffer* buffer = device->addresses.find(reinterpret_cast<const void*>(at));
  if (!buffer) {
    return fail(err, TENON_INVALID_ARGUMENT, "%s: expected memory of this device, got %p", what,
                reinterpret_cast<void*>(at));
  }
  uint64_t inside = at - buffer->address;
  if (inside > buffer->bytes || bytes > buffer->bytes - inside) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "%s: expected %llu B inside one allocation, got an address %llu B into one of %llu B", what,
                static_cast<ull>(bytes), static_cast<ull>(inside), static_cast<ull>(buffer->bytes));
  }
  *out = {buffer->memory, inside};
  return TENON_OK;
}

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) try {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->bytes == 0 || request->align == 0 || (request->align & (request->align - 1))) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "alloc: expected bytes > 0 and an alignment that is a power of two, got %llu and %llu",
                static_cast<ull>(request->bytes), static_cast<ull>(request->align));
  }
  if (request->kind == TENON_ALLOC_DEVICE) return alloc_device(device, request, out, err);
  if (request->kind == TENON_ALLOC_PINNED) return alloc_pinned(device, request, out, err);
  return fail(err, TENON_UNSUPPORTED,
              "alloc: expected device (0) or pinned (1) memory, got kind %u; OpenCL 1.2 shares no addresses "
              "with the host",
              request->kind);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// The driver keeps a buffer until the commands that use it have run, so nothing is waited for.
void release(tenon_device device, void* memory, uint64_t, tenon_stream) {
  if (Buffer* buffer = device->addresses.find(memory)) {
    device->allocated.fetch_sub(buffer->bytes, std::memory_order_relaxed);
    cl.ReleaseMemObject(buffer->memory);
    device->addresses.remove(buffer);
    return;
  }
  Pinned pinned;
  if (!device->pinned.take(memory, &pinned)) return;
  // Copies still queued read the mapping, which the driver does not know.
  drain(device);
  cl.EnqueueUnmapMemObject(device->service.queue, pinned.memory, pinned.mapped, 0, nullptr, nullptr);
  cl.Finish(device->service.queue);
  cl.ReleaseMemObject(pinned.memory);
}

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

tenon_status fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                  uint32_t pattern_bytes, tenon_stream stream, tenon_err* err) try {
  bool known = pattern_bytes >= 1 && pattern_bytes <= 16 && !(pattern_bytes & (pattern_bytes - 1));
  if (!known || bytes % pattern_bytes) {
    return fail(err, TENON_INVALID_ARGUMENT,
                "fill: expected whole patterns of 1, 2, 4, 8 or 16 B, got %llu B of %u B each",
                static_cast<ull>(bytes), pattern_bytes);
  }
  if (bytes == 0) return TENON_OK;
  Place place;
  OPENCL_TRY(locate(device, dst, offset, bytes, "fill", &place, err));
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
