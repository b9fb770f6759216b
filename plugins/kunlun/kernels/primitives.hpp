// SPDX-License-Identifier: Apache-2.0
// The primitives that one function of XDNN does not compute. The others are entries of bindings/primitive.yaml.
#pragma once

#include <vector>

#include "library/call.hpp"

namespace kunlun {

struct WrittenKernel {
  bool is_found = false;     // this version of XDNN has what the kernel needs
  const char* needs;         // said where it has not
  tenon_kernel_def kernel;
};

// Conversions and copies of any strides: primitive_copy.
std::vector<WrittenKernel> copy_kernels();
// Numbers that are drawn on the host: primitive_random.
std::vector<WrittenKernel> random_kernels();

}  // namespace kunlun
