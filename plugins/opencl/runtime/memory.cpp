// SPDX-License-Identifier: Apache-2.0
// Memory: allocation, and the way from an address to a buffer.
#include "device.hpp"

namespace opencl {
namespace {

using ull = unsigned long long;

// Many drivers allocate at first use, where running out is no longer an error that names its cause;
// so the buffer is made to exist now.
cl_int materialize(tenon_device device, cl_mem memory) {
  Event done;
  cl_int error = submit(
      device->service, kOrdering,
      [&](cl_command_queue queue, cl_event* event) {
        return cl.EnqueueMigrateMemObjects(
            queue, 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, event);
      },
      &done);
  if (error) return error;
  cl_event event = done.get();
  return cl.WaitForEvents(1, &event);
}

// Some drivers say that they are out of memory in words of their own.
cl_int name_exhaustion(cl_int error) {
  bool vague =
      error == CL_OUT_OF_RESOURCES || error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  return vague ? CL_MEM_OBJECT_ALLOCATION_FAILURE : error;
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
  if (error) {
    status = fail_driver(err, name_exhaustion(error), "alloc %llu B", static_cast<ull>(bytes));
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

void unmap(tenon_device device, const Pinned& pinned) {
  cl.EnqueueUnmapMemObject(device->service.queue, pinned.memory, pinned.mapped, 0, nullptr,
                           nullptr);
  cl.Finish(device->service.queue);
  cl.ReleaseMemObject(pinned.memory);
}

tenon_status alloc_pinned(tenon_device device, const tenon_alloc_request* request, void** out,
                          tenon_err* err) {
  uint64_t bytes = request->bytes + request->align;  // the driver offers no alignment but its own
  if (bytes < request->bytes || bytes > device->buffer_bytes) {
    return fail(err, TENON_OUT_OF_MEMORY,
                "alloc %llu B pinned: the device's buffers have at most %llu B",
                static_cast<ull>(request->bytes), static_cast<ull>(device->buffer_bytes));
  }
  cl_int error;
  cl_mem memory = cl.CreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes,
                                  nullptr, &error);
  if (error)
    return fail_driver(err, name_exhaustion(error), "alloc %llu B pinned", static_cast<ull>(bytes));
  void* mapped =
      cl.EnqueueMapBuffer(device->service.queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                          bytes, 0, nullptr, nullptr, &error);
  if (error) {
    cl.ReleaseMemObject(memory);
    return fail_driver(err, name_exhaustion(error), "alloc %llu B pinned", static_cast<ull>(bytes));
  }
  auto address = (reinterpret_cast<uintptr_t>(mapped) + request->align - 1) & ~(request->align - 1);
  Pinned pinned = {memory, mapped, request->bytes};
  if (!device->pinned.insert(reinterpret_cast<void*>(address), pinned)) {
    unmap(device, pinned);
    return fail_host_memory(err);
  }
  *out = reinterpret_cast<void*>(address);
  return TENON_OK;
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
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "%s: expected %llu B inside one allocation, got an address %llu B into one of %llu B", what,
        static_cast<ull>(bytes), static_cast<ull>(inside), static_cast<ull>(buffer->bytes));
  }
  *out = {buffer->memory, inside};
  return TENON_OK;
}

tenon_status alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                   tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->bytes == 0 || request->align == 0 || (request->align & (request->align - 1))) {
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "alloc: expected bytes > 0 and an alignment that is a power of two, got %llu and %llu",
        static_cast<ull>(request->bytes), static_cast<ull>(request->align));
  }
  if (request->kind == TENON_ALLOC_DEVICE) return alloc_device(device, request, out, err);
  if (request->kind == TENON_ALLOC_PINNED) return alloc_pinned(device, request, out, err);
  return fail(err, TENON_UNSUPPORTED,
              "alloc: expected device (0) or pinned (1) memory, got kind %u; OpenCL 1.2 shares no "
              "addresses with the host",
              request->kind);
}

// The driver keeps a buffer until the commands that use it have run, so nothing is waited for.
void release(tenon_device device, void* memory, uint64_t, tenon_stream) {
  Buffer* buffer = device->addresses.find(memory);
  if (buffer && buffer->address == reinterpret_cast<uintptr_t>(memory)) {
    device->allocated.fetch_sub(buffer->bytes, std::memory_order_relaxed);
    cl.ReleaseMemObject(buffer->memory);
    device->addresses.remove(buffer);
    return;
  }
  Pinned pinned;
  if (!device->pinned.take(memory, &pinned)) return;
  // Copies still queued read the mapping, which the driver does not know.
  drain(device);
  unmap(device, pinned);
}

}  // namespace opencl
