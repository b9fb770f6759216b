// SPDX-License-Identifier: Apache-2.0
// One call of an aclnn function by a kernel. The kernels are generated from bindings/*.yaml; each makes
// the parameters and hands them to run(), whose types are those of the function's first phase
// (aclnn<Name>GetWorkspaceSize, which plans and names a workspace; aclnn<Name> then runs).
#pragma once

#include <atomic>
#include <optional>
#include <tuple>

#include "executor.hpp"
#include "parameters.hpp"
#include "runtime/mark.hpp"

namespace ascend {

// One pair of functions of the library; filled when the plugin is loaded.
struct Function {
  const char* name;  // "aclnnAdd"
  void* plan = nullptr;
  void* execute = nullptr;
  std::atomic<bool> is_reusable{
      true};  // its executors may run again; `reusable: false` in bindings
};

// find_function looks both phases up, and returns false if this version of the library lacks one.
bool find_function(Function& function);

class Call : public Parameters {
 public:
  Call(tenon_ctx* ctx, const char* op, Function& function, tenon_err* err)
      : Parameters(ctx, op, err),
        function_(function),
        device_(host->ctx_device(ctx)),
        stream_(host->ctx_stream(ctx)) {
    set_status(make_current(device_, err));
    mark_.begin(op, function.name, is_captured() ? nullptr : stream_of(device_, stream_));
  }

  template <class... Types>
  tenon_status run(const Types&... parameters) {
    if (status() || has_empty()) return status();  // nothing is to be computed
    std::optional<ExecutorKey> key;
    if (reuses_executors()) {
      key.emplace(&function_);
      (key->add(parameters), ...);
      if (!key->has_fitting_addresses()) key.reset();
    }
    if (key)
      if (Executors::Entry* const entry = executors().take(key->bytes()))
        return run_again(entry, *key);
    Executor executor;
    // Braces, so that the objects are made in the order of the parameters.
    const auto objects = std::tuple<decltype(executor.objects.make(parameters))...>{
        executor.objects.make(parameters)...};
    if (const char* const maker = executor.objects.problem()) return fail_to_make(maker);
    const bool is_kept = key && executors().has_room(stream_of(device_, stream_));
    using Plan =
        int (*)(decltype(executor.objects.make(parameters))..., uint64_t*, aclOpExecutor**);
    const int error = std::apply(
        [&](auto... object) {
          return reinterpret_cast<Plan>(function_.plan)(object..., &executor.workspace_bytes,
                                                        &executor.handle);
        },
        objects);
    if (error) return fail("GetWorkspaceSize", error);
    if (is_kept && make_repeatable(executor))
      return run_kept(executors().keep(key->bytes(), std::move(executor)));
    return execute(executor);
  }

 private:
  bool is_captured() const { return stream_ && stream_->capturing; }
  tenon_status fail(const char* phase, int error);
  tenon_status fail_to_make(const char* maker);
  tenon_status execute(const Executor& executor);

  // Note [Executors that run again]
  Executors& executors() { return stream_ ? stream_->executors : device_->executors; }
  bool reuses_executors() const {
    return executor_capacity() && function_.is_reusable && !is_captured();
  }
  bool make_repeatable(Executor& executor);
  tenon_status run_kept(Executors::Entry* entry);
  tenon_status run_again(Executors::Entry* entry, const ExecutorKey& key);

  Function& function_;
  tenon_device device_;
  tenon_stream stream_;
  Mark mark_;
};

// aclnn takes tensors of up to eight axes. What its functions make of an empty tensor differs from page to page,
// so that those calls are lowered or run on the host.
bool takes_shapes(const tenon_value* args, uint32_t nargs);

}  // namespace ascend
