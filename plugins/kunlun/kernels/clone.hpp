// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "library/call.hpp"

namespace kunlun {

// One kernel of clone for each size of an element, with the function that it needs.
struct CloneKernel {
  Function function;
  tenon_kernel_def kernel;
};
std::span<CloneKernel> clone_kernels();

}  // namespace kunlun
