// SPDX-License-Identifier: Apache-2.0
// A group of elementwise steps that runs as one kernel, on devices that compile source (tenon/services/fusion.h). What
// passes between the steps stays in registers; the bits of the results are those of single steps.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "groups/group.hpp"

namespace tenon::graph {

class FusedKernel final : public Group {
 public:
  // Groups of at least two steps, each as long as one kernel can be.
  static std::vector<GroupPtr> find(const GroupContext& context, uint32_t begin, uint32_t end);

  bool makes_tensor(ValueId value) const override;
  // Declines where the device compiles nothing, a layer wants to see the calls, a tensor is not dense, or a step's kernel is
  // not one of those that can be joined.
  Outcome run(std::vector<tenon_tensor*>& values) const override;
  bool runs_as_one() const override;
  // "steps 3 to 7: one kernel over float32[64, 128] cuda:0; 3 of 4 results stay in registers (96 KiB)", or that they run
  // one by one, and why.
  std::string describe() const override;

 private:
  // What the kernel reads and writes, if the group ends at some step.
  struct Interface {
    std::vector<ValueId> operands, results;
  };
  // Made at the first run or question, and anew when plugins came or went.
  struct Decision {
    uint64_t generation = 0;
    int64_t program = 0;      // 0: the steps run one by one, and would again with these layers on
    uint32_t layers = 0;      // of this thread that want to see every call
    bool is_for_now = false;  // there was no memory to find out
    std::string reason;       // of 0
    const tenon_op* op = nullptr;
    std::vector<Tensor> placeholders;  // 0-d tensors of the dtypes of the steps' results
  };

  FusedKernel(const Graph& graph, uint32_t first, uint32_t limit)
      : Group(graph, first, first), limit_(limit) {}

  bool may_add(uint32_t step);
  void extend(const GroupContext& context, uint32_t end);
  bool fits(const Interface& seen) const;
  std::vector<ValueId> made_by(uint32_t end) const;
  std::vector<ValueId> read_by(uint32_t end) const;
  void prepare(Decision& out) const;
  std::shared_ptr<const Decision> decide() const;
  // Does an enabled layer want to see a call that takes a tensor with its bit, or the first call?
  bool is_watched(const std::vector<tenon_tensor*>& values, const Decision& decision) const;

  uint32_t limit_;
  Interface interface_;
  int32_t kind_ = -1;  // of the steps' arithmetic
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Decision> decision_;  // the last one
};

}  // namespace tenon::graph
