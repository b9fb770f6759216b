// SPDX-License-Identifier: Apache-2.0
// conv2d and its gradients by cuDNN or MIOpen. What it does not compute, and everything where it is
// absent, is left to the decomposition into matrix products.
#include "dnn/convolution.hpp"

#include <tenon/unbox.h>

#include <cstring>
#include <new>

#include "dnn/convolution_plan.hpp"
#include "libraries/algorithm_ranks.hpp"
#include "libraries/library_call.hpp"
#include "runtime/vendor.hpp"

namespace gpu::dnn {
namespace {

constexpr const char* kOperators[] = {"tenon::conv2d", "tenon::conv2d_input_grad",
                                      "tenon::conv2d_weight_grad"};
const char* short_name(ConvolutionKind kind) { return kOperators[kind] + sizeof "tenon::" - 1; }

// Algorithms of a fixed order first: what deterministic programs measure has the same names in others.
constexpr Rank rank_at(size_t place) {
  return place < kMaxAlgorithms ? Rank{kFixedOrder, place}
                                : Rank{kAnyOrder, place - kMaxAlgorithms};
}

ConvolutionPlans* plans_of(tenon_device device) {
  return device->library_state<ConvolutionPlans>(
      kDnnLibrary, [] { return std::make_unique<ConvolutionPlans>(); });
}

ConvolutionPlan find_plan(ConvolutionKind kind, Rank rank, const tenon_value* args) {
  const tenon_tensor* first = tenon_arg_tensor(&args[0]);
  if (!is_available() || !first) return {};
  const tenon_device device = open_device(TENON_DEVICE_INDEX(first->device));
  const std::optional<Convolution> convolution = describe(kind, args);
  if (!device || !convolution) return {};
  Current current(device);
  return plans_of(device)->find(*convolution, rank);
}

int32_t accepts(ConvolutionKind kind, Rank rank, const tenon_value* args) try {
  return find_plan(kind, rank, args) ? 1 : 0;
} catch (const std::bad_alloc&) {
  return 0;
}

tenon_status convolve(ConvolutionKind kind, Rank rank, tenon_ctx* ctx, const tenon_value* args,
                      tenon_value* outs, tenon_err* err) try {
  const char* name = short_name(kind);
  const tenon_device device = host->ctx_device(ctx);
  if (!is_available()) return fail(err, TENON_UNAVAILABLE, "%s: %s", name, library_problem());
  const std::optional<Convolution> convolution = describe(kind, args);
  ConvolutionPlans& plans = *plans_of(device);
  ConvolutionPlan plan;
  {
    Current current(device);
    if (convolution) plan = plans.find(*convolution, rank);
  }
  if (!plan)
    return fail(err, TENON_UNSUPPORTED, "%s: %s has no algorithm for it", name, vendor::kDnn);
  const uint64_t bytes = plan.algorithm.workspace_bytes;
  void* workspace = nullptr;
  if (bytes) GPU_TRY(host->scratch(ctx, bytes, &workspace, err));
  const tenon_tensor* bias = kind == kForward ? tenon_arg_tensor(&args[2]) : nullptr;
  const auto queue = [&](Stream stream) {
    return plans.run(plan, tenon_arg_tensor(&args[0])->data, tenon_arg_tensor(&args[1])->data,
                     bias ? bias->data : nullptr, tenon_out_tensor(&outs[0])->data, workspace,
                     stream);
  };
  const auto failed = [&](Status status) {
    return fail(err, rank.is_first() ? TENON_INTERNAL : TENON_UNSUPPORTED, "%s: %s: %s (%d)", name,
                vendor::kDnn, error_text(status), status);
  };
  GPU_TRY(queue_library_call(ctx, device, name, queue, failed, err));
  if (!bias) return TENON_OK;
  return plan.descriptors->finish(device, host->ctx_stream(ctx), bias->data,
                                  tenon_out_tensor(&outs[0])->data, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

template <ConvolutionKind Kind, size_t Place>
int32_t can_run(const tenon_value* args, uint32_t) {
  return accepts(Kind, rank_at(Place), args);
}

template <ConvolutionKind Kind, size_t Place>
tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) {
  return convolve(Kind, rank_at(Place), ctx, args, outs, err);
}

template <ConvolutionKind Kind>
auto kernels_of() {
  return kernels_of_ranks<kMaxAlgorithms + kMaxUnorderedAlgorithms>([]<size_t Place>() {
    const bool is_ordered = rank_at(Place).order == kFixedOrder;
    return tenon_kernel_def{.struct_size = sizeof(tenon_kernel_def),
                            .traits = is_ordered ? 0u : uint32_t{TENON_KERNEL_NONDETERMINISTIC},
                            .op = kOperators[Kind],
                            .device = nullptr,
                            .schema_hash = 0,
                            .dtype_mask = kConvolutionDtypes,
                            .score = score_of_rank(Place),
                            .reserved = 0,
                            .boxed = run<Kind, Place>,
                            .typed = nullptr,
                            .can_run = can_run<Kind, Place>};
  });
}

}  // namespace

std::vector<tenon_kernel_def> convolution_kernels() {
  std::vector<tenon_kernel_def> kernels;
  for (const auto& list :
       {kernels_of<kForward>(), kernels_of<kInputGrad>(), kernels_of<kWeightGrad>()})
    kernels.insert(kernels.end(), list.begin(), list.end());
  return kernels;
}

int convolution_kind(const char* op) {
  for (int kind = kForward; kind <= kWeightGrad; ++kind)
    if (std::strcmp(op, kOperators[kind]) == 0) return kind;
  return -1;
}

std::string describe_algorithm(int kind, size_t rank, const tenon_value* args) {
  const Rank at = rank_at(rank);
  const ConvolutionPlan plan = find_plan(static_cast<ConvolutionKind>(kind), at, args);
  if (!plan) return {};
  return std::string(vendor::kDnn) + "'s " + name_of(plan.algorithm) +
         (at.order == kAnyOrder ? ", which adds in any order" : "") +
         workspace_text(plan.algorithm.workspace_bytes);
}

}  // namespace gpu::dnn
