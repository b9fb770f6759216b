// SPDX-License-Identifier: Apache-2.0
// Programs: Kernel C compiled when a program is created, launched as tasks of a stream.
#include <algorithm>
#include <cstring>
#include <list>

#include "../kernels/numbers.hpp"
#include "compiler.hpp"
#include "device.hpp"
#include "work_group.hpp"

struct tenon_kernel_s {
  std::shared_ptr<reference::KernelLibrary> library;
  const reference::KernelEntry* entry;
};

struct tenon_program_s {
  std::shared_ptr<reference::KernelLibrary> library;  // queued launches hold it too
  std::mutex mutex;
  std::list<tenon_kernel_s> kernels;  // handed out: addresses stay
};

namespace reference {
namespace {

constexpr uint32_t kMaxValueBytes = 64;

tenon_status limits(tenon_device, tenon_compile_limits* out, tenon_err*) {
  *out = {
      .struct_size = sizeof *out,
      .flags = TENON_COMPILE_HOST_LIKE,
      .max_group_size = kMaxItems,
      .local_bytes = 64 << 10,
      .subgroup_size = 1,
      .compute_units = 1,  // a stream is one thread
      .dtype_mask = kReal,
  };
  return TENON_OK;
}

tenon_status program_create(tenon_device, const tenon_program_request* request, tenon_program* out,
                            tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  auto program = std::make_unique<tenon_program_s>();
  const Result result =
      compile_kernels(request->name ? request->name : "program",
                      {request->source, request->source_bytes}, &program->library);
  if (result.status == TENON_OK) *out = program.release();
  return report(result, err);
}

void program_destroy(tenon_device, tenon_program program) { delete program; }

tenon_status program_kernel(tenon_device, tenon_program program, const char* name,
                            tenon_kernel* out, tenon_err* err) {
  const KernelEntry* entry = program->library->find(name);
  if (!entry)
    return tenon::fail(err, TENON_NOT_FOUND,
                       std::string("reference: the program has no kernel '") + name + "'");
  std::lock_guard lock(program->mutex);
  program->kernels.push_back({program->library, entry});
  *out = &program->kernels.back();
  return TENON_OK;
}

// Values are read now, so the closure has its own.
struct Arguments {
  struct alignas(16) Slot {
    char bytes[kMaxValueBytes];
  };
  std::vector<Slot> slots;
  std::vector<void*> pointers;
};

tenon_status bad_argument(const KernelEntry& kernel, uint32_t i, const std::string& text,
                          tenon_err* err) {
  return tenon::fail(err, TENON_INVALID_ARGUMENT,
                     std::string("reference: kernel ") + kernel.name + ": argument " +
                         std::to_string(i) + ": " + text);
}

tenon_status read_arguments(tenon_device device, const KernelEntry& kernel,
                            const tenon_launch_request& request, Arguments* out, tenon_err* err) {
  if (request.nargs != kernel.count)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       std::string("reference: kernel ") + kernel.name + ": expected " +
                           std::to_string(kernel.count) + " arguments, got " +
                           std::to_string(request.nargs));
  out->slots.resize(kernel.count);
  for (uint32_t i = 0; i < kernel.count; ++i) {
    const tenon_launch_arg& arg = request.args[i];
    const uint32_t wanted = kernel.parameters[i];
    char* slot = out->slots[i].bytes;
    if (wanted == kBufferParameter) {
      if (arg.kind != TENON_LAUNCH_BUFFER)
        return bad_argument(kernel, i, "expected a buffer, got a value", err);
      if (arg.p)
        if (tenon_status status = check_range(device, arg.p, 0, kernel.name, err);
            status != TENON_OK)
          return status;
      std::memcpy(slot, &arg.p, sizeof arg.p);
    } else {
      if (arg.kind != TENON_LAUNCH_VALUE || arg.bytes != wanted || wanted > kMaxValueBytes)
        return bad_argument(
            kernel, i,
            "expected a value of " + std::to_string(wanted) + " bytes, got " +
                (arg.kind == TENON_LAUNCH_VALUE ? std::to_string(arg.bytes) : "a buffer"),
            err);
      std::memcpy(slot, arg.p, wanted);
    }
    out->pointers.push_back(slot);
  }
  return TENON_OK;
}

tenon_status kernel_launch(tenon_device device, const tenon_launch_request* request,
                           tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  const KernelEntry& kernel = *request->kernel->entry;
  const uint32_t *size = request->group_size, *groups = request->groups;
  const uint64_t items =
      uint64_t{size[0]} * size[1] * size[2];  // each factor is small, or the test fails
  if (*std::min_element(groups, groups + 3) == 0 || items == 0 ||
      *std::max_element(size, size + 3) > kMaxItems || items > kMaxItems)
    return tenon::fail(err, TENON_INVALID_ARGUMENT,
                       std::string("reference: kernel ") + kernel.name +
                           ": expected at least 1 group and 1 to 256 items in each");
  auto arguments = std::make_shared<Arguments>();
  if (tenon_status status = read_arguments(device, kernel, *request, arguments.get(), err);
      status != TENON_OK)
    return status;
  struct {
    uint32_t groups[3], size[3];
  } grid = {{groups[0], groups[1], groups[2]}, {size[0], size[1], size[2]}};
  return enqueue(device, request->stream,
                 {TENON_PROFILE_KERNEL, kernel.name, 0,
                  [=, library = request->kernel->library, entry = &kernel] {
                    run_groups(*entry, arguments->pointers.data(), grid.groups, grid.size);
                    return Result{};
                  }},
                 err);
}

}  // namespace

const tenon_compile_api kCompile = {
    .struct_size = sizeof(tenon_compile_api),
    .limits = limits,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_kernel = program_kernel,
    .kernel_launch = kernel_launch,
};

}  // namespace reference
