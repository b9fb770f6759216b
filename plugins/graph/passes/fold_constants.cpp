// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_constants.hpp"

#include <algorithm>

#include "ir/alias_analysis.hpp"
#include "rewrite/fragment.hpp"

namespace tenon::graph {
namespace {

// Evaluates steps while their tensors are known.
class Folding {
 public:
  Folding(Graph& graph, bool folds_fills)
      : graph_(graph),
        folds_fills_(folds_fills),
        aliases_(graph),
        known_(unwritten_constants(graph, aliases_)),
        live_out_(graph.values.size()),
        dropped_(graph.steps.size()),
        tensors_(graph.values.size()) {
    for_each_live_out(graph, [&](ValueId id) { live_out_[id] = true; });
    for (const Leaf& leaf : graph.leaves)
      if (known_[leaf.value]) tensors_[leaf.value] = leaf.tensor;
  }

  void run(std::vector<std::string>& changes) {
    for (size_t i = 0; i < graph_.steps.size(); ++i) evaluate(i);
    int64_t bytes = 0;
    std::vector<bool> is_read(graph_.values.size());
    for (size_t i = 0; i < graph_.steps.size(); ++i)
      if (!dropped_[i]) for_each_operand(graph_.steps[i], [&](ValueId id) { is_read[id] = true; });
    size_t count = 0;
    std::vector<Step> steps;
    for (size_t i = 0; i < graph_.steps.size(); ++i) {
      if (!dropped_[i]) {
        steps.push_back(std::move(graph_.steps[i]));
        continue;
      }
      ++count;
      for (ValueId id : graph_.steps[i].results) {
        if (!is_read[id]) continue;
        Leaf leaf;
        leaf.value = id;
        leaf.tensor = tensors_[id];
        leaf.is_constant = true;
        graph_.leaves.push_back(std::move(leaf));
        bytes += byte_count(graph_.values[id]);
      }
    }
    graph_.steps = std::move(steps);
    if (count > 0)
      changes.push_back("fold: " + std::to_string(count) +
                        (count == 1 ? " step is" : " steps are") + " data of the program now, " +
                        std::to_string(bytes) + " bytes");
  }

 private:
  void evaluate(size_t index) {
    const Step& step = graph_.steps[index];
    bool is_known =
        step.given == 0 && (step.kind == StepKind::kCall || step.kind == StepKind::kView);
    int64_t read = 0, made = 0;
    size_t operands = 0;
    for_each_operand(step, [&](ValueId id) {
      is_known = is_known && known_[id];
      read += byte_count(graph_.values[id]);
      ++operands;
    });
    for (ValueId id : step.results) {
      is_known = is_known && !live_out_[id] && !aliases_.is_written(id) &&
                 graph_.values[id].device != TENON_DEVICE_META;
      made += byte_count(graph_.values[id]);
    }
    if (!is_known) return;
    // What is made of nothing (arange, full) may depend on a size, and costs little.
    if (operands == 0 && !folds_fills_) return;
    if (step.kind == StepKind::kView) return look(step);
    constexpr uint32_t kUnknown = TENON_OP_RANDOM | TENON_OP_DATA_DEPENDENT | TENON_OP_LIST_OUTPUT;
    constexpr int64_t kSmall = int64_t{1} << 20;
    if (operands == 0) read = kLargestFill;
    if (host->op_def(step.op)->flags & kUnknown || made > std::max(kSmall, read)) return;
    try {
      Fragment call;
      call.steps.push_back(step);
      call.run(tensors_);
    } catch (const std::exception&) {
      return;  // A run of the program will say what is wrong.
    }
    for (ValueId id : step.results) known_[id] = true;
    dropped_[index] = !makes_aliases(step);
  }

  void look(const Step& step) {
    const Tensor& base = tensors_[step.operands[0].value];
    const Type& type = graph_.values[step.results[0]];
    tenon_tensor* view = nullptr;
    const bool is_same = std::equal(step.base_strides.begin(), step.base_strides.end(),
                                    base->strides, base->strides + base->ndim);
    if (!is_same || host->tensor_view(base.get(), type.dtype,
                                      static_cast<int32_t>(type.shape.size()), type.shape.data(),
                                      step.strides.data(), step.offset, &view, nullptr) != TENON_OK)
      return;
    tensors_[step.results[0]] = Tensor::adopt(view);
    known_[step.results[0]] = true;
  }

  static constexpr int64_t kLargestFill = int64_t{1} << 28;

  Graph& graph_;
  const bool folds_fills_;
  AliasAnalysis aliases_;
  std::vector<bool> known_, live_out_, dropped_;  // by value, value, step
  std::vector<Tensor> tensors_;
};

}  // namespace

void fold_constants(Graph& graph, bool folds_fills, std::vector<std::string>& changes) {
  Folding(graph, folds_fills).run(changes);
}

}  // namespace tenon::graph
