// SPDX-License-Identifier: Apache-2.0
// What a compiler of sub-graphs (tenon_subgraph_api) asks of the steps and values that it is offered.
#pragma once

#include <tenon/abi.h>
#include <tenon/unbox.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace tenon {

// Later hosts know more of a step than the plugin: steps lie as far apart as the host says.
inline const tenon_subgraph_step& step_at(const tenon_subgraph& graph, uint32_t index) {
  const char* first = reinterpret_cast<const char*>(graph.steps);
  return *reinterpret_cast<const tenon_subgraph_step*>(first + size_t{index} * graph.step_size);
}

// visit(tensor) for a tensor that is an argument, or for each one of a list.
template <class Visit>
void for_each_tensor(const tenon_value& argument, Visit&& visit) {
  if (const tenon_tensor* tensor = tenon_arg_tensor(&argument)) visit(*tensor);
  const tenon_tensor* const* list = tenon_arg_tensors(&argument);
  for (uint64_t i = 0; list && i < argument.aux; ++i) visit(*list[i]);
}

class SubgraphValues {
 public:
  explicit SubgraphValues(const tenon_subgraph& graph) : graph_(graph) {
    for (uint32_t i = 0; i < graph.ninputs; ++i)
      if (graph.constants[i]) constants_[graph.inputs[i]] = graph.constants[i];
  }
  const tenon_subgraph& graph() const { return graph_; }
  bool has_constants() const { return !constants_.empty(); }

  // The tensor on the device that is always this value; NULL: values are not told apart.
  const tenon_tensor* constant(const tenon_tensor* value) const {
    const auto found = constants_.find(value);
    return found == constants_.end() ? nullptr : found->second;
  }

  // How often steps read a value; a result of the sub-graph is read once more than they do.
  uint32_t uses(const tenon_tensor* value) {
    if (uses_.empty()) count_uses();
    const auto found = uses_.find(value);
    return found == uses_.end() ? 0 : found->second;
  }

 private:
  void count_uses() {
    for (uint32_t i = 0; i < graph_.nsteps; ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      for (uint32_t k = 0; k < step.nargs; ++k)
        for_each_tensor(step.args[k], [&](const tenon_tensor& tensor) { ++uses_[&tensor]; });
    }
    for (uint32_t i = 0; i < graph_.noutputs; ++i) ++uses_[graph_.outputs[i]];
  }

  const tenon_subgraph& graph_;
  std::unordered_map<const tenon_tensor*, const tenon_tensor*> constants_;
  std::unordered_map<const tenon_tensor*, uint32_t> uses_;
};

}  // namespace tenon
