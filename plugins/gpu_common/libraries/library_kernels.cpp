// SPDX-License-Identifier: Apache-2.0
#include "libraries/library_kernels.hpp"

#include <cstdio>
#include <cstring>
#include <new>

#include "blas/blas.hpp"
#include "blas/matmul.hpp"
#include "dnn/convolution.hpp"
#include "dnn/dnn.hpp"
#include "fft/fft.hpp"
#include "fft/transforms.hpp"
#include "libraries/algorithm_ranks.hpp"
#include "solver/factorizations.hpp"
#include "solver/solver.hpp"

namespace gpu {
namespace {

// The kernels that stand on one library.
struct Family {
  std::vector<tenon_kernel_def> kernels;
  const char* (*name)();
  const char* (*problem)();
};

std::vector<tenon_kernel_def> solver_kernels() {
  std::vector<tenon_kernel_def> kernels;
  for (const auto& list :
       {solver::cholesky_kernels(), solver::eig_kernels(), solver::eigh_kernels(),
        solver::exponential_kernels(), solver::ldl_kernels(), solver::lu_kernels(),
        solver::qr_kernels(), solver::svd_kernels(), solver::triangular_kernels()})
    kernels.insert(kernels.end(), list.begin(), list.end());
  return kernels;
}

const std::vector<Family>& families() {
  const auto transforms = fft::transform_kernels();
  static const std::vector<Family> all = {
      {blas::matmul_kernels(), blas::library_name, blas::library_problem},
      {dnn::convolution_kernels(), dnn::library_name, dnn::library_problem},
      {{transforms.begin(), transforms.end()}, fft::library_name, fft::library_problem},
      {solver_kernels(), solver::library_name, solver::library_problem}};
  return all;
}

// NULL: the operator's kernels stand on none.
const Family* family_of(const char* op) {
  for (const Family& family : families())
    for (const tenon_kernel_def& kernel : family.kernels)
      if (std::strcmp(kernel.op, op) == 0) return &family;
  return nullptr;
}

const char* name_for(const char* op) {
  const Family* family = family_of(op);
  return family ? family->name() : "";
}

const char* problem_for(const char* op) {
  const Family* family = family_of(op);
  return family ? family->problem() : nullptr;
}

std::string text_of(const tenon_kernel_def& kernel, const tenon_value* args) {
  const size_t rank = rank_of_score(kernel.score);
  const bool is_linear = std::strcmp(kernel.op, "tenon::linear") == 0;
  if (const int kind = dnn::convolution_kind(kernel.op); kind >= 0)
    return dnn::describe_algorithm(kind, rank, args);
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
  std::vector<tenon_kernel_def> kernels;
  for (const Family& family : families())
    kernels.insert(kernels.end(), family.kernels.begin(), family.kernels.end());
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
