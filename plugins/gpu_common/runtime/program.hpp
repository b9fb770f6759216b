// SPDX-License-Identifier: Apache-2.0
// Compiled source and its kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel_source.hpp"
#include "runtime/device.hpp"

struct tenon_kernel_s {
  gpu::Function function = nullptr;
  const char* name = nullptr;  // lives as long as the device
  int max_group_size = 0;      // may be less than the device's, if the kernel needs much
  // The size of each parameter, where the driver tells it; 0 where only their number is known.
  std::vector<size_t> parameters;
  bool parameters_known = false;
};

struct tenon_program_s {
  gpu::Module module = nullptr;
  std::string name;
  std::vector<gpu_common::KernelSignature> signatures;  // as the source declares them
  std::mutex mutex;                                     // of the kernels
  std::map<std::string, std::unique_ptr<tenon_kernel_s>, std::less<>> kernels;
};

namespace gpu {

tenon_status kernel_launch(tenon_device, const tenon_launch_request*, tenon_err*);

}  // namespace gpu
