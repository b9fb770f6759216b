// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, and a layer from the first time that validation is enabled.
#include <tenon/plugin.hpp>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "call.hpp"

namespace tenon::validation {
namespace {

// What pop goes back to.
struct Outer {
  tenon_validation_options options;
  int32_t was_on;
};
thread_local std::vector<Outer> outer;
std::mutex registration;

constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_KERNELS | TENON_LAYER_NO_BIT,
    .name = "validation",
    .order = 1000,
    .call = layer_call,
};

tenon_status ensure_layer(const tenon_layer_def& def, tenon_err* err) {
  std::lock_guard lock(registration);
  if (layer < 0) layer = host->layer_register(&def, err);
  return layer < 0 ? host->err_code(err) : TENON_OK;
}

tenon_status push(const tenon_validation_options* options, tenon_err* err) {
  if (options && options->struct_size < sizeof *options)
    return fail(err, TENON_INVALID_ARGUMENT,
                "validation: expected struct_size " + std::to_string(sizeof *options) + ", got " +
                    std::to_string(options->struct_size));
  if (tenon_status status = ensure_layer(kLayer, err)) return status;
  return guarded(err, [&] {
    outer.push_back({state.options, host->layer_enabled(layer)});
    state.options = options ? *options : tenon_validation_options{};
    host->layer_enable(layer, 1);
  });
}

void pop() {
  if (outer.empty()) return;
  state.options = outer.back().options;
  host->layer_enable(layer, outer.back().was_on);
  outer.pop_back();
}

uint64_t calls() { return state.calls; }
int32_t is_watching() { return state.is_watching; }

constexpr tenon_validation_api kService = {.struct_size = sizeof(tenon_validation_api),
                                           .version = TENON_VALIDATION_VERSION,
                                           .push = push,
                                           .pop = pop,
                                           .calls = calls,
                                           .is_watching = is_watching};

// TENON_VALIDATE=1: on every thread, from the start.
bool is_wanted_by_environment() {
  const char* value = std::getenv("TENON_VALIDATE");
  return value && *value && std::string_view(value) != "0";
}

tenon_status start(const tenon_host*, tenon_err* err) {
  if (is_wanted_by_environment()) {
    tenon_layer_def def = kLayer;
    def.flags |= TENON_LAYER_ENABLED;
    if (tenon_status status = ensure_layer(def, err)) return status;
  }
  return host->service_register(TENON_VALIDATION_SERVICE, TENON_VALIDATION_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "validation",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::validation

TENON_PLUGIN(tenon::validation::kPlugin)
