// SPDX-License-Identifier: Apache-2.0
#include "passes/views.hpp"

#include <algorithm>
#include <utility>

#include "ir/alias_analysis.hpp"

namespace tenon::graph {

void hoist_views(Graph& graph) {
  // Where a step belongs: a view behind the step that made its base, or at the begin.
  struct Position {
    int64_t after;
    bool is_view;
    size_t index;
    auto operator<=>(const Position&) const = default;
  };
  std::vector<int64_t> made_at(graph.values.size(), -1);
  std::vector<Position> order;
  int64_t last_write = -1;  // views stay behind it, as gradients see the order of both
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const Step& step = graph.steps[i];
    const bool is_view = step.kind == StepKind::kView ||
                         (step.kind == StepKind::kCall && makes_aliases(step) && !step.given);
    auto after = static_cast<int64_t>(i);
    if (is_view) {
      after = last_write;
      for_each_operand(step, [&](ValueId id) { after = std::max(after, made_at[id]); });
    }
    order.push_back({after, is_view, i});
    for (size_t k = 0; k < step.results.size(); ++k)
      if (!is_given(step, k)) made_at[step.results[k]] = after;
    if (step.given || !step.regions.empty()) last_write = static_cast<int64_t>(i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Step> steps;
  for (const Position& at : order) steps.push_back(std::move(graph.steps[at.index]));
  graph.steps = std::move(steps);
  for (Step& step : graph.steps)
    for (Graph& region : step.regions) hoist_views(region);
}

}  // namespace tenon::graph
