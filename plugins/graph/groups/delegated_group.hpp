// SPDX-License-Identifier: Apache-2.0
// A group of steps that a device runs as one: its plugin has a compiler of its own (abi.h, tenon_subgraph_api), was
// offered the steps and has claimed them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

class ClaimedGroup {
 public:
  using IsNeededAfter = std::function<bool(ValueId, uint32_t step)>;
  using Constants = std::unordered_map<ValueId, tenon_tensor*>;

  // All that devices claim of the program, in the order of the steps.
  static std::vector<ClaimedGroup> find_all(const Graph& graph,
                                            const IsNeededAfter& is_needed_after,
                                            const Constants& constants);

  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  // Is the result of one of its steps a tensor that others need?
  bool makes_tensor(ValueId value) const;

  // Runs all steps: `values` receives owned tensors for the results that others need. False, with nothing done, where
  // the steps have to run one by one: it was not seen yet how they run, a layer wants to see the calls, a tensor lies
  // in another way than it did, the plugin has no executable after all.
  bool run(std::vector<tenon_tensor*>& values, bool* is_broken) const;

  // The first run goes step by step and is looked at, from its begin to its end. Results that share memory or are not
  // row-major would look otherwise if an executable made them.
  struct Trial {
    const ClaimedGroup* group;
    std::vector<std::vector<int64_t>> strides;  // of inputs that are not row-major
  };
  std::optional<Trial> begin_trial(
      const std::vector<tenon_tensor*>& values) const;  // none: there was one
  void end_trial(Trial trial, const std::vector<tenon_tensor*>& values) const;

  bool is_given_up() const;  // it never runs as one
  // "steps 3 to 7: one executable of acme:0; 4 of 5 results stay in it"
  std::string text() const;

 private:
  struct Executable;
  // What is known of the group, of which there is one for all runs.
  struct State {
    std::mutex mutex;
    bool is_tried = false;
    std::string reason;                         // why kernels run the steps; "": they do not
    std::vector<std::vector<int64_t>> strides;  // of the trial
    std::shared_ptr<const Executable> executable;
    std::string failure;  // of the last run that failed
  };

  ClaimedGroup(const Graph& graph, uint32_t begin, uint32_t end, std::vector<ValueId> results,
               const Constants& constants);
  bool is_watched(const std::vector<tenon_tensor*>& values) const;
  std::shared_ptr<const Executable> executable() const;
  std::shared_ptr<const Executable> create() const;
  std::vector<uint32_t> versions_of_constants() const;
  bool lies_as_in_trial(const tenon_tensor& tensor, size_t input) const;

  const Graph* graph_;
  uint32_t begin_, end_;
  tenon_device_id device_;
  std::vector<ValueId> inputs_, results_;
  Constants constants_;
  std::unique_ptr<State> state_ = std::make_unique<State>();
};

}  // namespace tenon::graph
