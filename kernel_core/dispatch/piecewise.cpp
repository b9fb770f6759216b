// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/piecewise.hpp"

#include <memory>
#include <new>

#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/layers.hpp"

// Arguments and results on the stack of a piece are few.
struct tenon_piecewise {
  static constexpr uint32_t kMaxArguments = 8;

  tenon_piecewise(tenon::core::Operator& op, const tenon_value* args)
      : plan(op, args, results, nullptr) {}

  tenon_value results[tenon::core::kMaxOutputs] = {};  // none are given
  tenon::core::Plan plan;
  const tenon::core::Resolution* kernel = nullptr;
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

bool prepare(tenon_piecewise& call) {
  Plan& plan = call.plan;
  if (find_call_device(plan) != TENON_OK || find_compute_dtype(plan) != TENON_OK ||
      find_output_shapes(plan) != TENON_OK || !plan.has_metas)
    return false;
  call.kernel = choose_native(plan);
  return call.kernel && takes_pieces(plan, call.kernel->traits);
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
  std::unique_ptr<tenon_piecewise> call(new (std::nothrow) tenon_piecewise(op, args));
  return call && prepare(*call) ? call.release() : nullptr;
}

const tenon_kernel_def* piecewise_kernel(const tenon_piecewise* call, const tenon_value** args) {
  *args = call->plan.values;
  return &call->kernel->kernel->def;
}

tenon_status run_piece(const tenon_piecewise* call, tenon_tensor* const* tensors,
                       tenon_tensor* const* results, tenon_err* err) {
  const Plan& plan = call->plan;
  if (!plan.device->host_memory)
    return fail(err, TENON_UNSUPPORTED,
                "[%s] pieces run on devices whose memory is the host's, got %s",
                short_name(plan.op), plan.device->name);
  tenon_value args[tenon_piecewise::kMaxArguments], outs[kMaxOutputs];
  for (uint32_t i = 0; i < plan.op.def.nparams; ++i)
    // A number is a tensor of the plan by now, and stays.
    args[i] = as_tensor(plan.args[i]) ? boxed(*tensors++) : plan.values[i];
  for (uint32_t i = 0; i < plan.op.def.nouts; ++i) outs[i] = boxed(results[i]);
  tenon_ctx ctx(&plan.op, *plan.device, outs, plan.op.def.nouts);
  const tenon_status status =
      invoke(*call->kernel, ctx, args, plan.op.def.nparams, outs, plan.op.def.nouts, err);
  return kernel_result(plan.op, *plan.device, status, err);
}

void release_piecewise(tenon_piecewise* call) { delete call; }

}  // namespace tenon::core
