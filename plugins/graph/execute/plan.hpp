// SPDX-License-Identifier: Apache-2.0
// A program made ready to run: what each step does, as flat tables, and when each value dies.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "execute/memory_report.hpp"
#include "execute/run_options.hpp"
#include "groups/group.hpp"
#include "ir/graph.hpp"

namespace tenon::graph {

class AliasAnalysis;

// Recording of gradients during a run.
enum class Gradients : uint8_t {
  kOff,     // no operator is recorded
  kReplay,  // operators are recorded that were when the program was made
};

class Plan {
 public:
  // `graph` is verified, and stays where it is as long as the plan lives.
  void build(const Graph& graph);
  // Are the operators still what they were? A plugin may have been unloaded since.
  tenon_status check_operators(tenon_err* err) const;
  // What is run together, a line for each; regions follow their step.
  std::string text() const;
  // What claimers and devices have claimed. Steps are counted from `first` on, those of regions behind their step.
  using VisitClaim = std::function<void(uint32_t begin, uint32_t end, const std::string& claimer,
                                        const std::string& problem)>;
  void for_each_claim(const VisitClaim& visit, uint32_t first = 0) const;
  MemoryUse memory() const;
  // `results` receives owned tensors; on failure it is untouched.
  tenon_status run(tenon_tensor* const* inputs, tenon_tensor** results, Gradients gradients,
                   const RunOptions& options, tenon_err* err) const;

 private:
  struct Patch {
    uint32_t argument;
    ValueId value;        // of a tensor
    const Operand* list;  // of a list; NULL: a tensor
  };
  struct Range {
    uint32_t begin = 0, count = 0;
  };
  struct Instruction {
    const Step* step;
    const tenon_op* op;
    StepKind kind;
    bool is_recorded, is_result;
    bool may_copy;  // a view of what no step writes: it may be one of a copy
    Range arguments, patches, results, dead;
    uint32_t given;  // bit i: result i is written into
    std::vector<Plan> regions;
  };
  class Run;
  // Do the step's results have memory of their own?
  static bool makes_storage(const Step& step);
  uint32_t count_steps() const;  // with those of regions
  // Bytes of results that live at once.
  int64_t peak(bool frees, bool has_groups) const;
  void use_operator(const Step& step);
  // Which views may be of a copy, where a kernel orders its result otherwise than was known?
  void find_views_of_copies(const AliasAnalysis& aliases);
  // Which results can be written into a caller's tensor by the step that makes them?
  void find_direct_results();
  // Which results may lie in memory of an input or a leaf? Constants are copied for each run.
  void find_shared_results(const AliasAnalysis& aliases);

  struct UsedOperator {
    const tenon_op_def* def;  // where the host keeps it
    const Step* step;         // the first that uses it
  };

  const Graph* graph_ = nullptr;
  std::vector<UsedOperator> operators_;
  std::vector<Instruction> instructions_;
  std::vector<GroupPtr> groups_;        // in the order of find_groups
  std::vector<tenon_value> arguments_;  // attributes in place, tensors to be filled in
  std::vector<Patch> patches_;
  std::vector<ValueId> results_;  // of all instructions, one after another
  std::vector<ValueId> dead_;     // values that are not read after an instruction
  std::vector<ValueId> owned_;    // values that a run makes
  // By result of the program: its step makes it anew, as rows, and nothing else reads it.
  std::vector<bool> is_direct_;
  // Likewise: it may show memory of an input or a leaf.
  std::vector<bool> is_shared_;
  std::vector<uint32_t> replaced_grads_;  // updates that leave nothing of the .grad of before
  std::vector<uint32_t> copied_leaves_;  // constants that a run may change: each begins with a copy
};

}  // namespace tenon::graph
