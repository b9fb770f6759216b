// SPDX-License-Identifier: Apache-2.0
#include "passes/copies.hpp"

#include <utility>

#include "ir/alias_analysis.hpp"

namespace tenon::graph {

void eliminate_copies(Graph& graph, bool passes_gradients) {
  std::vector<uint32_t> uses(graph.values.size());
  std::vector<bool> is_fresh(graph.values.size());  // new memory, made by an operator
  for_each_live_out(graph, [&](ValueId id) { ++uses[id]; });
  for (const Step& step : graph.steps) {
    for_each_operand(step, [&](ValueId id) { ++uses[id]; });
    for (size_t i = 0; i < step.results.size(); ++i) {
      if (is_given(step, i))
        ++uses[step.results[i]];
      else
        is_fresh[step.results[i]] = !makes_aliases(step);
    }
  }
  std::vector<ValueId> by(graph.values.size());
  for (ValueId id = 0; id < by.size(); ++id) by[id] = id;
  std::vector<Step> steps;
  for (Step& step : graph.steps) {
    replace_operands(step, by);
    for (ValueId& id : step.results) id = by[id];
    const bool may_have_gradient = passes_gradients && step.is_recorded;
    if (step.copies_dense && !step.given && !may_have_gradient) {
      const ValueId copied = step.operands[0].value;
      if (uses[copied] == 1 && is_fresh[copied] &&
          graph.values[copied] == graph.values[step.results[0]]) {
        uses[copied] = uses[step.results[0]];
        by[step.results[0]] = copied;
        continue;
      }
    }
    steps.push_back(std::move(step));
  }
  replace_live_outs(graph, by);
  graph.steps = std::move(steps);
}

}  // namespace tenon::graph
