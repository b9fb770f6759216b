// SPDX-License-Identifier: Apache-2.0
// Operators that read data on the host while they are recorded: what they find holds for every run of the program only if the
// data are the program's own constants.
#include <tenon/error.hpp>

#include <algorithm>

#include "ir/alias_analysis.hpp"
#include "record/recording.hpp"

namespace tenon::graph {

// Whether steps made the value from the frame's leaves alone, which are added to `leaves`. Groups of values that share memory stand
// for each of them, so that a write into one changes all.
bool Recording::follows_from_leaves(size_t depth, ValueId value,
                                    std::vector<ValueId>& leaves) const {
  const Frame& frame = *frames_[depth];
  const Graph& graph = frame.graph;
  const AliasAnalysis aliases = AliasAnalysis::of_recording(graph);
  std::vector<bool> wanted(graph.values.size());
  wanted[aliases.alias_set(value)] = true;
  const auto is_wanted = [&](ValueId id) { return wanted[aliases.alias_set(id)]; };
  for (auto step = graph.steps.rbegin(); step != graph.steps.rend(); ++step) {
    if (std::none_of(step->results.begin(), step->results.end(), is_wanted)) continue;
    if (!step->regions.empty()) return false;
    if (step->kind == StepKind::kCall && host->op_def(step->op)->flags & TENON_OP_RANDOM)
      return false;
    for_each_operand(*step, [&](ValueId id) { wanted[aliases.alias_set(id)] = true; });
  }
  const size_t own = graph.inputs.size() - frame.imports.size();
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (is_wanted(graph.inputs[i]) &&
        (i < own || !follows_from_leaves(depth - 1, frame.imports[i - own], leaves)))
      return false;
  for (const Leaf& leaf : graph.leaves)
    if (is_wanted(leaf.value)) leaves.push_back(leaf.value);
  return true;
}

void Recording::read_on_host(tenon_tensor* tensor, const std::string& text) {
  std::vector<ValueId> leaves;
  if (!follows_from_leaves(frames_.size() - 1, value_of(tensor), leaves))
    throw Error(TENON_UNSUPPORTED, text);
  for (ValueId leaf : leaves) host_reads_.push_back({leaf, text});
}

}  // namespace tenon::graph
