// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "ir/alias_analysis.hpp"
#include "passes/freeze.hpp"
#include "passes/registry.hpp"
#include "passes/rematerialize.hpp"
#include "rewrite/apply.hpp"
#include "rewrite/registry.hpp"

namespace tenon::graph {
namespace {

bool is_random(const Step& step) {
  if (step.kind == StepKind::kCall && host->op_def(step.op)->flags & TENON_OP_RANDOM) return true;
  return std::any_of(step.regions.begin(), step.regions.end(), [](const Graph& region) {
    return std::any_of(region.steps.begin(), region.steps.end(), is_random);
  });
}

// Which steps and values are needed. A write counts if any step reads the memory, before or
// after: that is more than needed, and never too little.
class Liveness {
 public:
  explicit Liveness(const Graph& graph)
      : aliases_(graph),
        live_(graph.values.size()),
        memory_(graph.values.size()),
        steps_(graph.steps.size()) {
    for_each_kept(graph, [&](ValueId id) { need(id); });
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
  void need(ValueId id) { live_[id] = memory_[aliases_.group(id)] = true; }
  bool is_needed(const Step& step) const {
    if (is_random(step)) return true;
    for (size_t i = 0; i < step.results.size(); ++i) {
      const ValueId id = step.results[i];
      if (live_[id]) return true;
      if (is_given(step, i) && (aliases_.is_outside(id) || memory_[aliases_.group(id)]))
        return true;
    }
    return false;
  }

  Aliases aliases_;
  std::vector<bool> live_, memory_, steps_;
};

void replace_operands(Step& step, const std::vector<ValueId>& by) {
  for (Operand& operand : step.operands) {
    if (operand.kind == Operand::kValue) operand.value = by[operand.value];
    for (ValueId& id : operand.list) id = by[id];
  }
}

void replace_kept(Graph& graph, const std::vector<ValueId>& by) {
  for (ValueId& id : graph.results) id = by[id];
  for (GradUpdate& update : graph.grads)
    if (update.grad != kNoValueId) update.grad = by[update.grad];
}

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

void eliminate_common_subexpressions(Graph& graph, bool passes_gradients) {
  const Aliases aliases(graph);
  std::vector<bool> is_result(graph.values.size());
  for_each_kept(graph, [&](ValueId id) { is_result[id] = true; });
  std::vector<ValueId> by(graph.values.size());
  for (ValueId id = 0; id < by.size(); ++id) by[id] = id;

  std::vector<bool> is_outside(graph.values.size());  // by group, kept up as steps are merged
  for (ValueId id = 0; id < by.size(); ++id) is_outside[aliases.group(id)] = aliases.is_outside(id);

  // Two results of the program stay two tensors, which a caller may write into.
  auto may_merge = [&](const Step& step, ValueId a, ValueId b) {
    if (makes_aliases(step)) return !(is_result[a] && is_result[b]);
    return !(is_outside[aliases.group(a)] && is_outside[aliases.group(b)]);
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
      if (is_outside[aliases.group(step.results[k])])
        is_outside[aliases.group(same.results[k])] = true;
    }
    dropped[i] = true;
  }
  replace_kept(graph, by);
  std::vector<Step> steps;
  for (size_t i = 0; i < graph.steps.size(); ++i)
    if (!dropped[i]) steps.push_back(std::move(graph.steps[i]));
  graph.steps = std::move(steps);
}

void eliminate_copies(Graph& graph, bool passes_gradients) {
  std::vector<uint32_t> uses(graph.values.size());
  std::vector<bool> is_fresh(graph.values.size());  // new memory, made by an operator
  for_each_kept(graph, [&](ValueId id) { ++uses[id]; });
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
  replace_kept(graph, by);
  graph.steps = std::move(steps);
}

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

namespace {

// A level that lets results differ lets gradients differ, too.
void run_rewrites(std::string_view choice, Graph& graph, bool passes_gradients,
                  std::vector<std::string>& changes) {
  const RuleChoice chosen = choose_rules(choice);
  const bool is_exact = chosen.numerics == TENON_GRAPH_EXACT;
  apply_rewrites(chosen.rules, graph, passes_gradients && is_exact, changes);
  set_numerics(graph, chosen.numerics);
}

bool run_recompute(std::string_view bytes, Graph& graph, bool passes_gradients,
                   std::vector<std::string>& changes) {
  int64_t budget = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), budget);
  if (error != std::errc() || end != bytes.data() + bytes.size() || budget < 1)
    throw Error(TENON_INVALID_ARGUMENT,
                "program: expected recompute=BYTES with a number of at least 1, got '" +
                    std::string(bytes) + "'");
  const bool may_have_gradient =
      passes_gradients && std::any_of(graph.steps.begin(), graph.steps.end(),
                                      [](const Step& step) { return step.is_recorded; });
  if (!may_have_gradient) return recompute(graph, budget, changes);
  changes.push_back(
      "recompute: gradients may pass through the program, whose history would keep all results; "
      "nothing is "
      "made again");
  return false;
}

void run_plugin_pass(std::string_view name, Graph& graph, std::vector<std::string>& changes) {
  const size_t before = graph.steps.size();
  run_pass(name, graph);
  changes.push_back("pass " + std::string(name) + ": of " + std::to_string(before) + " steps " +
                    std::to_string(graph.steps.size()) + " are left");
}

}  // namespace

bool run_passes(std::string_view names, Graph& graph, bool passes_gradients,
                std::vector<std::string>& changes) {
  constexpr std::string_view kRewritesName = "rewrites", kRecompute = "recompute=";
  bool needs_apart = false;
  while (!names.empty()) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    if (name == "dce")
      eliminate_dead_code(graph);
    else if (name == "cse")
      eliminate_common_subexpressions(graph, passes_gradients);
    else if (name == "copies")
      eliminate_copies(graph, passes_gradients);
    else if (name == "views")
      hoist_views(graph);
    else if (name == "freeze")
      freeze_leaves(graph);
    else if (name == "fold")
      fold_constants(graph, changes);
    else if (name == "batch_norms")
      fold_batch_norms(graph, changes);
    else if (const size_t end = name.find_first_of("=!"); name.substr(0, end) == kRewritesName)
      run_rewrites(name.substr(kRewritesName.size()), graph, passes_gradients, changes);
    else if (name.starts_with(kRecompute))
      needs_apart |=
          run_recompute(name.substr(kRecompute.size()), graph, passes_gradients, changes);
    else if (has_pass(name))
      run_plugin_pass(name, graph, changes);
    else
      throw Error(TENON_INVALID_ARGUMENT, "program: expected passes among " + pass_names() +
                                              ", got '" + std::string(name) + "'");
  }
  return needs_apart;
}

}  // namespace tenon::graph
