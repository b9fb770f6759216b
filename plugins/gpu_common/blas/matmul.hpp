// SPDX-License-Identifier: Apache-2.0
// Kernels of the vendor's BLAS library for the plugin's own device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tenon/abi.h>

namespace gpu::blas {

std::vector<tenon_kernel_def> matmul_kernels();

// The algorithm that the kernel of this rank runs for arguments of linear or matmul; empty: it declines them.
std::string describe_algorithm(bool is_linear, size_t rank, const tenon_value* args);

}  // namespace gpu::blas
