// SPDX-License-Identifier: Apache-2.0
// Recording of the regions of structural steps.
#include <tenon/error.hpp>

#include "record/recording.hpp"
#include "support/host.hpp"

namespace tenon::graph {

void Recording::begin_region(tenon_tensor* const* inputs, uint32_t ninputs) {
  auto region = std::make_unique<Frame>();
  for (uint32_t i = 0; i < ninputs; ++i) region->graph.inputs.push_back(region->add(inputs[i]));
  frames_.push_back(std::move(region));
}

void Recording::hide(tenon_tensor* const* tensors, tenon_tensor* const* clones, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const void* storage = host->tensor_storage(tensors[i]);
    if (!storage) continue;
    frame().hidden[storage] = nullptr;
    frame().hidden[host->tensor_storage(clones[i])] = storage;
  }
}

void Recording::may_alias(tenon_tensor* result, tenon_tensor* original) {
  alias_sets_.add(host->tensor_storage(result), host->tensor_storage(original));
}

tenon_graph_region* Recording::end_region(tenon_tensor* const* results, uint32_t nresults) {
  if (frames_.size() < 2 || frame().is_suspended)
    throw Error(TENON_FAILED_PRECONDITION, "export: no region was begun");
  for (uint32_t i = 0; i < nresults; ++i) frame().graph.results.push_back(value_of(results[i]));
  auto region = std::make_unique<tenon_graph_region>();
  for (uint32_t i = 0; i < nresults; ++i) {
    const void* storage = host->tensor_storage(results[i]);
    const auto original = frame().hidden.find(storage);
    if (original != frame().hidden.end()) {
      region->passed.push_back(original->second);
      continue;
    }
    bool is_outside = false;
    for (size_t depth = 0; depth + 1 < frames_.size(); ++depth)
      is_outside |= storage && frames_[depth]->knows_storage(storage);
    region->passed.push_back(is_outside ? storage : nullptr);
  }
  region->graph = std::move(frame().graph);
  region->imports = std::move(frame().imports);
  drop_frame();
  regions_.push_back(std::move(region));
  return regions_.back().get();
}

void Recording::suspend() {
  frames_.push_back(std::make_unique<Frame>());
  frame().is_suspended = true;
}

void Recording::drop_frame() {
  if (frames_.size() < 2) return;
  std::unique_ptr<Frame> dropped = std::move(frames_.back());
  frames_.pop_back();
  // Its values live on in Python's variables, and belong to no other frame.
  dropped->for_each_storage([&](const void* storage) {
    for (const auto& frame : frames_)
      if (frame->knows_storage(storage)) return;
    foreign_.insert(storage);
  });
  for (Tensor& tensor : dropped->take_made()) made_.push_back(std::move(tensor));
  for (Tensor& tensor : dropped->take_kept()) kept_.push_back(std::move(tensor));
}

void Recording::add_structural(Step step, std::vector<tenon_graph_region*> regions,
                               tenon_tensor* const* results, uint32_t nresults) {
  sources_.locate(step);
  // Every region gets what any of them uses from outside.
  for (size_t own = 0; own < regions.size(); ++own) {
    for (size_t i = 0; i < regions.size(); ++i) {
      if (i == own) continue;
      Graph& graph = regions[i]->graph;
      std::vector<ValueId> unused;
      for (ValueId import : regions[own]->imports)
        unused.push_back(graph.add_value(frame().graph.values[import]));
      // In the order of the step's arguments: a region's own imports stand where its turn is.
      auto at = own < i ? graph.inputs.end() - static_cast<int64_t>(regions[i]->imports.size())
                        : graph.inputs.end();
      graph.inputs.insert(at, unused.begin(), unused.end());
    }
  }
  for (tenon_graph_region* region : regions)
    for (ValueId import : region->imports) step.operands.push_back(Operand::of(import));
  for (tenon_graph_region* region : regions) step.regions.push_back(std::move(region->graph));
  for (size_t r = step.kind == StepKind::kWhile ? 1 : 0; r < regions.size(); ++r)
    for (uint32_t i = 0; i < nresults && i < regions[r]->passed.size(); ++i)
      if (regions[r]->passed[i])
        alias_sets_.add(host->tensor_storage(results[i]), regions[r]->passed[i]);
  for (uint32_t i = 0; i < nresults; ++i) {
    if (frame().find(results[i]))
      throw Error(TENON_INVALID_ARGUMENT,
                  "export: expected new tensors as results of " + text_of(step));
    step.results.push_back(frame().add(results[i]));
  }
  frame().graph.steps.push_back(std::move(step));
}

}  // namespace tenon::graph
