// SPDX-License-Identifier: Apache-2.0
#include "passes/freeze.hpp"

#include <tenon/error.hpp>

#include <string>

#include "ir/alias_analysis.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(TENON_FAILED_PRECONDITION,
              "freeze: " + what + "; freeze a program that reads its weights and nothing else");
}

}  // namespace

void freeze_leaves(Graph& graph) {
  if (!graph.grads.empty()) refuse("the program sets .grad");
  const AliasAnalysis before(graph);
  for (Leaf& leaf : graph.leaves) {
    if (leaf.is_constant || !leaf.tensor) continue;
    for (const Step& step : graph.steps)
      for (size_t i = 0; i < step.results.size(); ++i)
        if (is_given(step, i) && before.alias_set(step.results[i]) == before.alias_set(leaf.value))
          refuse(step_text(step) + " writes into an input or a tensor from outside");
    leaf.tensor = copy_of(leaf.tensor);
    leaf.is_constant = true;
    leaf.grad = {};
    leaf.original = {};
  }
  const AliasAnalysis after(graph);
  for (const Leaf& leaf : graph.leaves)
    for (ValueId result : graph.results)
      if (leaf.is_constant && after.alias_set(result) == after.alias_set(leaf.value))
        refuse("the program returns a weight or a view of one");
}

void share_leaves(Graph& graph) {
  const AliasAnalysis aliases(graph);
  const auto is_seen_outside = [&](ValueId value) {
    bool is_seen = aliases.is_written(value);
    for_each_live_out(graph, [&](ValueId id) {
      is_seen = is_seen || aliases.alias_set(id) == aliases.alias_set(value);
    });
    return is_seen;
  };
  for (Leaf& leaf : graph.leaves)
    if (leaf.tensor && !leaf.original && !leaf.grad && !is_seen_outside(leaf.value))
      leaf.is_constant = true;
}

}  // namespace tenon::graph
