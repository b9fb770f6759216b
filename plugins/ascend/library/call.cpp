// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <algorithm>
#include <string>

namespace ascend {
namespace {

constexpr int kMaxNdim = 8;

}  // namespace

bool find_function(Function& function) {
  const std::string name = function.name;
  function.plan = find_operator_function(name + "GetWorkspaceSize");
  function.execute = find_operator_function(name);
  return function.plan && function.execute;
}

bool takes_shapes(const tenon_value* args, uint32_t nargs) {
  const auto is_taken = [](const tenon_tensor* tensor) {
    return tensor->ndim <= kMaxNdim && tensor->numel != 0;
  };
  for (uint32_t i = 0; i < nargs; ++i) {
    if (args[i].tag == TENON_VALUE_TENSOR && !is_taken(tenon_arg_tensor(&args[i]))) return false;
    if (args[i].tag != TENON_VALUE_TENSORS) continue;
    const tenon_tensor* const* first = tenon_arg_tensors(&args[i]);
    if (!std::all_of(first, first + tenon_arg_count(&args[i]), is_taken)) return false;
  }
  return true;
}

tenon_status Call::fail(const char* phase, int error) {
  const std::string function = std::string(function_.name) + phase;
  const tenon_status status = fail_acl(err_, function.c_str(), error);
  tenon::add_context(err_, "[%s]", op_);
  return status;
}

tenon_status Call::fail_to_make(const char* maker) {
  return tenon::fail_format(err_, TENON_INTERNAL, "[%s] ascend: %s returned no object", op_, maker);
}

bool Call::make_repeatable(Executor& executor) {
  if (acl.aclSetAclOpExecutorRepeatable(executor.handle)) {
    function_.is_reusable = false;  // CANN says that its executors are not; this one runs once
    return false;
  }
  executor.owner.reset(executor.handle);
  return true;
}

tenon_status Call::run_kept(Executors::Entry* entry) {
  const tenon_status status = execute(entry->executor);
  status ? executors().discard(entry) : executors().give_back(entry);
  return status;
}

tenon_status Call::run_again(Executors::Entry* entry, const ExecutorKey& key) {
  const std::span<aclTensor* const> tensors = entry->executor.objects.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]) continue;
    const int error =
        acl.aclSetTensorAddr(entry->executor.handle, i, tensors[i], key.addresses()[i]);
    if (!error) continue;
    executors().discard(entry);
    return fail(": aclSetTensorAddr", error);
  }
  return run_kept(entry);
}

tenon_status Call::execute(const Executor& executor) {
  void* workspace = nullptr;
  if (executor.workspace_bytes)
    if (const tenon_status status = host->scratch(ctx_, executor.workspace_bytes, &workspace, err_))
      return status;
  using Execute = int (*)(void*, uint64_t, aclOpExecutor*, Stream);
  const auto queue = [&](Stream stream) {
    return reinterpret_cast<Execute>(function_.execute)(workspace, executor.workspace_bytes,
                                                        executor.handle, stream);
  };
  Profile::Scope profile(device_, stream_, TENON_PROFILE_KERNEL);
  if (stream_) {
    const int error = queue(stream_->stream);
    if (error) return fail("", error);
    profile.finish(function_.name);
    return TENON_OK;
  }
  // Several threads may be on the synchronous stream; each waits for its own work.
  const std::lock_guard lock(device_->mutex);
  int error = queue(device_->stream);
  if (error) return fail("", error);
  profile.finish(function_.name);
  error = acl.aclrtSynchronizeStream(device_->stream);
  return error ? fail(": aclrtSynchronizeStream", error) : TENON_OK;
}

}  // namespace ascend
