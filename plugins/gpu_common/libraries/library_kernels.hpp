// SPDX-License-Identifier: Apache-2.0
// The kernels that stand on libraries which both vendors have.
#pragma once

#include <vector>

#include <tenon/abi.h>

namespace gpu {

std::vector<tenon_kernel_def> common_library_kernels();

}  // namespace gpu
