// SPDX-License-Identifier: Apache-2.0
// Kernels of linear algebra by the vendor's libraries, those of each file.
#pragma once

#include <span>

#include <tenon/abi.h>

namespace gpu::solver {

std::span<const tenon_kernel_def> cholesky_kernels();
std::span<const tenon_kernel_def> eig_kernels();
std::span<const tenon_kernel_def> eigh_kernels();
std::span<const tenon_kernel_def> exponential_kernels();
std::span<const tenon_kernel_def> ldl_kernels();
std::span<const tenon_kernel_def> lu_kernels();
std::span<const tenon_kernel_def> qr_kernels();
std::span<const tenon_kernel_def> svd_kernels();
std::span<const tenon_kernel_def> triangular_kernels();

}  // namespace gpu::solver
