// SPDX-License-Identifier: Apache-2.0
// A group of steps that a device runs as one: its plugin has a compiler of its own (abi.h,
// tenon_subgraph_api), was offered the steps and has claimed them. Or a claimer has, that the user chose.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "groups/group.hpp"
#include "support/claimer.hpp"

namespace tenon::graph {

class DelegatedGroup final : public Group {
 public:
  // All that claimers and devices claim of the steps.
  static std::vector<GroupPtr> find(const GroupContext& context, uint32_t begin, uint32_t end);

  bool makes_tensor(ValueId value) const override;
  // Declines where it was not seen yet how the steps run, a layer wants to see the calls, a tensor
  // lies in another way than it did, or the plugin has no executable after all.
  Outcome run(std::vector<tenon_tensor*>& values) const override;
  bool runs_as_one() const override;
  // "steps 3 to 7: one executable of acme:0; 4 of 5 results stay in it"
  std::string describe() const override;
  std::string claimer(std::string* problem) const override;

  // The first run goes step by step and is looked at, unless the host has claimed the steps for itself. Results that
  // share memory or are not row-major would look otherwise if an executable made them.
  std::unique_ptr<Observation> observe(const std::vector<tenon_tensor*>& values) const override;

 private:
  class Trial;
  struct Executable;
  using Strides = std::vector<std::vector<int64_t>>;  // of each input; none: row-major
  // What is known of the group, of which there is one for all runs.
  struct State {
    std::mutex mutex;
    bool is_tried = false;
    std::string reason;  // why kernels run the steps; "": they do not
    Strides strides;     // of the trial
    std::shared_ptr<const Executable> executable;
    std::string failure;  // of the last run that failed
  };

  DelegatedGroup(const Graph& graph, uint32_t begin, uint32_t end, std::vector<ValueId> results,
                 const Constants& constants, ClaimerPtr claimer);
  static void add(const GroupContext& context, uint32_t begin, uint32_t end, const ClaimerPtr&,
                  std::vector<GroupPtr>& groups);
  static void find_claimed(const GroupContext& context, uint32_t begin, uint32_t end,
                           tenon_device_id device, size_t claimer, std::vector<GroupPtr>& groups);
  std::string compiler_text() const;
  bool needs_no_trial(const std::vector<tenon_tensor*>& values) const;
  bool is_watched(const std::vector<tenon_tensor*>& values) const;
  std::shared_ptr<const Executable> executable(const std::vector<tenon_tensor*>& values) const;
  std::shared_ptr<const Executable> create() const;
  std::vector<uint32_t> versions_of_constants() const;
  bool lies_as_in_trial(const tenon_tensor& tensor, size_t input) const;
  void end_trial(Strides strides, const std::vector<tenon_tensor*>& values) const;

  ClaimerPtr claimer_;  // NULL: the device itself
  tenon_device_id device_;
  std::vector<ValueId> inputs_, results_;
  Constants constants_;
  mutable State state_;
};

}  // namespace tenon::graph
