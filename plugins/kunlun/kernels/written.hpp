// SPDX-License-Identifier: Apache-2.0
// primitive_copy, which one function of XDNN does not compute, primitive_iota and primitive_random. The other primitives are entries of
// bindings/primitive.yaml.
#pragma once

#include "library/call.hpp"

namespace kunlun {

struct WrittenKernel {
  bool is_found = false;  // this version of XDNN has what the kernel needs
  const char* needs;      // said where it has not
  tenon_kernel_def kernel;
};

WrittenKernel copy_kernel();
WrittenKernel iota_kernel();
WrittenKernel random_kernel();

}  // namespace kunlun
