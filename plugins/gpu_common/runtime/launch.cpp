// SPDX-License-Identifier: Apache-2.0
// Arguments and launch of one kernel.
#include "runtime/program.hpp"

namespace gpu {
namespace {

constexpr uint32_t kMaxArguments = 128;
constexpr uint32_t kMaxValueBytes = 64;

// Both vendors take the address of each argument's value. A buffer's value is its address.
tenon_status point_to_arguments(const tenon_kernel_s& kernel, const tenon_launch_request& request,
                                void** parameters, tenon_err* err) {
  for (uint32_t i = 0; i < request.nargs; ++i) {
    const tenon_launch_arg& arg = request.args[i];
    const bool is_buffer = arg.kind == TENON_LAUNCH_BUFFER;
    if (!is_buffer && (arg.kind != TENON_LAUNCH_VALUE || arg.bytes > kMaxValueBytes || !arg.p))
      return fail(err, TENON_INVALID_ARGUMENT,
                  "launch of %s: argument %u: expected kind 0 or 1 and a value of at most 64 B, "
                  "got kind %u and %u B",
                  kernel.name, i, arg.kind, arg.bytes);
    const size_t bytes = is_buffer ? sizeof(void*) : arg.bytes;
    if (kernel.parameters_known && kernel.parameters[i] && kernel.parameters[i] != bytes)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "launch of %s: argument %u: expected the %zu B that the kernel declares, got %s "
                  "of %zu B",
                  kernel.name, i, kernel.parameters[i], is_buffer ? "a buffer" : "a value", bytes);
    parameters[i] = const_cast<void*>(is_buffer ? static_cast<const void*>(&arg.p) : arg.p);
  }
  return TENON_OK;
}

tenon_status check_grid(const tenon_kernel_s& kernel, const tenon_launch_request& request,
                        tenon_err* err) {
  const auto most = static_cast<uint64_t>(kernel.max_group_size);
  uint64_t items = 1;
  for (int i = 0; i < 3; ++i) {
    if (request.groups[i] == 0 || request.group_size[i] == 0)
      return fail(
          err, TENON_INVALID_ARGUMENT,
          "launch of %s: expected groups and group_size of at least 1 in each direction, got 0",
          kernel.name);
    items = request.group_size[i] > most ? UINT32_MAX : items * request.group_size[i];
    if (items > most)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "launch of %s: expected at most %d work items in a group, got %u x %u x %u",
                  kernel.name, kernel.max_group_size, request.group_size[0], request.group_size[1],
                  request.group_size[2]);
  }
  return TENON_OK;
}

}  // namespace

tenon_status kernel_launch(tenon_device device, const tenon_launch_request* request,
                           tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  const tenon_kernel_s& kernel = *request->kernel;
  if (kernel.parameters_known && request->nargs != kernel.parameters.size())
    return fail(err, TENON_INVALID_ARGUMENT, "launch of %s: expected %zu arguments, got %u",
                kernel.name, kernel.parameters.size(), request->nargs);
  if (request->nargs > kMaxArguments)
    return fail(err, TENON_INVALID_ARGUMENT, "launch of %s: expected at most %u arguments, got %u",
                kernel.name, kMaxArguments, request->nargs);
  void* parameters[kMaxArguments];
  GPU_TRY(point_to_arguments(kernel, *request, parameters, err));
  GPU_TRY(check_grid(kernel, *request, err));
  Current current(device);
  tenon_stream_s& stream = stream_of(device, request->stream);
  Profile::Scope profile(device, stream, TENON_PROFILE_KERNEL, kernel.name);
  Error error = follow_synchronous(stream);
  if (!error) {
    stream.last_kernel.store(kernel.name, std::memory_order_relaxed);
    error = driver.launch(kernel.function, request->groups[0], request->groups[1],
                          request->groups[2], request->group_size[0], request->group_size[1],
                          request->group_size[2], 0, stream.stream, parameters, nullptr);
  }
  profile.finish();
  submitted(stream);
  if (!error && device->blocking && !stream.capturing) error = driver.stream_sync(stream.stream);
  return error ? fail_device(device, &stream, error, err, "launch of %s", kernel.name) : TENON_OK;
}

}  // namespace gpu
