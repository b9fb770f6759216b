// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/dispatch/candidates.hpp"

#include <tenon/services/candidates.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/dispatch/call.hpp"
#include "kernel_core/dispatch/layers.hpp"
#include "kernel_core/dispatch/registry.hpp"

namespace tenon::core {
namespace {

bool needs_no_kernel(const Plan& plan) {
  return plan.device->id == TENON_DEVICE_META || plan.op.def.flags & TENON_OP_VIEW;
}

tenon_status accepts(const Plan& plan, const Kernel& kernel, bool* accepted) try {
  *accepted = !kernel.def.can_run || kernel.def.can_run(plan.values, plan.op.def.nparams);
  return TENON_OK;
} catch (...) {
  return fail_escaped(plan.err, describe(kernel) + ", its can_run");
}

// A handle that was found for another call must do no harm.
bool serves(const Plan& plan, const Kernel& kernel) {
  const char* kind = slots::device_kind_name(TENON_DEVICE_KIND(plan.device->id));
  return kernel.target == &plan.op && kernel.def.dtype_mask >> plan.compute & 1 &&
         (kernel.device_kind == kind || kernel.device_kind == TENON_DEVICE_COMPILED);
}

tenon_status check_count(const Operator& op, uint32_t nargs, tenon_err* err) {
  if (nargs == op.def.nparams) return TENON_OK;
  return fail(err, TENON_INVALID_ARGUMENT, "[%s] a layer must pass on all %u arguments, got %u",
              short_name(op), op.def.nparams, nargs);
}

uint64_t generation() { return kernel_generation(); }

tenon_status list(const tenon_op* handle, const tenon_value* args, uint32_t nargs,
                  tenon_value* outs, uint32_t, tenon_candidate* out, uint32_t capacity,
                  uint32_t* count, tenon_err* err) {
  auto& op = *const_cast<Operator*>(handle);
  TENON_TRY(check_count(op, nargs, err));
  Plan plan(op, args, outs, err);
  TENON_TRY(plan_call(plan));
  uint32_t found = 0;
  bool has_chosen = false;
  std::map<std::string_view, uint32_t> indices;
  for (KernelState state : {KernelState::kUsed, KernelState::kOptional}) {
    if (needs_no_kernel(plan)) break;
    const bool is_optional = state == KernelState::kOptional;
    uint32_t kind = TENON_DEVICE_KIND(plan.device->id);
    for (const Resolution* each : resolutions_for(op, kind, plan.compute, state)) {
      const Kernel& kernel = *each->kernel;
      bool accepted = false;
      TENON_TRY(accepts(plan, kernel, &accepted));
      uint32_t flags = is_optional ? TENON_CANDIDATE_OPTIONAL : 0;
      if (!accepted) flags |= TENON_CANDIDATE_DECLINES;
      if (accepted && !is_optional && !has_chosen) {
        flags |= TENON_CANDIDATE_CHOSEN;
        has_chosen = true;
      }
      uint32_t index = indices[kernel.plugin]++;
      if (found < capacity)
        out[found] = {.handle = each,
                      .kernel = &kernel.def,
                      .plugin = kernel.plugin.c_str(),
                      .origin = kernel.origin.c_str(),
                      .flags = flags,
                      .index = index,
                      .reserved = {}};
      ++found;
    }
  }
  *count = found;
  return TENON_OK;
}

tenon_status call(int32_t layer, const tenon_op* handle, tenon_value* args, uint32_t nargs,
                  tenon_value* outs, uint32_t nouts, const void* candidate, tenon_err* err) {
  auto& op = *const_cast<Operator*>(handle);
  TENON_TRY(check_count(op, nargs, err));
  const LayerSet allowed = enabled_layers() & layer_table.after[layer];
  const bool is_watched = allowed && wanted_layers(args, nargs, outs, nouts, allowed);
  if (candidate && !is_watched) {
    const auto& chosen = *static_cast<const Resolution*>(candidate);
    Plan plan(op, args, outs, err);
    TENON_TRY(plan_call(plan));
    bool accepted = false;
    if (!needs_no_kernel(plan) && serves(plan, *chosen.kernel))
      TENON_TRY(accepts(plan, *chosen.kernel, &accepted));
    if (accepted) return run_native(plan, chosen);
  }
  return slots::op_call_below(layer, handle, args, nargs, outs, nouts, err);
}

void hold_back_nondeterministic(int32_t on) { set_deterministic(on != 0); }
int32_t holds_back_nondeterministic() { return is_deterministic(); }

constexpr tenon_candidates_api kService = {.struct_size = sizeof(tenon_candidates_api),
                                           .version = TENON_CANDIDATES_VERSION,
                                           .generation = generation,
                                           .list = list,
                                           .call = call,
                                           .set_deterministic = hold_back_nondeterministic,
                                           .deterministic = holds_back_nondeterministic};

}  // namespace

void register_candidates_service() {
  slots::service_register(TENON_CANDIDATES_SERVICE, TENON_CANDIDATES_VERSION, &kService, nullptr);
}

}  // namespace tenon::core
