// SPDX-License-Identifier: Apache-2.0
#include "passes/common_subexpressions.hpp"

#include <string>
#include <unordered_map>
#include <utility>

#include "ir/alias_analysis.hpp"

namespace tenon::graph {
namespace {

// Bytes that are equal for steps that do the same.
class Key {
 public:
  explicit Key(const Step& step) {
    add(static_cast<int64_t>(step.kind));
    add(step.is_recorded);
    text_.append(reinterpret_cast<const char*>(&step.op), sizeof step.op);
    for (const Operand& operand : step.operands) {
      add(operand.kind);
      add(operand.value);
      add(static_cast<int64_t>(operand.list.size()));
      for (ValueId id : operand.list) add(id);
      add_attribute(operand.attribute.value());
    }
    add(step.offset);
    for (int64_t stride : step.strides) add(stride);
  }
  std::string take() { return std::move(text_); }

 private:
  void add(int64_t number) { text_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void add_attribute(const tenon_value& value) {
    add(value.tag);
    add(value.aux);
    switch (value.tag) {
      case TENON_VALUE_INTS:
      case TENON_VALUE_FLOATS:
      case TENON_VALUE_COMPLEX: {
        const uint64_t count = value.tag == TENON_VALUE_COMPLEX ? 2 : value.aux;
        if (count) text_.append(static_cast<const char*>(value.v.p), count * 8);
        break;
      }
      case TENON_VALUE_STRING:
        if (value.aux) text_.append(static_cast<const char*>(value.v.p), value.aux);
        break;
      default:
        add(value.v.i);
    }
  }
  std::string text_;
};

}  // namespace

void eliminate_common_subexpressions(Graph& graph, bool passes_gradients) {
  const AliasAnalysis aliases(graph);
  std::vector<bool> is_result(graph.values.size());
  for_each_live_out(graph, [&](ValueId id) { is_result[id] = true; });
  std::vector<ValueId> by(graph.values.size());
  for (ValueId id = 0; id < by.size(); ++id) by[id] = id;

  std::vector<bool> is_outside(graph.values.size());  // by group, kept up as steps are merged
  for (ValueId id = 0; id < by.size(); ++id)
    is_outside[aliases.alias_set(id)] = aliases.is_outside(id);

  // Two results of the program stay two tensors, which a caller may write into.
  auto may_merge = [&](const Step& step, ValueId a, ValueId b) {
    if (makes_aliases(step)) return !(is_result[a] && is_result[b]);
    return !(is_outside[aliases.alias_set(a)] && is_outside[aliases.alias_set(b)]);
  };
  std::unordered_map<std::string, size_t> seen;
  std::vector<bool> dropped(graph.steps.size());
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    Step& step = graph.steps[i];
    replace_operands(step, by);
    for (Graph& region : step.regions) eliminate_common_subexpressions(region, passes_gradients);
    bool reads_written = step.given != 0;
    for_each_operand(step, [&](ValueId id) { reads_written |= aliases.is_written(id); });
    for (ValueId id : step.results) reads_written |= aliases.is_written(id);
    const bool may_have_gradient = passes_gradients && step.is_recorded;
    if (reads_written || may_have_gradient || is_random(step) || !step.regions.empty()) continue;
    auto [known, is_new] = seen.try_emplace(Key(step).take(), i);
    if (is_new) continue;
    const Step& same = graph.steps[known->second];
    bool can_merge = true;
    for (size_t k = 0; k < step.results.size(); ++k)
      can_merge &= graph.values[step.results[k]] == graph.values[same.results[k]] &&
                   may_merge(step, step.results[k], same.results[k]);
    if (!can_merge) continue;
    for (size_t k = 0; k < step.results.size(); ++k) {
      by[step.results[k]] = same.results[k];
      // What the dropped result was for, the kept one is for from here on.
      if (is_result[step.results[k]]) is_result[same.results[k]] = true;
      if (is_outside[aliases.alias_set(step.results[k])])
        is_outside[aliases.alias_set(same.results[k])] = true;
    }
    dropped[i] = true;
  }
  replace_live_outs(graph, by);
  std::vector<Step> steps;
  for (size_t i = 0; i < graph.steps.size(); ++i)
    if (!dropped[i]) steps.push_back(std::move(graph.steps[i]));
  graph.steps = std::move(steps);
}

}  // namespace tenon::graph
