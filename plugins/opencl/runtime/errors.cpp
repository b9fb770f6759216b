// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <cstdarg>

namespace opencl {
namespace {

tenon_status code_of(cl_int error) {
  switch (error) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
      return TENON_OUT_OF_MEMORY;
    case CL_DEVICE_NOT_FOUND:
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_COMPILER_NOT_AVAILABLE:
      return TENON_UNAVAILABLE;
    case CL_BUILD_PROGRAM_FAILURE:  // of the caller's source, or of its kernel's arguments
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_MEM_OBJECT:
      return TENON_INVALID_ARGUMENT;
    default:
      return TENON_INTERNAL;
  }
}

}  // namespace

tenon_status fail(tenon_err* err, tenon_status code, const char* format, ...) {
  ::tenon::TextBuffer text;
  text.append("opencl: ");
  va_list args;
  va_start(args, format);
  text.append_list(format, args);
  va_end(args);
  host->fail(err, code, 0, text.text().data(), text.text().size());
  return code;
}

tenon_status fail_driver(tenon_err* err, cl_int error, const char* format, ...) {
  ::tenon::TextBuffer text;
  text.append("opencl: ");
  va_list args;
  va_start(args, format);
  text.append_list(format, args);
  va_end(args);
  text.append(": %s (%d)", error_name(error), error);
  host->fail(err, code_of(error), error, text.text().data(), text.text().size());
  return code_of(error);
}

tenon_status fail_host_memory(tenon_err* err) {
  return fail(err, TENON_OUT_OF_MEMORY, "out of host memory");
}

void log_info(const char* format, ...) {
  ::tenon::TextBuffer text;
  text.append("opencl: ");
  va_list args;
  va_start(args, format);
  text.append_list(format, args);
  va_end(args);
  host->log(1, text.text().data(), text.text().size());
}

const char* error_name(cl_int error) {
  switch (error) {
#define TENON_OPENCL_ERROR(name) \
  case name:                     \
    return #name;
    TENON_OPENCL_ERROR(CL_SUCCESS)
    TENON_OPENCL_ERROR(CL_DEVICE_NOT_FOUND)
    TENON_OPENCL_ERROR(CL_DEVICE_NOT_AVAILABLE)
    TENON_OPENCL_ERROR(CL_COMPILER_NOT_AVAILABLE)
    TENON_OPENCL_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    TENON_OPENCL_ERROR(CL_OUT_OF_RESOURCES)
    TENON_OPENCL_ERROR(CL_OUT_OF_HOST_MEMORY)
    TENON_OPENCL_ERROR(CL_PROFILING_INFO_NOT_AVAILABLE)
    TENON_OPENCL_ERROR(CL_MEM_COPY_OVERLAP)
    TENON_OPENCL_ERROR(CL_BUILD_PROGRAM_FAILURE)
    TENON_OPENCL_ERROR(CL_MAP_FAILURE)
    TENON_OPENCL_ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    TENON_OPENCL_ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    TENON_OPENCL_ERROR(CL_COMPILE_PROGRAM_FAILURE)
    TENON_OPENCL_ERROR(CL_LINKER_NOT_AVAILABLE)
    TENON_OPENCL_ERROR(CL_LINK_PROGRAM_FAILURE)
    TENON_OPENCL_ERROR(CL_KERNEL_ARG_INFO_NOT_AVAILABLE)
    TENON_OPENCL_ERROR(CL_INVALID_VALUE)
    TENON_OPENCL_ERROR(CL_INVALID_DEVICE_TYPE)
    TENON_OPENCL_ERROR(CL_INVALID_PLATFORM)
    TENON_OPENCL_ERROR(CL_INVALID_DEVICE)
    TENON_OPENCL_ERROR(CL_INVALID_CONTEXT)
    TENON_OPENCL_ERROR(CL_INVALID_QUEUE_PROPERTIES)
    TENON_OPENCL_ERROR(CL_INVALID_COMMAND_QUEUE)
    TENON_OPENCL_ERROR(CL_INVALID_HOST_PTR)
    TENON_OPENCL_ERROR(CL_INVALID_MEM_OBJECT)
    TENON_OPENCL_ERROR(CL_INVALID_BINARY)
    TENON_OPENCL_ERROR(CL_INVALID_BUILD_OPTIONS)
    TENON_OPENCL_ERROR(CL_INVALID_PROGRAM)
    TENON_OPENCL_ERROR(CL_INVALID_PROGRAM_EXECUTABLE)
    TENON_OPENCL_ERROR(CL_INVALID_KERNEL_NAME)
    TENON_OPENCL_ERROR(CL_INVALID_KERNEL_DEFINITION)
    TENON_OPENCL_ERROR(CL_INVALID_KERNEL)
    TENON_OPENCL_ERROR(CL_INVALID_ARG_INDEX)
    TENON_OPENCL_ERROR(CL_INVALID_ARG_VALUE)
    TENON_OPENCL_ERROR(CL_INVALID_ARG_SIZE)
    TENON_OPENCL_ERROR(CL_INVALID_KERNEL_ARGS)
    TENON_OPENCL_ERROR(CL_INVALID_WORK_DIMENSION)
    TENON_OPENCL_ERROR(CL_INVALID_WORK_GROUP_SIZE)
    TENON_OPENCL_ERROR(CL_INVALID_WORK_ITEM_SIZE)
    TENON_OPENCL_ERROR(CL_INVALID_GLOBAL_OFFSET)
    TENON_OPENCL_ERROR(CL_INVALID_EVENT_WAIT_LIST)
    TENON_OPENCL_ERROR(CL_INVALID_EVENT)
    TENON_OPENCL_ERROR(CL_INVALID_OPERATION)
    TENON_OPENCL_ERROR(CL_INVALID_BUFFER_SIZE)
    TENON_OPENCL_ERROR(CL_INVALID_GLOBAL_WORK_SIZE)
    TENON_OPENCL_ERROR(CL_INVALID_PROPERTY)
    TENON_OPENCL_ERROR(CL_INVALID_COMPILER_OPTIONS)
    TENON_OPENCL_ERROR(CL_INVALID_LINKER_OPTIONS)
#undef TENON_OPENCL_ERROR
    case -1001:  // of the loader's extension cl_khr_icd
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return "unknown error";
  }
}

}  // namespace opencl
