// SPDX-License-Identifier: Apache-2.0
#include "passes/dead_code.hpp"

#include "ir/alias_analysis.hpp"

namespace tenon::graph {
namespace {

// Which steps and values are needed. A write counts if any step reads the memory, before or
// after: that is more than needed, and never too little.
class Liveness {
 public:
  explicit Liveness(const Graph& graph)
      : aliases_(graph),
        live_(graph.values.size()),
        memory_(graph.values.size()),
        steps_(graph.steps.size()) {
    for_each_live_out(graph, [&](ValueId id) { need(id); });
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (size_t i = graph.steps.size(); i-- > 0;) {
        if (steps_[i] || !is_needed(graph.steps[i])) continue;
        steps_[i] = has_changed = true;
        for_each_operand(graph.steps[i], [&](ValueId id) { need(id); });
        for (ValueId id : graph.steps[i].results) need(id);
      }
    }
  }
  bool step(size_t index) const { return steps_[index]; }
  bool value(ValueId id) const { return live_[id]; }

 private:
  void need(ValueId id) { live_[id] = memory_[aliases_.alias_set(id)] = true; }
  bool is_needed(const Step& step) const {
    if (is_random(step)) return true;
    for (size_t i = 0; i < step.results.size(); ++i) {
      const ValueId id = step.results[i];
      if (live_[id]) return true;
      if (is_given(step, i) && (aliases_.is_outside(id) || memory_[aliases_.alias_set(id)]))
        return true;
    }
    return false;
  }

  AliasAnalysis aliases_;
  std::vector<bool> live_, memory_, steps_;
};

}  // namespace

void eliminate_dead_code(Graph& graph) {
  const Liveness live(graph);
  std::vector<Step> steps;
  for (size_t i = 0; i < graph.steps.size(); ++i)
    if (live.step(i)) steps.push_back(std::move(graph.steps[i]));
  graph.steps = std::move(steps);
  std::erase_if(graph.leaves, [&](const Leaf& leaf) { return !live.value(leaf.value); });
  for (Step& step : graph.steps)
    for (Graph& region : step.regions) eliminate_dead_code(region);
}

}  // namespace tenon::graph
