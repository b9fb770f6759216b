// SPDX-License-Identifier: Apache-2.0
#include "library_kernels.hpp"

#include <cstdio>
#include <cstring>
#include <new>

#include "algorithm_ranks.hpp"
#include "blas.hpp"
#include "convolution.hpp"
#include "dnn.hpp"
#include "factorizations.hpp"
#include "matmul.hpp"
#include "transforms.hpp"

namespace gpu {
namespace {

bool is_convolution(const char* op) { return dnn::convolution_kind(op) >= 0; }

const char* name_for(const char* op) {
  return is_convolution(op) ? dnn::library_name() : blas::library_name();
}

const char* problem_for(const char* op) {
  return is_convolution(op) ? dnn::library_problem() : blas::library_problem();
}

std::string text_of(const tenon_kernel_def& kernel, const tenon_value* args) {
  const size_t rank = rank_of_score(kernel.score);
  const bool is_linear = std::strcmp(kernel.op, "tenon::linear") == 0;
  if (is_convolution(kernel.op))
    return dnn::describe_algorithm(dnn::convolution_kind(kernel.op), rank, args);
  if (is_linear || std::strcmp(kernel.op, "tenon::matmul") == 0)
    return blas::describe_algorithm(is_linear, rank, args);
  return {};
}

void describe(const tenon_kernel_def* kernel, const tenon_value* args, uint32_t, char* out,
              uint32_t room) try {
  std::snprintf(out, room, "%s", text_of(*kernel, args).c_str());
} catch (const std::bad_alloc&) {
  if (room) *out = '\0';
}

}  // namespace

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

const tenon_kernel_library_api kKernelLibrary = {.struct_size = sizeof(tenon_kernel_library_api),
                                                 .version = TENON_KERNEL_LIBRARY_VERSION,
                                                 .name = blas::library_name,
                                                 .problem = blas::library_problem,
                                                 .name_for = name_for,
                                                 .problem_for = problem_for,
                                                 .describe = describe};

}  // namespace gpu
