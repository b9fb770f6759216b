// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_batch_norms.hpp"

#include <tenon/error.hpp>

#include <string>

#include "ir/alias_analysis.hpp"
#include "passes/editor.hpp"

namespace tenon::graph {
namespace {

// One normalisation and what makes its argument.
class NormFolding {
 public:
  explicit NormFolding(Graph& graph) : graph_(graph) {}

  // True if there was one.
  bool run(std::vector<std::string>& changes) {
    const AliasAnalysis aliases(graph_);
    constant_ = unwritten_constants(graph_, aliases);
    std::vector<uint32_t> uses(graph_.values.size()), made_by(graph_.values.size(), kNone);
    for (uint32_t i = 0; i < graph_.steps.size(); ++i) {
      for_each_operand(graph_.steps[i], [&](ValueId id) { ++uses[id]; });
      for (size_t k = 0; k < graph_.steps[i].results.size(); ++k)
        if (!is_given(graph_.steps[i], k)) made_by[graph_.steps[i].results[k]] = i;
    }
    for_each_live_out(graph_, [&](ValueId id) { ++uses[id]; });
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

void fold_batch_norms(Graph& graph, std::vector<std::string>& changes) {
  while (NormFolding(graph).run(changes)) {
  }
}

}  // namespace tenon::graph
