// SPDX-License-Identifier: Apache-2.0
// Operators with `expr`, run as operator calls: on whole tensors as their decomposition, and on the
// host as a kernel that goes through memory block by block, so that what is in between stays in the
// processor's cache.
#pragma once

#include <model/operator.hpp>

#include "scalar_run.hpp"

namespace tenon::interpreter {

struct Elementwise {
  std::string name;
  uint32_t nparams = 0;
  uint64_t tensors = 0;   // bit of every tensor parameter
  uint64_t promoted = 0;  // of those converted to the compute dtype
  int32_t compute = 0;    // TENON_COMPUTE_
  lowering::Out out = lowering::Out::Same;
  struct Case {
    uint64_t dtypes;
    ScalarCodes codes;
  };
  std::vector<Case> cases;

  const Case* case_of(int32_t dtype) const;
};
// Throws codegen::Error where an expression cannot be interpreted.
Elementwise elementwise_of(const codegen::Operator& op);
lowering::Out out_of(const codegen::OutDtype& rule);

tenon_status run(const Elementwise& op, const tenon_value* args, tenon_value* outs, tenon_err* err);
// As a kernel; traits below.
tenon_status run_in_blocks(const Elementwise& op, const tenon_value* args, tenon_tensor* out,
                           tenon_err* err);
constexpr uint32_t kBlockTraits =
    TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT | TENON_KERNEL_BROADCAST;

}  // namespace tenon::interpreter
