// SPDX-License-Identifier: Apache-2.0
// The system's OpenCL with faults: what is defined here comes before the real library, which this
// one depends on; all else is the real one's.
#include <dlfcn.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

// How many of the next calls fail; set by the test.
extern "C" int failing_buffers, failing_migrations, failing_launches, failing_binaries;
int failing_buffers = 0, failing_migrations = 0, failing_launches = 0, failing_binaries = 0;

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool fails(int& countdown) {
  if (countdown == 0) return false;
  --countdown;
  return true;
}

}  // namespace

extern "C" {

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* from,
                      cl_int* error) {
  if (fails(failing_buffers)) {
    *error = CL_OUT_OF_RESOURCES;  // what a large vendor's driver says
    return nullptr;
  }
  return real<decltype(clCreateBuffer)>("clCreateBuffer")(context, flags, bytes, from, error);
}

cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem* memory,
                                  cl_mem_migration_flags flags, cl_uint waits,
                                  const cl_event* wait_list, cl_event* event) {
  if (fails(failing_migrations)) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return real<decltype(clEnqueueMigrateMemObjects)>("clEnqueueMigrateMemObjects")(
      queue, count, memory, flags, waits, wait_list, event);
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                     const size_t* sizes, const unsigned char** binaries,
                                     cl_int* status, cl_int* error) {
  if (fails(failing_binaries)) {
    *error = CL_INVALID_BINARY;
    return nullptr;
  }
  return real<decltype(clCreateProgramWithBinary)>("clCreateProgramWithBinary")(
      context, count, devices, sizes, binaries, status, error);
}

// The command is queued, and ends with an error as if the device had found one.
cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint waits, const cl_event* wait_list, cl_event* event) {
  auto* enqueue = real<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  if (!fails(failing_launches))
    return enqueue(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
  cl_context context;
  cl_int error;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  cl_event never = clCreateUserEvent(context, &error);
  if (error) return error;
  error = enqueue(queue, kernel, dimensions, offset, global, local, 1, &never, event);
  clSetUserEventStatus(never, CL_OUT_OF_RESOURCES);
  clReleaseEvent(never);
  return error;
}

}  // extern "C"
