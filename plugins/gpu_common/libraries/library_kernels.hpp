// SPDX-License-Identifier: Apache-2.0
// The kernels that stand on libraries which both vendors have.
#pragma once

#include <vector>

#include <tenon/abi.h>
#include <tenon/services/autotune.h>

namespace gpu {

std::vector<tenon_kernel_def> common_library_kernels();

// For the service "<plugin>.library".
extern const tenon_kernel_library_api kKernelLibrary;

}  // namespace gpu
