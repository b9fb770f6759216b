// SPDX-License-Identifier: Apache-2.0
#include "rewrite/apply.hpp"

#include <tenon/error.hpp>

#include "rewrite/fragment.hpp"
#include "rewrite/match.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

// Rules that undo each other end here; no useful set of rules comes near.
size_t most_applications(const Graph& graph) { return 64 + 4 * graph.steps.size(); }

class Rewriter {
 public:
  Rewriter(Graph& graph, bool spares_recorded, std::vector<std::string>& changes)
      : graph_(graph), spares_recorded_(spares_recorded), changes_(changes) {}

  // One application, if a rule fits anywhere.
  bool apply_one(const std::vector<std::shared_ptr<const Rule>>& rules) {
    const Matcher matcher(graph_);
    for (uint32_t root = 0; root < graph_.steps.size(); ++root)
      for (const std::shared_ptr<const Rule>& rule : rules) {
        if (spares_recorded_ && graph_.steps[root].is_recorded) break;
        if (const std::optional<Match> match = matcher.find(*rule, root))
          if (replace(matcher, *rule, *match, root)) return true;
      }
    return false;
  }

 private:
  bool replace(const Matcher& matcher, const Rule& rule, const Match& match, uint32_t root) {
    const Step& last = graph_.steps[root];
    const ValueId result = last.results[0];
    const auto first_new = static_cast<ValueId>(graph_.values.size());
    Fragment fragment;
    std::vector<Type> types;
    try {
      fragment = Fragment::of(rule.to, match.variables, first_new);
      types = fragment.types(graph_, graph_.values[result].device);
    } catch (const std::exception&) {
      return false;  // operators of `to` do not take these arguments
    }
    const ValueId by = fragment.result.value;
    const bool is_new = by >= first_new;
    if ((is_new ? types[by - first_new] : graph_.values[by]) != graph_.values[result]) return false;
    // A result that shares memory with what a variable stands for is not for those who may write into it.
    const bool shares = !is_new || makes_aliases(fragment.steps.back());
    if (shares && (matcher.aliases().is_outside(result) || matcher.aliases().is_written(result)))
      return false;

    for (Step& step : fragment.steps) {
      step.location = last.location;
      step.is_recorded = last.is_recorded;
    }
    const std::string what = is_new ? fragment.steps.back().name.text() : "nothing";
    const std::string where = location_text(last.location);
    changes_.push_back(rule.name + ": " + std::to_string(match.steps.size()) +
                       (match.steps.size() == 1 ? " step became " : " steps became ") + what +
                       (where.empty() ? "" : " at " + where));
    for (Type& type : types) graph_.values.push_back(std::move(type));
    put_in_place(std::move(fragment), match, root, result, by);
    return true;
  }

  void put_in_place(Fragment fragment, const Match& match, uint32_t root, ValueId result,
                    ValueId by) {
    std::vector<bool> dropped(graph_.steps.size());
    for (uint32_t index : match.steps) dropped[index] = true;
    std::vector<Step> steps;
    for (uint32_t i = 0; i < graph_.steps.size(); ++i) {
      if (i == root)
        for (Step& step : fragment.steps) steps.push_back(std::move(step));
      if (!dropped[i]) steps.push_back(std::move(graph_.steps[i]));
    }
    graph_.steps = std::move(steps);
    replace_value(graph_, result, by);
  }

  Graph& graph_;
  bool spares_recorded_;
  std::vector<std::string>& changes_;
};

}  // namespace

void apply_rewrites(const std::vector<std::shared_ptr<const Rule>>& rules, Graph& graph,
                    bool spares_recorded, std::vector<std::string>& changes) {
  if (rules.empty()) return;
  Rewriter rewriter(graph, spares_recorded, changes);
  for (size_t left = most_applications(graph); left > 0 && rewriter.apply_one(rules);) --left;
  for (Step& step : graph.steps)
    for (Graph& region : step.regions) apply_rewrites(rules, region, spares_recorded, changes);
}

}  // namespace tenon::graph
