// SPDX-License-Identifier: Apache-2.0
#include "library_kernels.hpp"

#include "convolution.hpp"
#include "factorizations.hpp"
#include "matmul.hpp"
#include "transforms.hpp"

namespace gpu {

std::vector<tenon_kernel_def> common_library_kernels() {
  std::vector<tenon_kernel_def> kernels = blas::matmul_kernels();
  const auto add = [&](const auto& list) {
    kernels.insert(kernels.end(), list.begin(), list.end());
  };
  add(dnn::convolution_kernels());
  for (const auto& list :
       {fft::transform_kernels(), solver::cholesky_kernels(), solver::eig_kernels(),
        solver::eigh_kernels(), solver::exponential_kernels(), solver::ldl_kernels(),
        solver::lu_kernels(), solver::qr_kernels(), solver::svd_kernels(),
        solver::triangular_kernels()})
    add(list);
  return kernels;
}

}  // namespace gpu
