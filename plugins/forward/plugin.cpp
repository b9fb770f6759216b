// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, one extension slot, and a layer from the first level on.
#include <tenon/services/forward.h>
#include <tenon/plugin.hpp>

#include <tenon/error.hpp>

#include <atomic>
#include <mutex>

#include "layer.hpp"
#include "operators.hpp"
#include "tangents.hpp"

namespace tenon::forward {
namespace {

std::mutex registration;
std::atomic<uint64_t> last_level{0};

// Below mixed precision (50), whose casts are differentiated, and above autograd (100), which records what tangents are
// made of.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_NO_BIT,
    .name = "forward",
    .order = 60,
    .call = layer_call,
};

tenon_status ensure_layer(tenon_err* err) {
  std::lock_guard lock(registration);
  if (place.layer >= 0) return TENON_OK;
  autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  rules = static_cast<const tenon_gradient_rules_api*>(
      host->service_find(TENON_GRADIENT_RULES_SERVICE, TENON_GRADIENT_RULES_VERSION));
  if (!autograd || !rules)
    return fail(err, TENON_FAILED_PRECONDITION,
                "forward mode needs the autograd plugin, which is not loaded");
  if (place.slot < 0) place.slot = host->ext_register("forward", drop_tangents);
  if (place.slot < 0)
    return fail(err, TENON_OUT_OF_RANGE,
                "forward mode: all extension slots of tensors are taken by other services");
  TENON_TRY(rules->slot_of_stand_ins(place.slot, copy_of_tangents, drop_tangents, err));
  const int32_t id = host->layer_register(&kLayer, err);
  if (id < 0) return host->err_code(err);
  place.layer = id;
  return TENON_OK;
}

tenon_status push(uint64_t* level, tenon_err* err) {
  TENON_TRY(ensure_layer(err));
  return guarded(err, [&] {
    ThreadState& state = thread_state();
    state.outside.reserve(state.outside.size() + 1);
    state.known.reserve(state.known.size() + 1);
    state.levels.push_back(*level = ++last_level);
    state.known.emplace_back();
    state.active = state.levels.size();
    state.outside.push_back(host->layer_enable(place.layer, 1));
  });
}

void pop() {
  ThreadState& state = thread_state();
  if (state.levels.empty()) return;
  const uint64_t level = state.levels.back();
  LevelTangents known = std::move(state.known.back());
  state.levels.pop_back();
  state.known.pop_back();
  state.active = state.levels.size();
  host->layer_enable(place.layer, state.outside.back());
  state.outside.pop_back();
  known.drop(level);
}

uint64_t level() {
  const ThreadState& state = thread_state();
  return state.active ? state.levels[state.active - 1] : 0;
}

tenon_status make_dual(tenon_tensor* tensor, uint64_t level, tenon_tensor* given, tenon_err* err) {
  const bool fits = !given || (has_shape_of(given, tensor) && given->dtype == tensor->dtype &&
                               given->device == tensor->device);
  if (!fits)
    return fail(err, TENON_INVALID_ARGUMENT,
                "forward mode: expected a tangent of the tensor's shape, dtype and device");
  if (tensor->flags & TENON_TENSOR_COMPOSED)
    return fail(err, TENON_UNSUPPORTED,
                "forward mode: expected a plain tensor, got one that is composed of others");
  return guarded(err, [&] { set_tangent(tensor, level, Tensor::borrow(given)); });
}

tenon_status find_tangent(tenon_tensor* tensor, uint64_t level, tenon_tensor** out,
                          tenon_err* err) {
  return guarded(err, [&] { *out = tangent_of(tensor, level).release(); });
}

int32_t is_dual(const tenon_tensor* tensor) {
  for (uint64_t level : thread_state().levels)
    if (has_tangent(tensor, level)) return 1;
  return 0;
}

tenon_status copy(const tenon_tensor* from, tenon_tensor* to, tenon_err* err) {
  if (place.layer < 0) return TENON_OK;
  return guarded(err, [&] { copy_tangents(const_cast<tenon_tensor*>(from), to); });
}

constexpr tenon_forward_api kService = {
    .struct_size = sizeof(tenon_forward_api),
    .version = TENON_FORWARD_VERSION,
    .push = push,
    .pop = pop,
    .level = level,
    .set_tangent = make_dual,
    .tangent = find_tangent,
    .is_dual = is_dual,
    .copy = copy,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_FORWARD_SERVICE, TENON_FORWARD_VERSION, &kService, err);
}

// `stop` is absent: tensors point into this library until they die, so that it stays.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "forward",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::forward

TENON_PLUGIN(tenon::forward::kPlugin)
