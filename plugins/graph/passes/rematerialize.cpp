// SPDX-License-Identifier: Apache-2.0
#include "passes/rematerialize.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "groups/elementwise.hpp"
#include "ir/alias_analysis.hpp"
#include "program/overlap.hpp"

namespace tenon::graph {
namespace {

// That run again for one result; longer chains gain little beside what they cost.
constexpr size_t kMaxSteps = 8;

constexpr int64_t kNever = -1, kForEver = std::numeric_limits<int64_t>::max();

// Of all memory that steps make: when it is made, when it is read, and what lives at once.
class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph)
      : aliases(graph),
        begin(graph.values.size(), kNever),
        end(graph.values.size(), kNever),
        bytes(graph.values.size()),
        uses(graph.values.size()),
        live(graph.steps.size()) {
    const auto count = static_cast<int64_t>(graph.steps.size());
    for (int64_t i = 0; i < count; ++i) {
      const Step& step = graph.steps[static_cast<size_t>(i)];
      for_each_operand(step, [&](ValueId id) { use(id, i); });
      for (size_t k = 0; k < step.results.size(); ++k) {
        const ValueId id = step.results[k];
        use(id, i);
        if (is_given(step, k) || (makes_aliases(step) && step.regions.empty())) continue;
        begin[aliases.alias_set(id)] = i;
        bytes[aliases.alias_set(id)] += byte_count(graph.values[id]);
      }
    }
    for_each_live_out(graph, [&](ValueId id) { end[aliases.alias_set(id)] = kForEver; });
    for (ValueId group = 0; group < begin.size(); ++group) {
      if (begin[group] == kNever) continue;  // the caller's
      for (int64_t i = begin[group]; i < count && i <= end[group]; ++i)
        live[static_cast<size_t>(i)] += bytes[group];
    }
  }

  // The step at which most lives; what then lives.
  int64_t worst() const { return std::max_element(live.begin(), live.end()) - live.begin(); }
  int64_t peak() const { return live.empty() ? 0 : *std::max_element(live.begin(), live.end()); }

  const AliasAnalysis aliases;
  // By group: the step that makes it, the last one that reads it, and its bytes.
  std::vector<int64_t> begin, end, bytes;
  std::vector<std::vector<int64_t>> uses;  // steps, in order
  std::vector<int64_t> live;               // bytes, by step

 private:
  void use(ValueId id, int64_t step) {
    const ValueId group = aliases.alias_set(id);
    end[group] = std::max(end[group], step);
    if (uses[group].empty() || uses[group].back() != step) uses[group].push_back(step);
  }
};

// What it costs to run a step again, in bytes moved. Products do many operations for each.
double cost_of(const Graph& graph, const Step& step) {
  const uint32_t flags = host->op_def(step.op)->flags;
  const double factor = flags & TENON_OP_AMP_LOW ? 64 : flags & TENON_OP_AMP_HIGH ? 4 : 1;
  int64_t bytes = 0;
  for_each_operand(step, [&](ValueId id) { bytes += byte_count(graph.values[id]); });
  for (ValueId id : step.results) bytes += byte_count(graph.values[id]);
  return factor * static_cast<double>(bytes + 1);
}

class Recompute {
 public:
  Recompute(Graph& graph, int64_t budget) : graph_(graph), budget_(budget) {}

  bool run(std::vector<std::string>& changes) {
    const int64_t before = Lifetimes(graph_).peak();
    size_t again = 0;
    while (apply_one()) ++again;
    const int64_t after = Lifetimes(graph_).peak();
    if (again)
      changes.push_back("recompute: " + std::to_string(again) +
                        " results are made again; they take at most " + kib(after) +
                        " at once instead of " + kib(before));
    if (after > budget_)
      changes.push_back("recompute: the budget of " + kib(budget_) + " cannot be met: " + reason());
    return relies_on_inputs_;
  }

 private:
  struct Candidate {
    ValueId group;
    int64_t reader;  // the first step behind the peak that reads it
    std::set<int64_t>
        again;  // steps that run again for it: its own, and those whose results are gone by then
    int64_t gain = 0;  // bytes at the peak
    double cost = 0;
  };

  static std::string kib(int64_t bytes) { return std::to_string(bytes / 1024) + " KiB"; }

