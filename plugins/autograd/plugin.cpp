// SPDX-License-Identifier: Apache-2.0
// The whole plugin at a glance: one layer, one extension slot, and what other services are told.
#include <tenon/plugin.hpp>

#include "custom.hpp"
#include "engine.hpp"
#include "hooks.hpp"
#include "layer.hpp"
#include "rules.hpp"
#include "saved_hooks.hpp"
#include "stand_ins.hpp"
#include "tensors.hpp"

namespace tenon::autograd {

namespace {

int32_t enabled() { return is_recording(); }
int32_t set_enabled(int32_t on) { return host->layer_enable(place.layer, on); }

constexpr tenon_autograd_api kService = {
    .struct_size = sizeof(tenon_autograd_api),
    .version = TENON_AUTOGRAD_VERSION,
    .rule_register = rule_register,
    .requires_grad = requires_grad,
    .set_requires_grad = set_requires_grad,
    .is_leaf = is_leaf,
    .grad = grad,
    .set_grad = set_grad,
    .grad_fn = grad_fn,
    .retain_grad = retain_grad,
    .detach = detach,
    .hook_add = hook_add,
    .hook_remove = hook_remove,
    .enabled = enabled,
    .set_enabled = set_enabled,
    .backward = backward,
    .gradients = gradients,
    .record = record,
    .saved_create = saved_create,
    .saved_unpack = saved_unpack,
    .saved_destroy = saved_destroy,
    .turn_off_in_backward = turn_off_in_backward,
    .node = node_of,
    .running_node = running_node,
    .set_saved_hooks = set_saved_hooks,
    .hook_add_after_accumulate = hook_add_after_accumulate,
};

constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_ENABLED,
    .name = "autograd",
    .order = 100,
    .call = layer_call,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  place.slot = host->ext_register("autograd", drop_slot);
  if (place.slot < 0)
    return fail_format(err, TENON_OUT_OF_RANGE,
                       "autograd: all extension slots of tensors are taken by other services");
  place.layer = host->layer_register(&kLayer, err);
  if (place.layer < 0) return host->err_code(err);
  place.bit = static_cast<uint8_t>(1u << place.layer);
  for (uint32_t i = 0; i < kGradRuleCount; ++i) TENON_TRY(rule_register(&kGradRules[i], err));
  TENON_TRY(host->service_register(TENON_GRADIENT_RULES_SERVICE, TENON_GRADIENT_RULES_VERSION,
                                   &kGradientRules, err));
  return host->service_register(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION, &kService, err);
}

// `stop` is absent: tensors point into this library until they die, so that it stays.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "autograd",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::autograd

TENON_PLUGIN(tenon::autograd::kPlugin)
