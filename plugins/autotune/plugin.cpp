// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, and a layer from the first time that autotuning is enabled.
#include <tenon/services/autotune.h>
#include <tenon/plugin.hpp>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include <tenon/error.hpp>

#include "choices.hpp"
#include "layer.hpp"

namespace tenon::autotune {
namespace {

// What pop goes back to.
struct Outer {
  uint32_t flags;
  bool has_flags;
  int32_t was_on;
};
thread_local std::vector<Outer> outer;
std::mutex registration;

// Below every layer that watches kernels, so that those see one call and not its measurements.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_KERNELS | TENON_LAYER_NO_BIT,
    .name = "autotune",
    .order = 2000,
    .call = layer_call,
};

tenon_status ensure_layer(const tenon_layer_def& def, tenon_err* err) {
  if (!candidates())
    return fail(err, TENON_UNSUPPORTED,
                "autotune: expected a host with the service 'candidates', got one without; upgrade "
                "libtenon");
  std::lock_guard lock(registration);
  if (layer < 0) layer = host->layer_register(&def, err);
  return layer < 0 ? host->err_code(err) : TENON_OK;
}

tenon_status push(uint32_t flags, tenon_err* err) {
  if (flags & ~TENON_AUTOTUNE_MEASURE)
    return fail(err, TENON_INVALID_ARGUMENT,
                "autotune: expected flags of TENON_AUTOTUNE_MEASURE, got " + std::to_string(flags));
  if (tenon_status status = ensure_layer(kLayer, err)) return status;
  return guarded(err, [&] {
    outer.push_back({state.flags, state.has_flags, host->layer_enabled(layer)});
    state.flags = flags;
    state.has_flags = true;
    host->layer_enable(layer, 1);
  });
}

void pop() {
  if (outer.empty()) return;
  state.flags = outer.back().flags;
  state.has_flags = outer.back().has_flags;
  host->layer_enable(layer, outer.back().was_on);
  outer.pop_back();
}

tenon_status clear(uint32_t flags, tenon_err* err) {
  if (flags & ~TENON_AUTOTUNE_FILES)
    return fail(err, TENON_INVALID_ARGUMENT,
                "autotune: expected flags of TENON_AUTOTUNE_FILES, got " + std::to_string(flags));
  return guarded(err, [&] {
    forget(flags & TENON_AUTOTUNE_FILES);
    forget_choices_of_threads();
  });
}

constexpr tenon_autotune_api kService = {.struct_size = sizeof(tenon_autotune_api),
                                         .version = TENON_AUTOTUNE_VERSION,
                                         .push = push,
                                         .pop = pop,
                                         .report = write_report,
                                         .clear = clear};

// TENON_AUTOTUNE=1 (or `use`: without measuring): on every thread, from the start.
tenon_status start(const tenon_host*, tenon_err* err) {
  const char* value = std::getenv("TENON_AUTOTUNE");
  const std::string_view wanted = value ? value : "";
  if (!wanted.empty() && wanted != "0") {
    if (wanted != "1" && wanted != "use")
      return fail(err, TENON_INVALID_ARGUMENT,
                  "TENON_AUTOTUNE: expected 1, use or 0, got '" + std::string(wanted) + "'");
    default_flags = wanted == "1" ? TENON_AUTOTUNE_MEASURE : 0;
    tenon_layer_def def = kLayer;
    def.flags |= TENON_LAYER_ENABLED;
    if (tenon_status status = ensure_layer(def, err)) return status;
  }
  return host->service_register(TENON_AUTOTUNE_SERVICE, TENON_AUTOTUNE_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "autotune",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::autotune

TENON_PLUGIN(tenon::autotune::kPlugin)
