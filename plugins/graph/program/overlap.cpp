// SPDX-License-Identifier: Apache-2.0
#include "program/overlap.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "ir/alias_analysis.hpp"

namespace tenon::graph {
namespace {

// The bytes that a tensor's elements lie in, for any strides.
struct Span {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool overlaps(const Span& other) const { return begin < other.end && other.begin < end; }
};

Span span_of(const tenon_tensor& tensor) {
  if (tensor.numel == 0 || tensor.device == TENON_DEVICE_META) return {};
  const auto size = static_cast<int64_t>(host->dtype_size(tensor.dtype));
  int64_t low = 0, high = 0;
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t reach = (tensor.shape[i] - 1) * tensor.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const char* first = static_cast<const char*>(tensor.data) + tensor.byte_offset;
  return {first + low * size, first + (high + 1) * size};
}

const Leaf* leaf_of(const Graph& graph, ValueId value) {
  for (const Leaf& leaf : graph.leaves)
    if (leaf.value == value) return &leaf;
  return nullptr;
}

// By value: the input or leaf whose memory it is, itself if it is one or made by a step.
std::vector<ValueId> roots_of(const Graph& graph, ValueId unknown) {
  std::vector<ValueId> roots(graph.values.size());
  for (ValueId id = 0; id < roots.size(); ++id) roots[id] = id;
  for (const Step& step : graph.steps) {
    if (!makes_aliases(step)) continue;
    ValueId root = unknown;
    if (step.regions.empty() && !step.operands.empty() && step.operands[0].kind == Operand::kValue)
      root = roots[step.operands[0].value];
    for (size_t i = 0; i < step.results.size(); ++i)
      if (!is_given(step, i)) roots[step.results[i]] = root;
  }
  return roots;
}

// Inputs and leaves into which steps write.
std::vector<ValueId> written_of(const Graph& graph) {
  const std::vector<ValueId> roots = roots_of(graph, kNoValueId);
  std::vector<ValueId> written;
  for (const Step& step : graph.steps)
    for (size_t i = 0; i < step.results.size(); ++i)
      if (is_given(step, i)) written.push_back(roots[step.results[i]]);
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

}  // namespace

OverlapAnalysis::OverlapAnalysis(const Graph& graph)
    : graph_(graph), roots_(roots_of(graph, kUnknown)) {}

bool OverlapAnalysis::may_overlap(ValueId written, ValueId value) {
  const ValueId a = roots_[written], b = roots_[value];
  if (a == b || a == kUnknown || b == kUnknown) return true;
  const Leaf *first = leaf_of(graph_, a), *second = leaf_of(graph_, b);
  if (first && second && first->tensor && second->tensor)
    return span_of(*first->tensor.get()).overlaps(span_of(*second->tensor.get()));
  relies_on_inputs_ = true;
  return false;
}

void check_inputs_disjoint(const Graph& graph, tenon_tensor* const* inputs) {
  for (ValueId written : written_of(graph)) {
    const Leaf* leaf = leaf_of(graph, written);
    const auto position = std::find(graph.inputs.begin(), graph.inputs.end(), written);
    const bool is_input = position != graph.inputs.end();
    if (!is_input && !(leaf && leaf->tensor)) continue;
    const Span span =
        span_of(is_input ? *inputs[position - graph.inputs.begin()] : *leaf->tensor.get());
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      if (graph.inputs[i] != written && span.overlaps(span_of(*inputs[i])))
        throw Error(TENON_FAILED_PRECONDITION,
                    "program: input " + std::to_string(i) +
                        " shares memory with a tensor that the program writes, and results that "
                        "are made again "
                        "would differ; give a clone(), or optimize without a memory_budget");
  }
}

void check_leaves_disjoint(const Graph& graph, const Graph& changed) {
  for (ValueId written : written_of(graph)) {
    const Leaf *before = leaf_of(graph, written), *after = leaf_of(changed, written);
    if (!after || !after->tensor) continue;
    const Span span = span_of(*after->tensor.get());
    for (size_t i = 0; i < changed.leaves.size(); ++i) {
      const Leaf &old = graph.leaves[i], &other = changed.leaves[i];
      if (other.value == written || !other.tensor || !span.overlaps(span_of(*other.tensor.get())))
        continue;
      const bool did = before && before->tensor && old.tensor &&
                       span_of(*before->tensor.get()).overlaps(span_of(*old.tensor.get()));
      if (!did)
        throw Error(TENON_FAILED_PRECONDITION,
                    "program: leaf " + std::to_string(i) +
                        " would share memory with a leaf that the program writes, and results that "
                        "are made again "
                        "would differ; bind the program from before optimize(memory_budget=...)");
    }
  }
}

}  // namespace tenon::graph
