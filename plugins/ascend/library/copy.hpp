// SPDX-License-Identifier: Apache-2.0
// The kernels of clone and of primitive_copy.
#pragma once

#include <tenon/abi.h>

#include <vector>

namespace ascend {

// Empty: this version of CANN lacks what they need.
std::vector<tenon_kernel_def> copy_kernels();

}  // namespace ascend
