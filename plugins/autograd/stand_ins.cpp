// SPDX-License-Identifier: Apache-2.0
#include "stand_ins.hpp"

#include <atomic>
#include <bit>

#include "operator_node.hpp"
#include "rules.hpp"
#include "saved_hooks.hpp"

namespace tenon::autograd {
namespace {

struct SharedSlot {
  int32_t slot;
  void* (*copy)(const void*);
  tenon_drop_fn drop;
};
SharedSlot slots[4];
std::atomic<uint32_t> count{0};

const tenon_grad_rule* rule(const tenon_op* op) {
  const OperatorInfo* info = operator_info(op);
  return info ? info->rule : nullptr;
}

tenon_status run(const tenon_grad_rule* rule, const tenon_value* args, uint32_t nargs,
                 tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                 uint64_t needs, tenon_value* grad_args, tenon_err* err) {
  return run_rule(*rule, args, nargs, outs, grad_outs, nouts, needs, grad_args, err);
}

tenon_status slot_of_stand_ins(int32_t slot, void* (*copy)(const void*), tenon_drop_fn drop,
                               tenon_err* err) {
  const uint32_t used = count.load(std::memory_order_relaxed);
  if (used == std::size(slots))
    return fail_format(err, TENON_OUT_OF_RANGE, "autograd: expected at most %zu slots of stand-ins",
                       std::size(slots));
  slots[used] = {slot, copy, drop};
  count.store(used + 1, std::memory_order_release);
  return TENON_OK;
}

void update_stand_ins(const tenon_tensor* result) {
  Variable* variable = variable_of(result);
  if (!variable || variable->node().type != &kOperatorNode) return;
  Node& node = variable->node();
  const Saved* saved = saved_outs_of(node);
  for (uint32_t rest = node.saved_outs; rest; rest &= rest - 1, ++saved)
    if (&node.variables()[std::countr_zero(rest)] == variable && saved->tensor)
      share_slots(result, saved->tensor);
}

int32_t has_saved_hooks() { return saved_hooks != nullptr; }

}  // namespace

const tenon_gradient_rules_api kGradientRules = {
    .struct_size = sizeof(tenon_gradient_rules_api),
    .version = TENON_GRADIENT_RULES_VERSION,
    .rule = rule,
    .run = run,
    .slot_of_stand_ins = slot_of_stand_ins,
    .update_stand_ins = update_stand_ins,
    .has_saved_hooks = has_saved_hooks,
};

void share_slots(const tenon_tensor* from, tenon_tensor* to) {
  const uint32_t used = count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < used; ++i) {
    const void* value = host->ext_get(from, slots[i].slot);
    if (!value) continue;
    // A stand-in that gets its values again, as with a second level, has one already.
    void* made = slots[i].copy(value);
    void* old = host->ext_get(to, slots[i].slot);
    host->ext_set(to, slots[i].slot, made);
    if (old) slots[i].drop(old);
  }
}

}  // namespace tenon::autograd
