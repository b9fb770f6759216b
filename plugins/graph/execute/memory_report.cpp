// SPDX-License-Identifier: Apache-2.0
#include "execute/memory_report.hpp"

#include <algorithm>
#include <utility>

#include "execute/plan.hpp"
#include "groups/elementwise.hpp"
#include "ir/alias_analysis.hpp"

namespace tenon::graph {
namespace {

// Storages that live, told apart by the group of values that may share one.
class Storages {
 public:
  explicit Storages(const Graph& graph)
      : graph_(graph), aliases_(graph), held_(graph.values.size()), users_(graph.values.size()) {}

  // A handle of the value's storage; a new storage if `is_new`.
  void add(ValueId value, bool is_new) {
    const ValueId storage = aliases_.alias_set(value);
    ++users_[storage];
    if (!is_new) return;
    const int64_t bytes = byte_count(graph_.values[value]);
    held_[storage] += bytes;
    note(bytes);
  }
  // The handle goes. The storage does with the last one, unless others see it.
  void remove(ValueId value) {
    const ValueId storage = aliases_.alias_set(value);
    if (--users_[storage] == 0 && !aliases_.is_outside(value))
      live_ -= std::exchange(held_[storage], 0);
  }
  void note(int64_t bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  // What is there for as long as one step runs.
  void note_within(int64_t bytes) { peak_ = std::max(peak_, live_ + bytes); }
  int64_t peak() const { return peak_; }

 private:
  const Graph& graph_;
  const AliasAnalysis aliases_;
  std::vector<int64_t> held_;    // bytes of each storage
  std::vector<uint32_t> users_;  // values that are alive and have it
  int64_t live_ = 0, peak_ = 0;
};

}  // namespace

int64_t Plan::peak(bool frees, bool has_groups) const {
  Storages storages(*graph_);
  for (uint32_t index : copied_leaves_)
    storages.note(byte_count(graph_->values[graph_->leaves[index].value]));
  auto group = groups_.begin();
  for (uint32_t i = 0; i < instructions_.size();) {
    // The steps that run together, which free what they free when all have run.
    uint32_t end = i + 1;
    while (group != groups_.end() && (*group)->begin() == i && !(*group)->runs_as_one()) ++group;
    auto is_made = [](ValueId) { return true; };
    auto add_results = [&](const auto& makes) {
      for (uint32_t k = i; k < end; ++k) {
        const Step& step = *instructions_[k].step;
        for (size_t r = 0; r < step.results.size(); ++r)
          if (!is_given(step, r))
            storages.add(step.results[r], makes(step.results[r]) && makes_storage(step));
      }
    };
    if (group != groups_.end() && (*group)->begin() == i) {
      const Group& steps = **group++;
      if (has_groups) {
        end = steps.end();
        add_results([&](ValueId value) { return steps.makes_tensor(value); });
      } else {
        add_results(is_made);
      }
    } else {
      int64_t within = 0;  // one region runs at a time
      for (const Plan& region : instructions_[i].regions)
        within = std::max(within, region.peak(frees, has_groups));
      storages.note_within(within);
      add_results(is_made);
    }
    while (group != groups_.end() && (*group)->begin() < end) ++group;
    for (; i < end; ++i)
      for (uint32_t k = 0; frees && k < instructions_[i].dead.count; ++k)
        storages.remove(dead_[instructions_[i].dead.begin + k]);
  }
  return storages.peak();
}

MemoryUse Plan::memory() const {
  return {.kept = peak(false, false), .stepwise = peak(true, false), .planned = peak(true, true)};
}

bool Plan::makes_storage(const Step& step) { return !step.regions.empty() || !makes_aliases(step); }

}  // namespace tenon::graph
