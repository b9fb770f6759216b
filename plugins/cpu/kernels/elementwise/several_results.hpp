// SPDX-License-Identifier: Apache-2.0
// The driver of generated elementwise kernels of several results. tenon-codegen writes one loop per
// operator and element type. All tensors have one dtype and one shape, and are dense; a result may be
// written over an argument.
#pragma once

#include "elementwise/elementwise.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// `data` lists the inputs, then the results.
using SeveralResultsLoop = void (*)(char* const* data, int64_t n, const tenon_value* attributes);

struct SeveralResultsKernel {
  const char* op;
  uint32_t inputs;  // Tensor parameters, which come first
  uint32_t results;
  uint32_t cost;  // work for one element, in additions
  uint64_t dtype_mask;
  SeveralResultsLoop float32, float64;
};

// Low precision dtypes are computed in float32.
tenon_status run_elementwise(const SeveralResultsKernel& kernel, tenon_ctx* ctx,
                             const tenon_value* args, uint32_t nargs, tenon_value* outs,
                             tenon_err* err);

constexpr tenon_kernel_def elementwise_kernel(const SeveralResultsKernel& kernel,
                                              tenon_boxed_fn run) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .op = kernel.op,
          .dtype_mask = kernel.dtype_mask,
          .boxed = run};
}

}  // namespace tenon::cpu::TENON_CPU_ISA
