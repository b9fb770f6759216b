// SPDX-License-Identifier: Apache-2.0
// What the finders of joined steps ask about the values of a sub-graph.
#pragma once

#include <tenon/abi.h>

#include <algorithm>
#include <unordered_map>

namespace tenon::cpu {

// Later hosts know more of a step than this plugin: steps lie as far apart as the host says.
inline const tenon_subgraph_step& step_at(const tenon_subgraph& graph, uint32_t index) {
  const char* first = reinterpret_cast<const char*>(graph.steps);
  return *reinterpret_cast<const tenon_subgraph_step*>(first + size_t{index} * graph.step_size);
}

inline const tenon_tensor* tensor_of(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<const tenon_tensor*>(value.v.p) : nullptr;
}

inline bool have_one_shape(const tenon_tensor* a, const tenon_tensor* b) {
  return a->ndim == b->ndim && std::equal(a->shape, a->shape + a->ndim, b->shape);
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
    return uses_[value];
  }

 private:
  void count_uses() {
    for (uint32_t i = 0; i < graph_.nsteps; ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      for (uint32_t k = 0; k < step.nargs; ++k) {
        const tenon_value& value = step.args[k];
        if (const tenon_tensor* tensor = tensor_of(value)) ++uses_[tensor];
        if (value.tag != TENON_VALUE_TENSORS) continue;
        auto* const* list = static_cast<tenon_tensor* const*>(value.v.p);
        for (uint64_t j = 0; j < value.aux; ++j) ++uses_[list[j]];
      }
    }
    for (uint32_t i = 0; i < graph_.noutputs; ++i) ++uses_[graph_.outputs[i]];
  }

  const tenon_subgraph& graph_;
  std::unordered_map<const tenon_tensor*, const tenon_tensor*> constants_;
  std::unordered_map<const tenon_tensor*, uint32_t> uses_;
};

}  // namespace tenon::cpu