  // The best result to drop at the step where most lives. False: the budget is met, or none helps.
  bool apply_one() {
    const Lifetimes lifetimes(graph_);
    if (lifetimes.peak() <= budget_) return false;
    const int64_t at = lifetimes.worst();
    OverlapAnalysis overlap(graph_);
    std::vector<Candidate> candidates;
    for (ValueId group = 0; group < lifetimes.begin.size(); ++group)
      if (std::optional<Candidate> found = candidate(lifetimes, overlap, group, at))
        candidates.push_back(*found);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return static_cast<double>(a.gain) * b.cost > static_cast<double>(b.gain) * a.cost;
    });
    for (const Candidate& each : candidates) {
      Graph changed = graph_;
      make_again(changed, each);
      const Lifetimes then(changed);
      // It may not only move the peak to where its operands live longer.
      const bool helps = then.peak() < lifetimes.peak() ||
                         (then.peak() == lifetimes.peak() && total(then) < total(lifetimes));
      if (!helps) continue;
      relies_on_inputs_ = relies_on_inputs_ || overlap.relies_on_inputs();
      graph_ = std::move(changed);
      return true;
    }
    return false;
  }

  static int64_t total(const Lifetimes& lifetimes) {
    int64_t sum = 0;
    for (int64_t each : lifetimes.live) sum += each;
    return sum;
  }

  std::optional<Candidate> candidate(const Lifetimes& lifetimes, OverlapAnalysis& overlap,
                                     ValueId group, int64_t at) const {
    const int64_t begin = lifetimes.begin[group], end = lifetimes.end[group];
    if (begin == kNever || begin >= at || end <= at || end == kForEver ||
        lifetimes.aliases.is_outside(group) || lifetimes.aliases.is_written(group))
      return std::nullopt;
    const std::vector<int64_t>& uses = lifetimes.uses[group];
    if (std::binary_search(uses.begin(), uses.end(), at)) return std::nullopt;
    Candidate found{group, *std::upper_bound(uses.begin(), uses.end(), at), {}};
    found.gain = lifetimes.bytes[group];
    if (!add_step(lifetimes, overlap, begin, at, found) || found.gain <= 0) return std::nullopt;
    return found;
  }

  // Adds a step that runs again, and those that make what it reads and is gone by then. False: it cannot.
  bool add_step(const Lifetimes& lifetimes, OverlapAnalysis& overlap, int64_t index, int64_t at,
                Candidate& found) const {
    const Step& step = graph_.steps[static_cast<size_t>(index)];
    if (found.again.contains(index)) return true;
    if (found.again.size() == kMaxSteps || !may_run_again(step)) return false;
    found.again.insert(index);
    found.cost += cost_of(graph_, step);
    bool can = true;
    for_each_operand(step, [&](ValueId id) {
      const ValueId operand = lifetimes.aliases.alias_set(id);
      can = can && !is_written_between(lifetimes, overlap, id, index, found.reader);
      // Inputs, leaves and constants are there for as long as the program runs.
      const bool stays = lifetimes.begin[operand] == kNever || lifetimes.end[operand] >= at;
      if (!can || lifetimes.aliases.is_outside(operand) || stays) return;
      // What was written since it was made would be lost if it were made again.
      const bool is_written = lifetimes.aliases.is_written(operand);
      Candidate with = found;
      if (!is_written && add_step(lifetimes, overlap, lifetimes.begin[operand], at, with))
        found = std::move(with);
      else
        found.gain -= lifetimes.bytes[operand];  // it has to live until then
    });
    return can;
  }

  static bool may_run_again(const Step& step) {
    if (step.kind != StepKind::kCall || step.given) return false;
    constexpr uint32_t kNot = TENON_OP_RANDOM | TENON_OP_VIEW | TENON_OP_DATA_DEPENDENT;
    // A composite may hide an operator that draws random numbers.
    const uint32_t flags = host->op_def(step.op)->flags;
    return !(flags & kNot) && !(flags & TENON_OP_COMPOSITE);
  }

  bool is_written_between(const Lifetimes& lifetimes, OverlapAnalysis& overlap, ValueId value,
                          int64_t begin, int64_t end) const {
    const ValueId group = lifetimes.aliases.alias_set(value);
    if (!lifetimes.aliases.is_written(value)) return false;
    for (int64_t i = begin; i < end; ++i) {
      const Step& step = graph_.steps[static_cast<size_t>(i)];
      if (!step.regions.empty()) return true;  // what they write is not looked at
      for (size_t k = 0; k < step.results.size(); ++k) {
        const ValueId written = step.results[k];
        if (!is_given(step, k) || lifetimes.aliases.alias_set(written) != group) continue;
        if (lifetimes.begin[group] != kNever || overlap.may_overlap(written, value)) return true;
      }
    }
    return false;
  }

  // Copies of the steps, and of views on their results, in front of the reader; the steps from there on read them.
  static void make_again(Graph& graph, const Candidate& chosen) {
    std::map<ValueId, ValueId> copies;
    std::vector<Step> inserted;
    const auto reader = static_cast<size_t>(chosen.reader);
    for (auto i = static_cast<size_t>(*chosen.again.begin()); i < reader; ++i) {
      const Step& step = graph.steps[i];
      bool is_part = chosen.again.contains(static_cast<int64_t>(i));
      if (!is_part && makes_aliases(step) && step.regions.empty())
        for_each_operand(step, [&](ValueId id) { is_part = is_part || copies.contains(id); });
      if (!is_part) continue;
      Step copy = step;
      exchange(copy, copies);
      for (ValueId& id : copy.results) {
        const ValueId fresh = graph.add_value(Type(graph.values[id]));
        copies[id] = fresh;
        id = fresh;
      }
      inserted.push_back(std::move(copy));
    }
    for (size_t i = reader; i < graph.steps.size(); ++i) exchange(graph.steps[i], copies);
    drop_unread(graph, inserted, reader);
    graph.steps.insert(graph.steps.begin() + static_cast<std::ptrdiff_t>(reader),
                       std::make_move_iterator(inserted.begin()),
                       std::make_move_iterator(inserted.end()));
  }

  static void exchange(Step& step, const std::map<ValueId, ValueId>& copies) {
    auto by = [&](ValueId& id) {
      if (auto found = copies.find(id); found != copies.end()) id = found->second;
    };
    for (Operand& operand : step.operands) {
      if (operand.kind == Operand::kValue) by(operand.value);
      for (ValueId& id : operand.list) by(id);
    }
  }

  // Views that no later step looks at.
  static void drop_unread(const Graph& graph, std::vector<Step>& inserted, size_t reader) {
    std::set<ValueId> read;
    for (size_t i = reader; i < graph.steps.size(); ++i)
      for_each_operand(graph.steps[i], [&](ValueId id) { read.insert(id); });
    for (size_t i = inserted.size(); i-- > 0;) {
      const bool is_read = std::any_of(inserted[i].results.begin(), inserted[i].results.end(),
                                       [&](ValueId id) { return read.contains(id); });
      if (is_read)
        for_each_operand(inserted[i], [&](ValueId id) { read.insert(id); });
      else
        inserted.erase(inserted.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  // What lives at the worst step and cannot be dropped, in words.
  std::string reason() const {
    const Lifetimes lifetimes(graph_);
    const int64_t at = lifetimes.worst();
    int64_t kept = 0, used = 0, other = 0;
    for (ValueId group = 0; group < lifetimes.begin.size(); ++group) {
      const int64_t begin = lifetimes.begin[group], end = lifetimes.end[group];
      if (begin == kNever || begin > at || end < at) continue;
      const std::vector<int64_t>& uses = lifetimes.uses[group];
      if (std::binary_search(uses.begin(), uses.end(), at))
        used += lifetimes.bytes[group];
      else if (end == kForEver)
        kept += lifetimes.bytes[group];
      else
        other += lifetimes.bytes[group];
    }
    const Step& step = graph_.steps[static_cast<size_t>(at)];
    return step_text(step) + " reads and makes " + kib(used) + "; " + kib(kept) +
           " are results of the program, and " + kib(other) +
           " would need as much memory to be made again, or cannot be";
  }

  Graph& graph_;
  const int64_t budget_;
  bool relies_on_inputs_ = false;
};

}  // namespace

bool rematerialize(Graph& graph, int64_t budget, std::vector<std::string>& changes) {
  return !graph.steps.empty() && Recompute(graph, budget).run(changes);
}

}  // namespace tenon::graph
