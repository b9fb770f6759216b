// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, and a layer from the first time that something is started.
#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include <memory>
#include <mutex>
#include <vector>

#include "layer.hpp"
#include "recorder.hpp"

namespace tenon::profiler {
namespace {

// What pop goes back to.
struct Outer {
  tenon_observer observer;
  int32_t was_on;
};
thread_local std::vector<Outer> outer;
std::mutex registration;

// The last recording of this thread, and whether the layer was on before it.
struct Recording {
  Recorder recorder;
  int32_t was_on = 0;
};
thread_local std::unique_ptr<Recording> recording;

// Below mixed precision (50), so that dtypes are those of the computation, and above autograd (100),
// so that recording counts.
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_EVERY_CALL | TENON_LAYER_WHOLE |
             TENON_LAYER_NO_BIT,  // what is measured is what runs
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

tenon_status record_start(const tenon_record_options* options, tenon_err* err) {
  constexpr uint32_t kKnown = TENON_RECORD_WITH_SHAPES | TENON_RECORD_WITH_MEMORY;
  if (!options || options->struct_size < sizeof *options || options->capacity == 0 ||
      options->flags & ~kKnown)
    return fail(err, TENON_INVALID_ARGUMENT,
                "profiler: expected options with struct_size, a capacity above 0 and known flags");
  if (state.recorder)
    return fail(err, TENON_FAILED_PRECONDITION,
                "profiler: expected a thread that is not recorded, got one that is; end the other "
                "profile first");
  if (tenon_status status = ensure_layer(err)) return status;
  return guarded(err, [&] {
    if (!recording) recording = std::make_unique<Recording>();
    recording->recorder.start(*options);
    recording->was_on = host->layer_enable(layer, 1);
    state.recorder = &recording->recorder;
  });
}

void record_stop() {
  if (!state.recorder) return;
  state.recorder->stop();
  state.recorder = nullptr;
  host->layer_enable(layer, recording->was_on);
}

int32_t is_recording() { return state.recorder != nullptr; }

void scope_begin(uint32_t what) {
  if (state.recorder) state.recorder->scope_begin(what);
}
void scope_end() {
  if (state.recorder) state.recorder->scope_end();
}

uint64_t drain(tenon_call_record* out, uint64_t capacity) {
  return recording && !state.recorder ? recording->recorder.drain(out, capacity) : 0;
}

const int64_t* details(uint64_t* count, uint64_t* lost) {
  *count = *lost = 0;
  if (!recording) return nullptr;
  *count = recording->recorder.details().size();
  *lost = recording->recorder.lost();
  return recording->recorder.details().data();
}

constexpr tenon_profiler_api kService = {.struct_size = sizeof(tenon_profiler_api),
                                         .version = TENON_PROFILER_VERSION,
                                         .observe_push = observe_push,
                                         .observe_pop = observe_pop,
                                         .record_start = record_start,
                                         .record_stop = record_stop,
                                         .is_recording = is_recording,
                                         .scope_begin = scope_begin,
                                         .scope_end = scope_end,
                                         .drain = drain,
                                         .details = details};

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
