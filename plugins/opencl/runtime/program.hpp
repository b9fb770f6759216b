// SPDX-License-Identifier: Apache-2.0
// Compiled source and its kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device.hpp"

struct tenon_kernel_s {
  ~tenon_kernel_s() {
    if (kernel) opencl::cl.ReleaseKernel(kernel);
  }
  cl_kernel kernel = nullptr;
  std::mutex mutex;  // arguments belong to the kernel until the launch is queued
  std::string name;
  cl_uint arguments = 0;      // as OpenCL counts them: two for a buffer
  size_t max_group_size = 0;  // may be less than the device's, if the kernel needs much
};

struct tenon_program_s {
  ~tenon_program_s() {
    kernels.clear();
    if (program) opencl::cl.ReleaseProgram(program);
  }
  cl_program program = nullptr;
  std::string name;
  std::mutex mutex;  // of the kernels
  std::map<std::string, std::unique_ptr<tenon_kernel_s>, std::less<>> kernels;
};

namespace opencl {

tenon_status kernel_launch(tenon_device, const tenon_launch_request*, tenon_err*);

}  // namespace opencl
