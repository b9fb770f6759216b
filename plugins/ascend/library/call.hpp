// SPDX-License-Identifier: Apache-2.0
// One call of an aclnn function by a kernel. The kernels are generated from bindings/*.yaml; each makes
// the parameters with the methods below and hands them to run(), whose types are those of the function's
// first phase (aclnn<Name>GetWorkspaceSize, which plans and names a workspace; aclnn<Name> then runs).
#pragma once

#include <tenon/unbox.h>

#include <vector>

#include "runtime/device.hpp"

namespace ascend {

// One pair of functions of the library; filled when the plugin is loaded.
struct Function {
  const char* name;  // "aclnnAdd"
  void* plan = nullptr;
  void* execute = nullptr;
};

// find_function looks both phases up, and returns false if this version of the library lacks one.
bool find_function(Function& function);

class Call {
 public:
  Call(tenon_ctx* ctx, const char* op, const Function& function, tenon_err* err)
      : ctx_(ctx), op_(op), function_(function), err_(err), device_(host->ctx_device(ctx)) {
    status_ = make_current(device_, err);
  }
  ~Call();
  Call(const Call&) = delete;

  // The parameters of aclnn functions, owned by this object. After a failure they are nullptr, and run()
  // returns the failure.
  aclTensor* tensor(const tenon_value& value);  // NONE: nullptr
  aclScalar* scalar(int64_t value) { return scalar_of(&value, TENON_DTYPE_I64); }
  aclScalar* scalar(double value) { return scalar_of(&value, TENON_DTYPE_F64); }
  aclScalar* scalar(const tenon_value& value);
  aclIntArray* ints(const tenon_value& value);
  aclIntArray* axes(const tenon_value& value, const tenon_value& tensor);  // NONE: all axes
  int dtype(const tenon_value& value) {  // a dtype, or that of a tensor
    return acl_dtype(value.tag == TENON_VALUE_DTYPE ? static_cast<int>(value.v.i)
                                                    : tenon_arg_tensor(&value)->dtype);
  }

  template <class... Parameters>
  tenon_status run(Parameters... parameters) {
    if (status_) return status_;
    using Plan = int (*)(Parameters..., uint64_t*, aclOpExecutor**);
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    const int error = reinterpret_cast<Plan>(function_.plan)(parameters..., &bytes, &executor);
    return error ? fail("GetWorkspaceSize", error) : execute(bytes, executor);
  }

 private:
  aclScalar* scalar_of(const void* value, int dtype);
  aclIntArray* int_array(const int64_t* values, uint64_t count);
  template <class T>
  T* made(T* parameter, std::vector<T*>& owner, const char* function);
  tenon_status fail(const char* phase, int error);
  tenon_status execute(uint64_t workspace_bytes, aclOpExecutor* executor);

  tenon_ctx* ctx_;
  const char* op_;
  const Function& function_;
  tenon_err* err_;
  tenon_device device_;
  tenon_status status_ = TENON_OK;
  std::vector<aclTensor*> tensors_;
  std::vector<aclScalar*> scalars_;
  std::vector<aclIntArray*> arrays_;
};

// aclnn takes tensors of up to eight axes. What its functions make of an empty tensor differs from page to page,
// so that those calls are lowered or run on the host.
bool takes_shapes(const tenon_value* args, uint32_t nargs);

}  // namespace ascend
