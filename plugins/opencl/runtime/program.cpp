// SPDX-License-Identifier: Apache-2.0
// Source to program, program to kernel.
#include "program.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernel_source.hpp"
#include "prelude.hpp"
#include "program_cache.hpp"

namespace opencl {
namespace {

// The folder of compiled programs.
constexpr const char* kCacheFolder = "opencl";

using Program = std::unique_ptr<tenon_program_s>;

cl_int build(tenon_device device, cl_program program) {
  return cl.BuildProgram(program, 1, &device->id, device->build_options.c_str(), nullptr, nullptr);
}

// NULL: the driver does not want it.
cl_program program_from_binary(tenon_device device, const std::string& binary) {
  if (binary.empty()) return nullptr;
  auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  size_t size = binary.size();
  cl_int accepted = CL_SUCCESS, error;
  cl_program program =
      cl.CreateProgramWithBinary(device->context, 1, &device->id, &size, &bytes, &accepted, &error);
  if (!error && !accepted && build(device, program) == CL_SUCCESS) return program;
  if (program) cl.ReleaseProgram(program);
  return nullptr;
}

// Empty: the driver gives none away.
std::string binary_of(cl_program program) {
  size_t size = 0;
  if (cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr)) return "";
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr)) return "";
  return binary;
}

std::string build_log(tenon_device device, cl_program program) {
  size_t size = 0;
  cl.GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  cl.GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::min(log.find('\0'), size));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  return log;
}

tenon_status program_from_source(tenon_device device, const std::string& source, const char* name,
                                 cl_program* out, tenon_err* err) {
  const char* text = source.data();
  size_t size = source.size();
  cl_int error;
  cl_program program = cl.CreateProgramWithSource(device->context, 1, &text, &size, &error);
  if (error) return fail_driver(err, error, "program %s", name);
  if ((error = build(device, program))) {
    std::string log = build_log(device, program);
    cl.ReleaseProgram(program);
    return fail_driver(err, error, "program %s does not compile: %.3500s", name, log.c_str());
  }
  *out = program;
  return TENON_OK;
}

tenon_status program_create(tenon_device device, const tenon_program_request* request,
                            tenon_program* out, tenon_err* err) try {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (!request->name || !request->source || request->source_bytes == 0)
    return fail(err, TENON_INVALID_ARGUMENT, "program: expected a name and a source, got %s",
                request->name ? "no source" : "no name");
  auto result = std::make_unique<tenon_program_s>();
  result->name = request->name;
  std::string source = prelude(device->has_float64) + gpu_common::line_directive(result->name);
  source.append(request->source, request->source_bytes);
  std::string key = device->identity + "\n" + device->build_options + "\n" + source;

  result->program = program_from_binary(device, gpu_common::read_cached_binary(kCacheFolder, key));
  if (!result->program) {
    TENON_TRY(program_from_source(device, source, request->name, &result->program, err));
    gpu_common::write_cached_binary(kCacheFolder, key, binary_of(result->program));
  }
  *out = result.release();
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// The driver keeps kernels and program until their launches have run.
void program_destroy(tenon_device, tenon_program program) { delete program; }

std::string kernel_names(cl_program program) {
  size_t size = 0;
  if (cl.GetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, 0, nullptr, &size) || size == 0)
    return "none";
  std::string names(size, '\0');
  cl.GetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, size, names.data(), nullptr);
  names.pop_back();
  return names.empty() ? "none" : names;
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
  auto kernel = std::make_unique<tenon_kernel_s>();
  cl_int error;
  kernel->kernel = cl.CreateKernel(program->program, name, &error);
  if (error == CL_INVALID_KERNEL_NAME)
    return fail(err, TENON_NOT_FOUND, "program %s: expected one of its kernels (%s), got '%s'",
                program->name.c_str(), kernel_names(program->program).c_str(), name);
  if (error) return fail_driver(err, error, "program %s: kernel %s", program->name.c_str(), name);
  kernel->name = name;
  cl.GetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof kernel->arguments, &kernel->arguments,
                   nullptr);
  cl.GetKernelWorkGroupInfo(kernel->kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                            sizeof kernel->max_group_size, &kernel->max_group_size, nullptr);
  *out = kernel.get();
  program->kernels.emplace(name, std::move(kernel));
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

template <class T>
uint32_t clamped(T value, uint32_t most) {
  return value < most ? static_cast<uint32_t>(value) : most;
}

tenon_status limits(tenon_device device, tenon_compile_limits* out, tenon_err*) {
  uint64_t mask = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;
  if (!device->has_float64)
    mask &= ~(uint64_t{1} << TENON_DTYPE_F64 | uint64_t{1} << TENON_DTYPE_C128);
  tenon_compile_limits known = {
      .struct_size = sizeof known,
      .flags = device->is_processor ? uint32_t{TENON_COMPILE_HOST_LIKE} : 0u,
      .max_group_size =
          clamped(device_value<size_t>(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE), 1024),
      .local_bytes =
          clamped(device_value<cl_ulong>(device->id, CL_DEVICE_LOCAL_MEM_SIZE), UINT32_MAX),
      .subgroup_size = 1,  // OpenCL 1.2 promises none
      .compute_units = device_value<cl_uint>(device->id, CL_DEVICE_MAX_COMPUTE_UNITS),
      .dtype_mask = mask,
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

}  // namespace opencl
