// SPDX-License-Identifier: Apache-2.0
// Kernels of the vendor's BLAS library for the plugin's own device.
#pragma once

#include <vector>

#include <tenon/abi.h>
#include <tenon/services/autotune.h>

namespace gpu::blas {

std::vector<tenon_kernel_def> matmul_kernels();

// For the service "<plugin>.library".
extern const tenon_kernel_library_api kKernelLibrary;

}  // namespace gpu::blas
