// SPDX-License-Identifier: Apache-2.0
// A program's run: what has to hold before its plan may start.
#include <tenon/error.hpp>

#include <algorithm>

#include "program/overlap.hpp"
#include "program/run.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

bool has_type(const tenon_tensor& tensor, const Type& type) {
  return tensor.dtype == type.dtype && tensor.device == type.device &&
         std::equal(type.shape.begin(), type.shape.end(), tensor.shape, tensor.shape + tensor.ndim);
}

[[gnu::cold]] tenon_status fail_type(const char* what, size_t index, const Type& expected,
                                     const tenon_tensor& got, const char* fix, tenon_err* err) {
  return fail_format(err, TENON_INVALID_ARGUMENT, "program: %s %zu: expected %s, got %s; %s", what,
                     index, type_text(expected).c_str(), type_text(type_of(got)).c_str(), fix);
}

tenon_status check_inputs(const Graph& graph, tenon_tensor* const* inputs, uint32_t ninputs,
                          uint32_t nresults, tenon_err* err) {
  if (ninputs != graph.inputs.size() || nresults != graph.results.size())
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "program: expected %zu inputs and room for %zu results, got %u and %u",
                       graph.inputs.size(), graph.results.size(), ninputs, nresults);
  for (size_t i = 0; i < ninputs; ++i) {
    const Type& type = graph.values[graph.inputs[i]];
    if (!has_type(*inputs[i], type))
      return fail_type("input", i, type, *inputs[i],
                       "convert it, or export the function for these inputs", err);
  }
  return TENON_OK;
}

tenon_status check_leaves(const Graph& graph, tenon_err* err) {
  for (size_t i = 0; i < graph.leaves.size(); ++i) {
    const Leaf& leaf = graph.leaves[i];
    if (!leaf.tensor)
      return fail_format(err, TENON_FAILED_PRECONDITION,
                         "program: leaf %zu has no tensor; give one with bind", i);
    const Type& type = graph.values[leaf.value];
    if (!has_type(*leaf.tensor.get(), type))
      return fail_type("leaf", i, type, *leaf.tensor.get(),
                       "it was given other memory since; export the function again", err);
    if (leaf.grad && autograd()->grad(leaf.tensor.get()) != leaf.grad.get())
      return fail_format(err, TENON_FAILED_PRECONDITION,
                         "program: leaf %zu, %s: its .grad is not what it was when the function "
                         "was exported, and the program adds to it; put it back, or export again",
                         i, type_text(type).c_str());
  }
  return TENON_OK;
}

tenon_status check_into(const Graph& graph, tenon_tensor* const* into, tenon_err* err) {
  for (size_t i = 0; i < graph.results.size(); ++i) {
    if (!into[i]) continue;
    const Type& type = graph.values[graph.results[i]];
    if (!has_type(*into[i], type))
      return fail_type("output", i, type, *into[i], "give a tensor of the result's type", err);
    if (!(into[i]->flags & TENON_TENSOR_CONTIGUOUS))
      return fail_format(err, TENON_INVALID_ARGUMENT,
                         "program: output %zu: expected dense memory, got another layout", i);
  }
  return TENON_OK;
}

bool wants_gradients(const Program& program, tenon_tensor* const* inputs) {
  if (program.is_detached || !autograd() || !autograd()->enabled()) return false;
  auto is_wanted = [](const tenon_tensor* tensor) { return requires_grad(tensor); };
  const Graph& graph = program.graph;
  return std::any_of(inputs, inputs + graph.inputs.size(), is_wanted) ||
         std::any_of(graph.leaves.begin(), graph.leaves.end(),
                     [&](const Leaf& leaf) { return is_wanted(leaf.tensor.get()); });
}

// The switch for recording gradients, put back when the run ends.
class GradientsOn {
 public:
  explicit GradientsOn(bool on) {
    if (!autograd()) return;
    const bool is_on = autograd()->enabled();
    if (!on && !is_on) return;  // no step turns it on
    autograd()->set_enabled(on);
    before_ = is_on ? 1 : 0;
  }
  ~GradientsOn() {
    if (before_ >= 0) autograd()->set_enabled(before_);
  }
  GradientsOn(const GradientsOn&) = delete;
  GradientsOn& operator=(const GradientsOn&) = delete;

 private:
  int32_t before_ = -1;
};

}  // namespace

tenon_status run_program(const Program& program, tenon_tensor* const* inputs, uint32_t ninputs,
                         tenon_tensor** results, uint32_t nresults, const RunOptions& options,
                         tenon_err* err) {
  if (program.dimensions) [[unlikely]] {
    Instances::Made instance;
    TENON_TRY(guarded(err, [&] { instance = instance_for(program, inputs, ninputs); }));
    return run_program(*instance, inputs, ninputs, results, nresults, options, err);
  }
  TENON_TRY(check_inputs(program.graph, inputs, ninputs, nresults, err));
  TENON_TRY(check_leaves(program.graph, err));
  if (options.into) TENON_TRY(check_into(program.graph, options.into, err));
  const Plan* plan = nullptr;
  TENON_TRY(guarded(err, [&] { plan = &program.plan(); }));
  TENON_TRY(plan->check_operators(err));
  if (program.needs_disjoint_inputs) [[unlikely]]
    TENON_TRY(guarded(err, [&] { check_inputs_disjoint(program.graph, inputs); }));
  const bool records = wants_gradients(program, inputs);
  if (records && !program.refuses_gradients.empty())
    return fail_format(err, TENON_UNSUPPORTED,
                       "program: gradients cannot be recorded through it: %s; call it under "
                       "tenon.no_grad()",
                       program.refuses_gradients.c_str());
  if (records && options.flags & TENON_GRAPH_RUN_OWN_RESULTS)
    return fail(err, TENON_UNSUPPORTED,
                "program: gradients cannot be recorded through results that are copied "
                "(TENON_GRAPH_RUN_OWN_RESULTS); call it under tenon.no_grad()");
  const GradientsOn scope(records);
  return plan->run(inputs, results, records ? Gradients::kReplay : Gradients::kOff, options, err);
}

}  // namespace tenon::graph
