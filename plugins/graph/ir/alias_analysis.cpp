// SPDX-License-Identifier: Apache-2.0
#include "ir/alias_analysis.hpp"

#include <algorithm>

namespace tenon::graph {

bool makes_aliases(const Step& step) {
  // A region may return what it was given.
  if (step.kind != StepKind::kCall) return true;
  return host->op_def(step.op)->flags & TENON_OP_VIEW;
}

AliasAnalysis::AliasAnalysis(const Graph& graph, bool inputs_overlap)
    : parents_(graph.values.size()), written_(parents_.size()), outside_(parents_.size()) {
  for (ValueId id = 0; id < parents_.size(); ++id) parents_[id] = id;
  ValueId outside = kNoValueId;
  auto join_outside = [&](ValueId id) {
    if (outside == kNoValueId) outside = id;
    join(outside, id);
  };
  if (inputs_overlap) {
    for (ValueId id : graph.inputs) join_outside(id);
    for (const Leaf& leaf : graph.leaves)
      if (!leaf.is_constant) join_outside(leaf.value);
  }
  for (const Step& step : graph.steps) {
    if (!step.regions.empty()) {
      join_regions(step);
      continue;
    }
    if (!makes_aliases(step)) continue;
    for_each_operand(step, [&](ValueId operand) {
      for (ValueId result : step.results) join(operand, result);
    });
  }
  for (ValueId id = 0; id < parents_.size(); ++id) parents_[id] = root(id);
  if (outside != kNoValueId) outside_[alias_set(outside)] = true;
  for_each_live_out(graph, [&](ValueId id) { outside_[alias_set(id)] = true; });
  for (const Step& step : graph.steps)
    for (size_t i = 0; i < step.results.size(); ++i)
      if (is_given(step, i)) written_[alias_set(step.results[i])] = true;
}

// A result shares memory with those operands alone that a region hands on. In loops also with what it starts from, which is
// the result where there is no turn.
void AliasAnalysis::join_regions(const Step& step) {
  std::vector<ValueId> operands;
  for_each_operand(step, [&](ValueId operand) { operands.push_back(operand); });
  const size_t first = step.kind == StepKind::kCond ? 1 : 0;
  const size_t nresults = step.results.size();
  for (size_t i = 0; i < step.carried && i < operands.size() && i < nresults; ++i)
    join(operands[i], step.results[i]);
  for (size_t r = step.kind == StepKind::kWhile ? 1 : 0; r < step.regions.size(); ++r) {
    const Graph& region = step.regions[r];
    const AliasAnalysis inside(region, false);
    for (size_t k = 0; k < region.results.size() && k < nresults; ++k)
      for (size_t j = 0; j < region.inputs.size() && first + j < operands.size(); ++j)
        if (inside.alias_set(region.results[k]) == inside.alias_set(region.inputs[j]))
          join(operands[first + j], step.results[k]);
    // Two results of a region may show one memory of its own.
    for (size_t k = 1; k < region.results.size() && k < nresults; ++k)
      for (size_t j = 0; j < k; ++j)
        if (inside.alias_set(region.results[k]) == inside.alias_set(region.results[j]))
          join(step.results[j], step.results[k]);
  }
}

ValueId AliasAnalysis::root(ValueId value) {
  while (parents_[value] != value) value = parents_[value] = parents_[parents_[value]];
  return value;
}

void AliasAnalysis::join(ValueId a, ValueId b) {
  a = root(a);
  b = root(b);
  if (a != b) parents_[b < a ? a : b] = b < a ? b : a;
}

namespace {

using Origins =
    std::vector<std::vector<bool>>;  // of each value: the inputs whose memory it may show

Origins origins_of(const Graph& graph);

void add(std::vector<bool>& to, const std::vector<bool>& from) {
  for (size_t i = 0; i < to.size(); ++i)
    if (from[i]) to[i] = true;
}

void add_regions(const Step& step, Origins& found) {
  std::vector<ValueId> operands;
  for_each_operand(step, [&](ValueId operand) { operands.push_back(operand); });
  const size_t first = step.kind == StepKind::kCond ? 1 : 0;
  for (size_t i = 0; i < step.carried && i < operands.size() && i < step.results.size(); ++i)
    add(found[step.results[i]], found[operands[i]]);
  for (size_t r = step.kind == StepKind::kWhile ? 1 : 0; r < step.regions.size(); ++r) {
    const Graph& region = step.regions[r];
    const Origins inside = origins_of(region);
    // What one turn hands on to another variable may go further in the next.
    for (size_t turn = 0; turn <= step.carried; ++turn)
      for (size_t k = 0; k < region.results.size() && k < step.results.size(); ++k)
        for (size_t j = 0; j < region.inputs.size() && first + j < operands.size(); ++j)
          if (inside[region.results[k]][j])
            add(found[step.results[k]],
                found[j < step.carried ? step.results[j] : operands[first + j]]);
  }
}

Origins origins_of(const Graph& graph) {
  Origins found(graph.values.size(), std::vector<bool>(graph.inputs.size()));
  for (size_t i = 0; i < graph.inputs.size(); ++i) found[graph.inputs[i]][i] = true;
  for (const Step& step : graph.steps) {
    if (!step.regions.empty()) {
      add_regions(step, found);
    } else if (makes_aliases(step)) {
      for_each_operand(step, [&](ValueId operand) {
        for (ValueId result : step.results) add(found[result], found[operand]);
      });
    }
  }
  return found;
}

}  // namespace

std::vector<bool> unwritten_constants(const Graph& graph, const AliasAnalysis& aliases) {
  std::vector<bool> constant(graph.values.size());
  for (const Leaf& leaf : graph.leaves)
    constant[leaf.value] = leaf.is_constant && leaf.tensor && !aliases.is_written(leaf.value);
  return constant;
}

bool writes_into_inputs(const Graph& graph) {
  const Origins found = origins_of(graph);
  for (const Step& step : graph.steps)
    for (size_t i = 0; i < step.results.size(); ++i) {
      if (!is_given(step, i)) continue;
      for (bool is_input : found[step.results[i]])
        if (is_input) return true;
    }
  return false;
}

bool writes_outside(const Graph& graph) {
  const AliasAnalysis aliases(graph);
  auto is_written = [&](ValueId id) { return aliases.is_written(id); };
  if (std::any_of(graph.inputs.begin(), graph.inputs.end(), is_written)) return true;
  return std::any_of(graph.leaves.begin(), graph.leaves.end(),
                     [&](const Leaf& leaf) { return !leaf.is_constant && is_written(leaf.value); });
}

}  // namespace tenon::graph
