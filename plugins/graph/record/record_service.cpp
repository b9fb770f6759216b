// SPDX-License-Identifier: Apache-2.0
#include "record/record_service.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>

#include "record/layer.hpp"

namespace tenon::graph {
namespace {

Recording& need_recording() {
  if (Recording* recording = current_recording()) return *recording;
  throw Error(TENON_FAILED_PRECONDITION, "export: this thread records nothing");
}

void stop(Recording* recording) {
  if (state.recording != recording) return;
  state.recording = nullptr;
  enable_layer(false, nullptr);
}

// What fails here cannot be recorded at all.
template <class F>
tenon_status in_recording(tenon_err* err, F&& f) {
  return guarded(err, [&] {
    Recording& recording = need_recording();
    try {
      f(recording);
    } catch (const std::exception& error) {
      recording.fail(error.what());
      throw;
    }
  });
}

Step structural(StepKind kind, Recording& recording, tenon_tensor* const* operands,
                uint32_t count) {
  Step step;
  step.kind = kind;
  for (uint32_t i = 0; i < count; ++i)
    step.operands.push_back(Operand::of(recording.value_of(operands[i])));
  return step;
}

}  // namespace

// -- recording --------------------------------------------------------------------------------------

tenon_status record_begin(tenon_tensor* const* inputs, uint32_t ninputs,
                          const tenon_graph_recording_options* options, tenon_graph_recording** out,
                          tenon_err* err) {
  return guarded(err, [&] {
    if (state.recording)
      throw Error(TENON_FAILED_PRECONDITION,
                  "export: this thread records already; a function that is exported cannot export "
                  "another one");
    tenon_graph_recording_options given = {};
    if (options) std::memcpy(&given, options, std::min<size_t>(options->struct_size, sizeof given));
    if (!given.mark != !given.locate_mark)
      throw Error(TENON_INVALID_ARGUMENT, "export: expected mark and locate_mark, or none of them");
    auto recording = std::make_unique<tenon_graph_recording>(inputs, ninputs, given);
    ErrorSink own;
    own.check(enable_layer(true, own));
    state.recording = recording.get();
    *out = recording.release();
  });
}

tenon_status record_end(tenon_graph_recording* recording, tenon_tensor* const* results,
                        uint32_t nresults, tenon_graph_program** out, tenon_err* err) {
  std::unique_ptr<tenon_graph_recording> owned(recording);
  stop(recording);
  return guarded(err, [&] {
    ProgramPtr program = owned->finish(results, nresults);
    owned.reset();
    Recording::keep_what_is_held(*program);
    *out = program.release();
  });
}

void record_abandon(tenon_graph_recording* recording) {
  stop(recording);
  delete recording;
}

int32_t is_recording() {
  const Recording* recording = current_recording();
  return recording && !recording->is_suspended();
}

tenon_status record_read(const char* what, tenon_err* err) {
  Recording* recording = current_recording();
  if (!recording || recording->is_suspended()) return TENON_OK;
  return guarded(err, [&] {
    const std::string text =
        "export: " + std::string(what) + recording->where() +
        " takes data past the program, which would keep what they are now; "
        "keep them a tensor (tenon.where, tenon.jit.cond, tenon.jit.while_loop), or read "
        "them outside of the exported function";
    recording->fail(text);
    if (!recording->is_over()) throw Error(TENON_UNSUPPORTED, text);
  });
}

tenon_status record_effect(const char* what, const char* rest, tenon_err* err) {
  Recording* recording = current_recording();
  if (!recording) return TENON_OK;
  return guarded(err, [&] {
    const std::string text = "export: " + std::string(what) + recording->where() + rest;
    recording->fail(text);
    if (!recording->is_over()) throw Error(TENON_UNSUPPORTED, text);
  });
}

tenon_status record_look(tenon_tensor* tensor, const char* what, const char* rest, tenon_err* err) {
  Recording* recording = current_recording();
  if (!recording || recording->is_suspended()) return TENON_OK;
  return guarded(err, [&] {
    try {
      recording->read_on_host(tensor, "export: " + std::string(what) + recording->where() + rest);
    } catch (const std::exception& error) {
      recording->fail(error.what());
      if (!recording->is_over()) throw;
    }
  });
}

tenon_status record_grad(tenon_tensor* tensor, tenon_err* err) {
  Recording* recording = current_recording();
  return recording ? guarded(err, [&] { recording->begin_grad(tensor); }) : TENON_OK;
}

void record_note(uint32_t notes) {
  if (Recording* recording = current_recording()) recording->note(notes);
}

// -- structural steps -------------------------------------------------------------------------------

tenon_status region_begin(tenon_tensor* const* inputs, uint32_t ninputs, tenon_err* err) {
  return in_recording(err, [&](Recording& r) { r.begin_region(inputs, ninputs); });
}
tenon_status region_end(tenon_tensor* const* results, uint32_t nresults, tenon_graph_region** out,
                        tenon_err* err) {
  return in_recording(err, [&](Recording& r) { *out = r.end_region(results, nresults); });
}
tenon_status region_hide(tenon_tensor* const* tensors, tenon_tensor* const* clones, uint32_t count,
                         tenon_err* err) {
  return in_recording(err, [&](Recording& r) { r.hide(tensors, clones, count); });
}
tenon_status record_join(tenon_err* err) {
  return in_recording(err, [](Recording& r) { r.commit_aliases(); });
}
void region_abandon() {
  if (Recording* recording = current_recording()) recording->drop_frame();
}
tenon_status record_suspend(tenon_err* err) {
  return in_recording(err, [&](Recording& r) { r.suspend(); });
}

tenon_status record_cond(tenon_tensor* predicate, tenon_tensor* const* operands, uint32_t noperands,
                         tenon_graph_region* then_region, tenon_graph_region* else_region,
                         tenon_tensor* const* results, uint32_t nresults, tenon_err* err) {
  return in_recording(err, [&](Recording& recording) {
    auto types = [](const tenon_graph_region& region) {
      std::vector<Type> types;
      for (ValueId id : region.graph.results) types.push_back(region.graph.values[id]);
      return types;
    };
    const std::vector<Type> first = types(*then_region), second = types(*else_region);
    for (size_t i = 0; i < first.size() && i < second.size(); ++i)
      if (first[i] != second[i])
        throw Error(TENON_INVALID_ARGUMENT,
                    "cond: expected both functions to return the same shapes and dtypes, got " +
                        type_text(first[i]) + " and " + type_text(second[i]) + " as result " +
                        std::to_string(i));
    if (first.size() != second.size())
      throw Error(TENON_INVALID_ARGUMENT,
                  "cond: expected both functions to return as many tensors, got " +
                      std::to_string(first.size()) + " and " + std::to_string(second.size()));
    Step step = structural(StepKind::kCond, recording, &predicate, 1);
    for (uint32_t i = 0; i < noperands; ++i)
      step.operands.push_back(Operand::of(recording.value_of(operands[i])));
    recording.add_structural(std::move(step), {then_region, else_region}, results, nresults);
  });
}

tenon_status record_while(tenon_tensor* const* carried, uint32_t ncarried,
                          tenon_graph_region* condition, tenon_graph_region* body,
                          tenon_tensor* const* results, tenon_err* err) {
  return in_recording(err, [&](Recording& recording) {
    Step step = structural(StepKind::kWhile, recording, carried, ncarried);
    step.carried = ncarried;
    for (uint32_t i = 0; i < ncarried; ++i) recording.may_alias(results[i], carried[i]);
    recording.add_structural(std::move(step), {condition, body}, results, ncarried);
  });
}

tenon_status record_scan(tenon_tensor* const* carried, uint32_t ncarried, tenon_tensor* const* xs,
                         uint32_t nxs, tenon_graph_region* body, tenon_tensor* const* results,
                         uint32_t nresults, tenon_err* err) {
  return in_recording(err, [&](Recording& recording) {
    Step step = structural(StepKind::kScan, recording, carried, ncarried);
    for (uint32_t i = 0; i < nxs; ++i)
      step.operands.push_back(Operand::of(recording.value_of(xs[i])));
    step.carried = ncarried;
    step.scanned = nxs;
    recording.add_structural(std::move(step), {body}, results, nresults);
  });
}

}  // namespace tenon::graph
