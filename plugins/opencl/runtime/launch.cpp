// SPDX-License-Identifier: Apache-2.0
// Arguments and launch of one kernel.
#include <cstdio>

#include "program.hpp"

namespace opencl {
namespace {

// Arguments as OpenCL counts them.
cl_uint count_arguments(const tenon_launch_request& request) {
  cl_uint count = 0;
  for (uint32_t i = 0; i < request.nargs; ++i)
    count += request.args[i].kind == TENON_LAUNCH_BUFFER ? 2 : 1;
  return count;
}

// A handle and the offset in it; see the prelude.
tenon_status set_buffer(tenon_device device, const tenon_kernel_s& kernel, uint32_t index,
                        const tenon_launch_arg& arg, cl_uint* position, tenon_err* err) {
  Place place = {nullptr, 0};
  if (arg.p) {
    char what[48];
    std::snprintf(what, sizeof what, "launch: argument %u", index);
    TENON_TRY(locate(device, arg.p, arg.offset, 0, what, &place, err));
  }
  cl_ulong offset = place.offset;
  cl_int error = cl.SetKernelArg(kernel.kernel, (*position)++, sizeof(cl_mem), &place.memory);
  if (!error) error = cl.SetKernelArg(kernel.kernel, (*position)++, sizeof offset, &offset);
  if (!error) return TENON_OK;
  return fail_driver(err, error,
                     "launch of %s: argument %u: expected what the kernel declares, got a buffer",
                     kernel.name.c_str(), index);
}

tenon_status set_arguments(tenon_device device, const tenon_kernel_s& kernel,
                           const tenon_launch_request& request, tenon_err* err) {
  cl_uint position = 0;
  for (uint32_t i = 0; i < request.nargs; ++i) {
    const tenon_launch_arg& arg = request.args[i];
    if (arg.kind == TENON_LAUNCH_BUFFER) {
      TENON_TRY(set_buffer(device, kernel, i, arg, &position, err));
      continue;
    }
    if (arg.kind != TENON_LAUNCH_VALUE || arg.bytes > 64 || !arg.p)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "launch of %s: argument %u: expected kind 0 or 1 and a value of at most 64 B, "
                  "got kind %u "
                  "and %u B",
                  kernel.name.c_str(), i, arg.kind, arg.bytes);
    if (cl_int error = cl.SetKernelArg(kernel.kernel, position++, arg.bytes, arg.p))
      return fail_driver(
          err, error,
          "launch of %s: argument %u: expected what the kernel declares, got a value of %u B",
          kernel.name.c_str(), i, arg.bytes);
  }
  return TENON_OK;
}

// The grid in OpenCL's terms.
tenon_status read_grid(const tenon_kernel_s& kernel, const tenon_launch_request& request,
                       size_t global[3], size_t local[3], tenon_err* err) {
  uint64_t items = 1;
  for (int i = 0; i < 3; ++i) {
    if (request.groups[i] == 0 || request.group_size[i] == 0)
      return fail(
          err, TENON_INVALID_ARGUMENT,
          "launch of %s: expected groups and group_size of at least 1 in each direction, got 0",
          kernel.name.c_str());
    local[i] = request.group_size[i];
    global[i] = local[i] * request.groups[i];
    items = local[i] > kernel.max_group_size ? UINT32_MAX : items * local[i];  // no overflow
    if (items > kernel.max_group_size)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "launch of %s: expected at most %zu work items in a group, got %u x %u x %u",
                  kernel.name.c_str(), kernel.max_group_size, request.group_size[0],
                  request.group_size[1], request.group_size[2]);
  }
  return TENON_OK;
}

}  // namespace

tenon_status kernel_launch(tenon_device device, const tenon_launch_request* request,
                           tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  tenon_kernel_s& kernel = *request->kernel;
  if (cl_uint count = count_arguments(*request); count != kernel.arguments)
    return fail(
        err, TENON_INVALID_ARGUMENT,
        "launch of %s: expected arguments that make %u of OpenCL's (a buffer makes two), got %u",
        kernel.name.c_str(), kernel.arguments, count);
  size_t global[3], local[3];
  TENON_TRY(read_grid(kernel, *request, global, local, err));
  std::lock_guard lock(kernel.mutex);
  TENON_TRY(set_arguments(device, kernel, *request, err));
  cl_int error =
      submit(stream_of(device, request->stream), {TENON_PROFILE_KERNEL, 0, kernel.name.c_str()},
             [&](cl_command_queue queue, cl_event* event) {
               return cl.EnqueueNDRangeKernel(queue, kernel.kernel, 3, nullptr, global, local, 0,
                                              nullptr, event);
             });
  return error ? fail_driver(err, error, "launch of %s", kernel.name.c_str()) : TENON_OK;
}

}  // namespace opencl
