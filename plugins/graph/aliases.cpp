// SPDX-License-Identifier: Apache-2.0
#include "aliases.hpp"

namespace tenon::graph {

bool makes_aliases(const Step& step) {
  // A region may return what it was given.
  if (step.kind != StepKind::kCall) return true;
  return host->op_def(step.op)->flags & TENON_OP_VIEW;
}

Aliases::Aliases(const Graph& graph)
    : parents_(graph.values.size()), written_(parents_.size()), outside_(parents_.size()) {
  for (ValueId id = 0; id < parents_.size(); ++id) parents_[id] = id;
  ValueId outside = kNoValueId;
  auto join_outside = [&](ValueId id) {
    if (outside == kNoValueId) outside = id;
    join(outside, id);
  };
  for (ValueId id : graph.inputs) join_outside(id);
  for (const Leaf& leaf : graph.leaves)
    if (!leaf.is_constant) join_outside(leaf.value);
  for (const Step& step : graph.steps) {
    if (!makes_aliases(step)) continue;
    for_each_operand(step, [&](ValueId operand) {
      for (ValueId result : step.results) join(operand, result);
    });
  }
  for (ValueId id = 0; id < parents_.size(); ++id) parents_[id] = root(id);
  if (outside != kNoValueId) outside_[group(outside)] = true;
  for_each_kept(graph, [&](ValueId id) { outside_[group(id)] = true; });
  for (const Step& step : graph.steps)
    for (size_t i = 0; i < step.results.size(); ++i)
      if (is_given(step, i)) written_[group(step.results[i])] = true;
}

ValueId Aliases::root(ValueId value) {
  while (parents_[value] != value) value = parents_[value] = parents_[parents_[value]];
  return value;
}

void Aliases::join(ValueId a, ValueId b) {
  a = root(a);
  b = root(b);
  if (a != b) parents_[b < a ? a : b] = b < a ? b : a;
}

}  // namespace tenon::graph
