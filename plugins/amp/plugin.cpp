// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, and a layer from the first region on.
#include <tenon/services/autograd.h>
#include <tenon/plugin.hpp>

#include <tenon/error.hpp>

#include <cstddef>
#include <mutex>

#include "layer.hpp"

namespace tenon::amp {
namespace {

std::mutex registration;

// Above autograd (100), so that casts are recorded.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_NO_BIT,
    .name = "amp",
    .order = 50,
    .call = layer_call,
};

tenon_status ensure_layer(tenon_err* err) {
  std::lock_guard lock(registration);
  if (layer >= 0) return TENON_OK;
  const int32_t id = host->layer_register(&kLayer, err);
  if (id < 0) return host->err_code(err);
  auto* autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  if (autograd && autograd->struct_size > offsetof(tenon_autograd_api, turn_off_in_backward))
    autograd->turn_off_in_backward(id);
  layer = id;
  return TENON_OK;
}

tenon_status push(const tenon_amp_options* options, tenon_err* err) {
  if (options)
    if (tenon_status status = check_options(*options, err)) return status;
  if (tenon_status status = ensure_layer(err)) return status;
  return guarded(err, [&] {
    ThreadState& state = thread_state();
    state.outer.reserve(state.outer.size() + 1);
    state.regions.push_back(options ? Region(*options) : Region());
    state.outer.push_back(host->layer_enable(layer, options != nullptr));
  });
}

void pop() {
  ThreadState& state = thread_state();
  if (state.regions.empty()) return;
  state.regions.pop_back();
  // In a backward pass the layer is off although there may be an outer region.
  host->layer_enable(layer, state.outer.back());
  state.outer.pop_back();
}

int32_t dtype() {
  const std::vector<Region>& regions = thread_state().regions;
  return regions.empty() ? -1 : regions.back().dtype();
}

uint32_t class_of(const tenon_op* op) {
  const std::vector<Region>& regions = thread_state().regions;
  return regions.empty() || !regions.back().casts() ? class_in_definition(op)
                                                    : regions.back().class_of(op);
}

void casts(tenon_amp_casts* out) { *out = thread_state().casts; }

constexpr tenon_amp_api kService = {.struct_size = sizeof(tenon_amp_api),
                                    .version = TENON_AMP_VERSION,
                                    .push = push,
                                    .pop = pop,
                                    .dtype = dtype,
                                    .class_of = class_of,
                                    .casts = casts};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_AMP_SERVICE, TENON_AMP_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "amp",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::amp

TENON_PLUGIN(tenon::amp::kPlugin)
