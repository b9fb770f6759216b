// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, and a layer from the first time that something is started.
#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include <mutex>
#include <vector>

#include "layer.hpp"

namespace tenon::profiler {
namespace {

// What pop goes back to.
struct Outer {
  tenon_observer observer;
  int32_t was_on;
};
thread_local std::vector<Outer> outer;
std::mutex registration;

// Below mixed precision (50), so that dtypes are those of the computation, and above autograd (100),
// so that recording counts.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL,
    .name = "profiler",
    .order = 75,
    .call = layer_call,
};

tenon_status ensure_layer(tenon_err* err) {
  std::lock_guard lock(registration);
  if (layer < 0) layer = host->layer_register(&kLayer, err);
  return layer < 0 ? host->err_code(err) : TENON_OK;
}

tenon_status observe_push(const tenon_observer* observer, tenon_err* err) {
  if (!observer || observer->struct_size < sizeof *observer || !observer->after)
    return fail(err, TENON_INVALID_ARGUMENT,
                "profiler: expected an observer with struct_size and `after`");
  if (tenon_status status = ensure_layer(err)) return status;
  return guarded(err, [&] {
    outer.push_back({state.observer, host->layer_enabled(layer)});
    state.observer = *observer;
    host->layer_enable(layer, 1);
  });
}

void observe_pop() {
  if (outer.empty()) return;
  state.observer = outer.back().observer;
  host->layer_enable(layer, outer.back().was_on);
  outer.pop_back();
}

constexpr tenon_profiler_api kService = {.struct_size = sizeof(tenon_profiler_api),
                                         .version = TENON_PROFILER_VERSION,
                                         .observe_push = observe_push,
                                         .observe_pop = observe_pop};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_PROFILER_SERVICE, TENON_PROFILER_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "profiler",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::profiler

TENON_PLUGIN(tenon::profiler::kPlugin)
