// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/piecewise.hpp"

#include <memory>
#include <new>

#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/host_scalar.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/dispatch/registry.hpp"

// What a run needs of a decided call, and no more: a program keeps a call for each of its steps.
struct tenon_piecewise {
  static constexpr uint32_t kMaxArguments = 8;  // few, so that those of a piece are on the stack

  const tenon::core::Operator* op;
  tenon::core::Device* device;
  const tenon::core::Resolution* kernel;  // these are never freed
  uint64_t generation;                    // when it was decided
  // As the kernel gets them: numbers for tensors are host scalars. Bit i of `tensors`: a piece has another one.
  tenon_value values[kMaxArguments];
  uint32_t tensors = 0;
  std::unique_ptr<tenon::core::HostScalar[]> scalars;
};

namespace tenon::core {
namespace {

// Whether the kernel takes any elements, or any rows, of the tensors as they are. One that takes host scalars takes
// tensors that are not counted by the host, and so retains none of its arguments.
bool takes_pieces(const Plan& plan, uint32_t traits) {
  const uint32_t flags = plan.op.def.flags;
  const bool is_elementwise = flags & TENON_OP_ELEMENTWISE && !(flags & TENON_OP_COMPOSITE) &&
                              traits & TENON_KERNEL_BROADCAST;
  const bool takes_elements =
      (flags & TENON_OP_CONVERT || is_elementwise) && traits & TENON_KERNEL_HOST_SCALARS;
  if (!takes_elements && !(traits & TENON_KERNEL_ROWS)) return false;
  if (traits & TENON_KERNEL_MIXED_DTYPES) return true;
  for (uint32_t i = 0; i < plan.op.def.nparams; ++i)
    if (const tenon_tensor* tensor = as_tensor(plan.values[i]);
        tensor && plan.op.def.params[i].flags & TENON_PARAM_FLAG_PROMOTE &&
        tensor->dtype != plan.compute)
      return false;
  return true;
}

// The kernel that takes pieces of the call; nullptr: none does.
const Resolution* decide(Plan& plan) {
  if (plan_call(plan) != TENON_OK || !plan.has_metas) return nullptr;
  const Resolution* kernel = choose_native(plan);
  return kernel && takes_pieces(plan, kernel->traits) ? kernel : nullptr;
}

void keep_arguments(tenon_piecewise& call, const Plan& plan) {
  if (plan.scalar_count > 0) call.scalars = std::make_unique<HostScalar[]>(plan.scalar_count);
  for (uint32_t i = 0; i < plan.op.def.nparams; ++i) {
    call.values[i] = plan.values[i];
    if (as_tensor(plan.args[i])) call.tensors |= 1u << i;
  }
  for (uint32_t k = 0; k < plan.scalar_count; ++k) {
    call.scalars[k] = plan.scalars[k];
    call.scalars[k].view.data = call.scalars[k].bytes;
    for (uint32_t i = 0; i < plan.op.def.nparams; ++i)
      if (as_tensor(call.values[i]) == &plan.scalars[k].view)
        call.values[i] = boxed(&call.scalars[k].view);
  }
}

}  // namespace

tenon_piecewise* prepare_piecewise(const tenon_op* handle, const tenon_value* args) {
  auto& op = *const_cast<Operator*>(handle);
  constexpr uint32_t kWholes =
      TENON_OP_RANDOM | TENON_OP_DATA_DEPENDENT | TENON_OP_VIEW | TENON_OP_LIST_OUTPUT;
  if (op.def.flags & kWholes || op.def.nparams > tenon_piecewise::kMaxArguments ||
      wanted_layers(args, op.def.nparams, nullptr, 0, enabled_layers()))
    return nullptr;
  for (uint32_t i = 0; i < op.def.nparams; ++i)
    if (args[i].tag == TENON_VALUE_TENSORS) return nullptr;
  const uint64_t generation = kernel_generation();  // of before: a later change is then seen
  tenon_value results[kMaxOutputs] = {};            // none are given
  Plan plan(op, args, results, nullptr);
  const Resolution* kernel = decide(plan);
  if (!kernel) return nullptr;
  try {
    auto call = std::make_unique<tenon_piecewise>();
    call->op = &op;
    call->device = plan.device;
    call->kernel = kernel;
    call->generation = generation;
    keep_arguments(*call, plan);
    return call.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int32_t piecewise_holds(const tenon_piecewise* call, tenon_tensor* const* tensors, uint32_t count) {
  if (call->generation != kernel_generation()) return 0;
  LayerSet bits = layer_table.every_call.load(std::memory_order_relaxed);
  uint16_t flags = 0;
  for (uint32_t i = 0; i < count; ++i) bits |= tensors[i]->layers, flags |= tensors[i]->flags;
  if (flags & kOtherLayers) [[unlikely]]
    for (uint32_t i = 0; i < count; ++i) {
      const tenon_value value = boxed(tensors[i]);
      bits |= other_layers(&value, 1);
    }
  return (bits & enabled_layers()) == 0;
}

const tenon_kernel_def* piecewise_kernel(const tenon_piecewise* call, const tenon_value** args) {
  *args = call->values;
  return &call->kernel->kernel->def;
}

tenon_status run_piece(const tenon_piecewise* call, tenon_tensor* const* tensors,
                       tenon_tensor* const* results, tenon_err* err) {
  const Operator& op = *call->op;
  if (!call->device->host_memory)
    return fail(err, TENON_UNSUPPORTED,
                "[%s] pieces run on devices whose memory is the host's, got %s", short_name(op),
                call->device->name);
  tenon_value args[tenon_piecewise::kMaxArguments], outs[kMaxOutputs];
  for (uint32_t i = 0; i < op.def.nparams; ++i)
    args[i] = call->tensors >> i & 1 ? boxed(*tensors++) : call->values[i];
  for (uint32_t i = 0; i < op.def.nouts; ++i) outs[i] = boxed(results[i]);
  tenon_ctx ctx(&op, *call->device, outs, op.def.nouts);
  const tenon_status status =
      invoke(*call->kernel, ctx, args, op.def.nparams, outs, op.def.nouts, err);
  return kernel_result(op, *call->device, status, err);
}

void release_piecewise(tenon_piecewise* call) { delete call; }

}  // namespace tenon::core
