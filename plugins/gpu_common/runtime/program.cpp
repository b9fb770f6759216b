// SPDX-License-Identifier: Apache-2.0
// Source to program, program to kernel.
#include "runtime/program.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "program_cache.hpp"
#include "runtime/compiler.hpp"
#include "runtime/precompiled.hpp"
#include "runtime/prelude.hpp"

namespace gpu {
namespace {

// From the programs that were compiled ahead of time, else from the user's cache, else by the compiler, which then is
// opened. The device is current.
tenon_status load_module(tenon_device device, const std::string& name, const std::string& source,
                         Module* out, tenon_err* err) {
  if (const void* image = precompiled_image(source))
    if (driver.module_load(out, image) == error::kSuccess) return TENON_OK;
  GPU_TRY(load_compiler(err));
  const std::string key = device->identity + "\ncompiler " + compiler_version() + "\n" + source;
  std::string binary = gpu_common::read_cached_binary(vendor::kKind, key);
  if (!binary.empty() && driver.module_load(out, binary.data()) == error::kSuccess) return TENON_OK;
  GPU_TRY(compile(name, source, device->architecture, &binary, err));
  gpu_common::write_cached_binary(vendor::kKind, key, binary);
  const Error error = driver.module_load(out, binary.data());
  return error ? fail_device(device, nullptr, error, err, "load the program %s", name.c_str())
               : TENON_OK;
}

tenon_status program_create(tenon_device device, const tenon_program_request* request,
                            tenon_program* out, tenon_err* err) try {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (!request->name || !request->source || request->source_bytes == 0)
    return fail(err, TENON_INVALID_ARGUMENT, "program: expected a name and a source, got %s",
                request->name ? "no source" : "no name");
  const std::string_view own(request->source, request->source_bytes);
  auto program = std::make_unique<tenon_program_s>();
  program->name = request->name;
  program->signatures = gpu_common::find_kernels(own);
  std::string source = prelude() + gpu_common::line_directive(program->name);
  source += own;
  Current current(device);
  GPU_TRY(load_module(device, program->name, source, &program->module, err));
  *out = program.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// Launches that are queued still need the module. Programs live as long as their device, so this is
// rare.
void program_destroy(tenon_device device, tenon_program program) {
  if (!program) return;
  Current current(device);
  wait_for_streams(device);
  driver.module_unload(program->module);
  delete program;
}

std::string kernel_names(const tenon_program_s& program) {
  std::string names;
  for (const auto& signature : program.signatures)
    names += (names.empty() ? "" : ", ") + signature.name;
  return names.empty() ? "none" : names;
}

// Sizes from the driver; otherwise the number of parameters from the source.
void describe_parameters(const tenon_program_s& program, tenon_kernel_s* kernel) {
  kernel->parameters_known = vendor::parameter_sizes(kernel->function, &kernel->parameters);
  if (kernel->parameters_known) return;
  for (const auto& signature : program.signatures) {
    if (signature.name != kernel->name) continue;
    kernel->parameters.assign(signature.parameters, 0);
    kernel->parameters_known = true;
  }
}

tenon_status program_kernel(tenon_device device, tenon_program program, const char* name,
                            tenon_kernel* out, tenon_err* err) try {
  if (!name)
    return fail(err, TENON_INVALID_ARGUMENT, "program %s: expected a kernel's name",
                program->name.c_str());
  std::lock_guard lock(program->mutex);
  auto known = program->kernels.find(name);
  if (known != program->kernels.end()) {
    *out = known->second.get();
    return TENON_OK;
  }
  Current current(device);
  auto kernel = std::make_unique<tenon_kernel_s>();
  Error error = driver.module_function(&kernel->function, program->module, name);
  if (error == error::kNotFound)
    return fail(err, TENON_NOT_FOUND, "program %s: expected one of its kernels (%s), got '%s'",
                program->name.c_str(), kernel_names(*program).c_str(), name);
  if (error)
    return fail_device(device, nullptr, error, err, "program %s: kernel %s", program->name.c_str(),
                       name);
  kernel->name = device->kernel_names.keep(name);
  error = driver.function_attribute(&kernel->max_group_size, kFunctionMaxThreads, kernel->function);
  if (error)
    return fail_device(device, nullptr, error, err, "program %s: kernel %s", program->name.c_str(),
                       name);
  describe_parameters(*program, kernel.get());
  *out = kernel.get();
  program->kernels.emplace(name, std::move(kernel));
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

uint32_t limit(tenon_device device, int number) {
  return static_cast<uint32_t>(std::max(attribute(device->ordinal, number), 0));
}

tenon_status limits(tenon_device device, tenon_compile_limits* out, tenon_err*) {
  tenon_compile_limits known = {
      .struct_size = sizeof known,
      .flags = TENON_COMPILE_ATOMIC_F32,
      .max_group_size = limit(device, vendor::attribute_number::kMaxThreads),
      .local_bytes = limit(device, vendor::attribute_number::kSharedBytes),
      .subgroup_size = limit(device, vendor::attribute_number::kWarpSize),
      .compute_units = limit(device, vendor::attribute_number::kMultiprocessors),
      .dtype_mask = (uint64_t{1} << TENON_DTYPE_COUNT) - 1,
  };
  // The caller's table may be shorter, or longer.
  known.struct_size = std::min<uint32_t>(out->struct_size, sizeof known);
  std::memcpy(out, &known, known.struct_size);
  return TENON_OK;
}

}  // namespace

const tenon_compile_api kCompile = {
    .struct_size = sizeof(tenon_compile_api),
    .reserved = 0,
    .limits = limits,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_kernel = program_kernel,
    .kernel_launch = kernel_launch,
};

}  // namespace gpu
