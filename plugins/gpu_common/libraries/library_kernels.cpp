// SPDX-License-Identifier: Apache-2.0
#include "library_kernels.hpp"

#include "factorizations.hpp"
#include "matmul.hpp"
#include "transforms.hpp"

namespace gpu {

std::vector<tenon_kernel_def> common_library_kernels() {
  std::vector<tenon_kernel_def> kernels;
  for (const auto& list :
       {blas::matmul_kernels(), fft::transform_kernels(), solver::cholesky_kernels(),
        solver::eig_kernels(), solver::eigh_kernels(), solver::exponential_kernels(),
        solver::ldl_kernels(), solver::lu_kernels(), solver::qr_kernels(), solver::svd_kernels(),
        solver::triangular_kernels()})
    kernels.insert(kernels.end(), list.begin(), list.end());
  return kernels;
}

}  // namespace gpu
