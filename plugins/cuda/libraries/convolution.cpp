// SPDX-License-Identifier: Apache-2.0
// conv2d and its gradients by cuDNN. What it does not compute, and everything where it is absent, is
// left to the decomposition into matrix products.
#include "convolution.hpp"

#include <tenon/unbox.h>

#include <new>

#include "convolution_plan.hpp"
#include "libraries/library_call.hpp"

namespace gpu::dnn {
namespace {

// Above the kernels for every device that compiles source.
constexpr int32_t kScore = 50;
constexpr const char* kNames[] = {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"};

ConvolutionPlans* plans_of(tenon_device device) {
  return device->library_state<ConvolutionPlans>(
      kDnnLibrary, [] { return std::make_unique<ConvolutionPlans>(*library()); });
}

template <ConvolutionKind Kind>
int32_t can_run(const tenon_value* args, uint32_t) try {
  const tenon_tensor* first = tenon_arg_tensor(&args[0]);
  if (!library() || !first) return 0;
  const tenon_device device = open_device(TENON_DEVICE_INDEX(first->device));
  const std::optional<Convolution> convolution = describe(Kind, args);
  if (!device || !convolution) return 0;
  Current current(device);
  return plans_of(device)->find(*convolution) != nullptr;
} catch (const std::bad_alloc&) {
  return 0;
}

template <ConvolutionKind Kind>
tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) try {
  constexpr const char* kName = kNames[Kind];
  const tenon_device device = host->ctx_device(ctx);
  if (!library()) return fail(err, TENON_UNAVAILABLE, "%s: %s", kName, library_problem());
  const std::optional<Convolution> convolution = describe(Kind, args);
  ConvolutionPlans& plans = *plans_of(device);
  std::shared_ptr<const ConvolutionPlan> plan;
  {
    Current current(device);
    if (convolution) plan = plans.find(*convolution);
  }
  if (!plan) return fail(err, TENON_UNSUPPORTED, "%s: cuDNN has no algorithm for it", kName);
  void* workspace = nullptr;
  if (plan->workspace_bytes())
    GPU_TRY(host->scratch(ctx, plan->workspace_bytes(), &workspace, err));
  const tenon_tensor* bias = Kind == kForward ? tenon_arg_tensor(&args[2]) : nullptr;
  const auto queue = [&](Stream stream) {
    return plans.run(*plan, tenon_arg_tensor(&args[0])->data, tenon_arg_tensor(&args[1])->data,
                     bias ? bias->data : nullptr, tenon_out_tensor(&outs[0])->data, workspace,
                     stream);
  };
  const auto failed = [&](Status status) {
    return fail(err, TENON_INTERNAL, "%s: cuDNN: %s (%d)", kName, library()->error_text(status),
                status);
  };
  return queue_library_call(ctx, device, kName, queue, failed, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

template <ConvolutionKind Kind>
constexpr tenon_kernel_def definition(const char* op) {
  constexpr uint64_t kFloats = uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1} << TENON_DTYPE_F64 |
                               uint64_t{1} << TENON_DTYPE_F16 | uint64_t{1} << TENON_DTYPE_BF16;
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = 0,
          .op = op,
          .device = nullptr,
          .schema_hash = 0,
          .dtype_mask = kFloats,
          .score = kScore,
          .reserved = 0,
          .boxed = run<Kind>,
          .typed = nullptr,
          .can_run = can_run<Kind>};
}

constexpr tenon_kernel_def kKernels[] = {definition<kForward>("tenon::conv2d"),
                                         definition<kInputGrad>("tenon::conv2d_input_grad"),
                                         definition<kWeightGrad>("tenon::conv2d_weight_grad")};

}  // namespace

std::span<const tenon_kernel_def> convolution_kernels() { return kKernels; }

}  // namespace gpu::dnn
