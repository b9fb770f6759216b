// SPDX-License-Identifier: Apache-2.0
// A group of elementwise steps that runs as one kernel, on devices that compile source (tenon/services/fusion.h). What
// passes between the steps stays in registers; the bits of the results are those of single steps.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ir/graph.hpp"

namespace tenon::graph {

class FusedGroup {
 public:
  // The longest group that begins at the step `first` and lies before `limit`. `is_needed_after(value, step)` says whether a value is read after
  // a step, or when all have run.
  template <class IsNeededAfter>
  static std::optional<FusedGroup> find(const Graph& graph, uint32_t first, uint32_t limit,
                                        const IsNeededAfter& is_needed_after) {
    FusedGroup group(graph, first, limit);
    uint32_t end = first;
    while (group.may_add(end)) {
      ++end;
      group.take(end, [&](ValueId value) { return is_needed_after(value, end - 1); });
    }
    group.keep_best();
    return group.end_ >= first + 2 ? std::optional<FusedGroup>(std::move(group)) : std::nullopt;
  }

  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  // Is the result of one of its steps a tensor that others need?
  bool makes_tensor(ValueId value) const;

  // Runs all steps: `values` receives owned tensors for the results that others need. False, with nothing done, where
  // the steps have to run one by one: the device compiles nothing, a layer wants to see the calls, a tensor is not
  // dense, a step's kernel is not one of those that can be joined.
  bool run(std::vector<tenon_tensor*>& values, bool* is_broken) const;

  // False: its steps run one by one, at least as long as plugins and layers stay as they are.
  bool runs_as_one() const;
  // "steps 3 to 7: one kernel over float32[64, 128] cuda:0; 3 results of 4 stay in registers (96 KiB)", or that they
  // run one by one, and why.
  std::string text() const;

 private:
  // What the kernel reads and writes, if the group ends at some step.
  struct Interface {
    std::vector<ValueId> operands, results;
  };
  // Decided at the first run or question, and anew when plugins came or went.
  struct Decision {
    uint64_t generation = 0;
    int64_t program = 0;  // 0: the steps run one by one, and would again with these layers on
    uint32_t layers = 0;
    std::string reason;  // of 0
    const tenon_op* op = nullptr;
    std::vector<Tensor> stand_ins;  // 0-d tensors of the dtypes of the steps' results
  };
  struct Prepared {
    std::mutex mutex;
    std::shared_ptr<const Decision> decision;
  };

  FusedGroup(const Graph& graph, uint32_t first, uint32_t limit)
      : graph_(&graph),
        begin_(first),
        end_(first),
        limit_(limit),
        prepared_(std::make_unique<Prepared>()) {}

  bool may_add(uint32_t step);
  template <class IsNeeded>
  void take(uint32_t end, const IsNeeded& is_needed) {
    Interface seen;
    seen.operands = read_by(end);
    for (ValueId value : made_by(end))
      if (is_needed(value)) seen.results.push_back(value);
    if (fits(seen)) best_ = std::move(seen), best_end_ = end;
  }
  void keep_best() { end_ = best_end_; }
  bool fits(const Interface& seen) const;
  std::vector<ValueId> made_by(uint32_t end) const;
  std::vector<ValueId> read_by(uint32_t end) const;
  void prepare(Decision& out) const;
  std::shared_ptr<const Decision> decide() const;
  // Does an enabled layer want to see a call that takes a tensor with its bit, or the first call?
  bool is_watched(const std::vector<tenon_tensor*>& values, const Decision& decision) const;

  const Graph* graph_;
  uint32_t begin_, end_, limit_, best_end_ = 0;
  Interface best_;
  int32_t kind_ = -1;  // of the steps' arithmetic
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace tenon::graph
