// SPDX-License-Identifier: Apache-2.0
#include "passes/freeze.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include "ir/alias_analysis.hpp"
#include "passes/editor.hpp"
#include "rewrite/fragment.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

int64_t bytes_of(const Type& type) {
  int64_t bytes = host->dtype_size(type.dtype);
  for (int64_t extent : type.shape) bytes *= extent;
  return bytes;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(TENON_FAILED_PRECONDITION,
              "freeze: " + what + "; freeze a program that reads its weights and nothing else");
}

std::vector<bool> constants_of(const Graph& graph, const Aliases& aliases) {
  std::vector<bool> constant(graph.values.size());
  for (const Leaf& leaf : graph.leaves)
    constant[leaf.value] = leaf.is_constant && leaf.tensor && !aliases.is_written(leaf.value);
  return constant;
}

// Evaluates steps while their tensors are known.
class Folding {
 public:
  explicit Folding(Graph& graph)
      : graph_(graph),
        aliases_(graph),
        known_(constants_of(graph, aliases_)),
        kept_(graph.values.size()),
        dropped_(graph.steps.size()),
        tensors_(graph.values.size()) {
    for_each_kept(graph, [&](ValueId id) { kept_[id] = true; });
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
        bytes += bytes_of(graph_.values[id]);
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
      read += bytes_of(graph_.values[id]);
      ++operands;
    });
    for (ValueId id : step.results) {
      is_known = is_known && !kept_[id] && !aliases_.is_written(id) &&
                 graph_.values[id].device != TENON_DEVICE_META;
      made += bytes_of(graph_.values[id]);
    }
    // What is made of nothing (arange, full) may depend on a size, and costs little.
    if (!is_known || operands == 0) return;
    if (step.kind == StepKind::kView) return look(step);
    constexpr uint32_t kUnknown = TENON_OP_RANDOM | TENON_OP_DATA_DEPENDENT | TENON_OP_LIST_OUTPUT;
    constexpr int64_t kSmall = int64_t{1} << 20;
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

  Graph& graph_;
  Aliases aliases_;
  std::vector<bool> known_, kept_, dropped_;  // by value, value, step
  std::vector<Tensor> tensors_;
};

// One normalisation and what makes its argument.
class NormFolding {
 public:
  explicit NormFolding(Graph& graph) : graph_(graph) {}

