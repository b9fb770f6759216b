// SPDX-License-Identifier: Apache-2.0
// One call of an aclnn function by a kernel. The kernels are generated from bindings/*.yaml; each makes
// the parameters and hands them to run(), whose types are those of the function's first phase
// (aclnn<Name>GetWorkspaceSize, which plans and names a workspace; aclnn<Name> then runs).
#pragma once

#include "parameters.hpp"

namespace ascend {

// One pair of functions of the library; filled when the plugin is loaded.
struct Function {
  const char* name;  // "aclnnAdd"
  void* plan = nullptr;
  void* execute = nullptr;
};

// find_function looks both phases up, and returns false if this version of the library lacks one.
bool find_function(Function& function);

class Call : public Parameters {
 public:
  Call(tenon_ctx* ctx, const char* op, const Function& function, tenon_err* err)
      : Parameters(ctx, op, err), function_(function), device_(host->ctx_device(ctx)) {
    set_status(make_current(device_, err));
  }

  template <class... Types>
  tenon_status run(Types... parameters) {
    if (status() || has_empty()) return status();  // nothing is to be computed
    using Plan = int (*)(Types..., uint64_t*, aclOpExecutor**);
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    const int error = reinterpret_cast<Plan>(function_.plan)(parameters..., &bytes, &executor);
    return error ? fail("GetWorkspaceSize", error) : execute(bytes, executor);
  }

 private:
  tenon_status fail(const char* phase, int error);
  tenon_status execute(uint64_t workspace_bytes, aclOpExecutor* executor);

  const Function& function_;
  tenon_device device_;
};

// aclnn takes tensors of up to eight axes. What its functions make of an empty tensor differs from page to page,
// so that those calls are lowered or run on the host.
bool takes_shapes(const tenon_value* args, uint32_t nargs);

}  // namespace ascend