  // True if there was one.
  bool run(std::vector<std::string>& changes) {
    const Aliases aliases(graph_);
    constant_ = constants_of(graph_, aliases);
    std::vector<uint32_t> uses(graph_.values.size()), made_by(graph_.values.size(), kNone);
    for (uint32_t i = 0; i < graph_.steps.size(); ++i) {
      for_each_operand(graph_.steps[i], [&](ValueId id) { ++uses[id]; });
      for (size_t k = 0; k < graph_.steps[i].results.size(); ++k)
        if (!is_given(graph_.steps[i], k)) made_by[graph_.steps[i].results[k]] = i;
    }
    for_each_kept(graph_, [&](ValueId id) { ++uses[id]; });
    for (uint32_t i = 0; i < graph_.steps.size(); ++i) {
      const Step& norm = graph_.steps[i];
      if (!is_call(norm, "tenon::batch_norm_inference") || norm.operands[0].kind != Operand::kValue)
        continue;
      const ValueId x = norm.operands[0].value;
      if (made_by[x] == kNone || uses[x] != 1 || aliases.is_written(x) ||
          aliases.is_written(norm.results[0]))
        continue;
      if (!fits(graph_.steps[made_by[x]], norm)) continue;
      const std::string where = location_text(norm.location);
      fold(made_by[x], i);
      changes.push_back("batch_norms: a normalisation became part of " + layer_ +
                        (where.empty() ? "" : " at " + where));
      return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  enum : size_t { kX, kMean, kVar, kScale, kShift, kEps };  // of batch_norm_inference
  enum : size_t { kWeight = 1, kBias = 2 };                 // of the layers

  static bool is_call(const Step& step, const char* name) {
    return step.kind == StepKind::kCall && !step.given && step.name == name;
  }
  bool is_constant(const Operand& operand, int32_t dtype) const {
    return operand.kind == Operand::kValue && constant_[operand.value] &&
           graph_.values[operand.value].dtype == dtype;
  }
  bool is_constant_or_none(const Operand& operand, int32_t dtype) const {
    return is_constant(operand, dtype) ||
           (operand.kind == Operand::kAttribute && operand.attribute.tag() == TENON_VALUE_NONE);
  }

  bool fits(const Step& layer, const Step& norm) const {
    const Type& made = graph_.values[norm.results[0]];
    if (made.dtype != TENON_DTYPE_F32 && made.dtype != TENON_DTYPE_F64) return false;
    // The channels are the second axis.
    const bool is_layer = is_call(layer, "tenon::conv2d") ||
                          (is_call(layer, "tenon::linear") && made.shape.size() == 2);
    return is_layer && layer.is_recorded == norm.is_recorded &&
           graph_.values[layer.results[0]] == made &&
           is_constant(layer.operands[kWeight], made.dtype) &&
           is_constant_or_none(layer.operands[kBias], made.dtype) &&
           is_constant(norm.operands[kMean], made.dtype) &&
           is_constant(norm.operands[kVar], made.dtype) &&
           is_constant_or_none(norm.operands[kScale], made.dtype) &&
           is_constant_or_none(norm.operands[kShift], made.dtype);
  }

  // In front of the layer: the value that the operator makes.
  Operand call(const char* name, std::vector<Operand> operands) {
    std::vector<tenon_graph_operand> given;
    for (const Operand& each : operands) {
      if (each.kind == Operand::kValue)
        given.push_back({TENON_GRAPH_VALUES, 1, &each.value, kNoValue});
      else
        given.push_back({TENON_GRAPH_ATTRIBUTE, 0, nullptr, each.attribute.value()});
    }
    tenon_graph_editor editor(graph_);
    const ErrorSink err;
    ValueId made = kNoValueId;
    err.check(kEditor.insert_call(&editor, at_, host->op_find(name), given.data(),
                                  static_cast<uint32_t>(given.size()), &made, err));
    ++at_;
    return Operand::of(made);
  }

  // w (x) * k and (b - mean) * k + shift, with k = scale / sqrt(var + eps).
  void fold(uint32_t layer_index, uint32_t norm_index) {
    const Step norm = graph_.steps[norm_index];
    const Step layer = graph_.steps[layer_index];
    layer_ = layer.name.text();
    at_ = layer_index;
    Operand k =
        call("tenon::rsqrt", {call("tenon::add", {norm.operands[kVar], norm.operands[kEps]})});
    if (norm.operands[kScale].kind == Operand::kValue)
      k = call("tenon::multiply", {k, norm.operands[kScale]});
    const size_t ndim = graph_.values[layer.operands[kWeight].value].shape.size();
    std::vector<int64_t> axes;
    for (size_t axis = 1; axis < ndim; ++axis) axes.push_back(static_cast<int64_t>(axis));
    const Operand by_channel =
        call("tenon::unsqueeze", {k, Operand::of(Attribute(boxed(axes.data(), axes.size())))});
    const Operand weight = call("tenon::multiply", {layer.operands[kWeight], by_channel});
    Operand bias = layer.operands[kBias].kind == Operand::kValue
                       ? call("tenon::subtract", {layer.operands[kBias], norm.operands[kMean]})
                       : call("tenon::negative", {norm.operands[kMean]});
    bias = call("tenon::multiply", {bias, k});
    if (norm.operands[kShift].kind == Operand::kValue)
      bias = call("tenon::add", {bias, norm.operands[kShift]});
    Step& folded = graph_.steps[at_];
    folded.operands[kWeight] = weight;
    folded.operands[kBias] = bias;
    graph_.steps.erase(graph_.steps.begin() + (norm_index + at_ - layer_index));
    replace_value(graph_, norm.results[0], layer.results[0]);
  }

  Graph& graph_;
  std::vector<bool> constant_;
  std::string layer_;
  uint32_t at_ = 0;  // the layer's step
};

}  // namespace

void freeze_leaves(Graph& graph) {
  if (!graph.grads.empty()) refuse("the program sets .grad");
  const Aliases before(graph);
  for (Leaf& leaf : graph.leaves) {
    if (leaf.is_constant || !leaf.tensor) continue;
    for (const Step& step : graph.steps)
      for (size_t i = 0; i < step.results.size(); ++i)
        if (is_given(step, i) && before.group(step.results[i]) == before.group(leaf.value))
          refuse(step_text(step) + " writes into an input or a tensor from outside");
    leaf.tensor = copy_of(leaf.tensor);
    leaf.is_constant = true;
    leaf.grad = {};
    leaf.original = {};
  }
  const Aliases after(graph);
  for (const Leaf& leaf : graph.leaves)
    for (ValueId result : graph.results)
      if (leaf.is_constant && after.group(result) == after.group(leaf.value))
        refuse("the program returns a weight or a view of one");
}

void fold_constants(Graph& graph, std::vector<std::string>& changes) {
  Folding(graph).run(changes);
}

void fold_batch_norms(Graph& graph, std::vector<std::string>& changes) {
  while (NormFolding(graph).run(changes)) {
  }
}

}  // namespace tenon::graph
