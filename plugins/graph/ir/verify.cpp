// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "ir/alias_analysis.hpp"
#include "ir/names.hpp"

namespace tenon::graph {
namespace {

constexpr int kMaxDepth = 32;  // of regions inside regions
constexpr uint32_t kMaxOutputs = 8;

bool is_real_number(int32_t tag) {
  return tag == TENON_VALUE_INT || tag == TENON_VALUE_FLOAT || tag == TENON_VALUE_BOOL;
}

// The tag that a parameter of this kind takes as an attribute; -1: several, or none.
int32_t attribute_tag(int32_t kind) {
  switch (kind) {
    case TENON_PARAM_INT:
      return TENON_VALUE_INT;
    case TENON_PARAM_FLOAT:
      return TENON_VALUE_FLOAT;
    case TENON_PARAM_BOOL:
      return TENON_VALUE_BOOL;
    case TENON_PARAM_STRING:
      return TENON_VALUE_STRING;
    case TENON_PARAM_DTYPE:
      return TENON_VALUE_DTYPE;
    case TENON_PARAM_DEVICE:
      return TENON_VALUE_DEVICE;
    case TENON_PARAM_INTS:
      return TENON_VALUE_INTS;
    case TENON_PARAM_FLOATS:
      return TENON_VALUE_FLOATS;
    default:
      return -1;
  }
}

bool fits(const tenon_param_def& param, const Operand& operand) {
  if (operand.kind == Operand::kValue) return param.kind == TENON_PARAM_TENSOR;
  if (operand.kind == Operand::kList) return param.kind == TENON_PARAM_TENSORS;
  const int32_t tag = operand.attribute.tag();
  if (tag == TENON_VALUE_NONE)
    return param.flags & TENON_PARAM_FLAG_OPTIONAL || (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT &&
                                                       param.default_value.tag == TENON_VALUE_NONE);
  if (param.kind == TENON_PARAM_SCALAR || param.kind == TENON_PARAM_TENSOR)
    return is_real_number(tag) || tag == TENON_VALUE_COMPLEX;
  return tag == attribute_tag(param.kind);
}

class Verifier {
 public:
  Verifier(const Graph& graph, int depth) : graph_(graph), depth_(depth) {
    defined_.resize(graph.values.size());
  }

  void run() {
    if (depth_ > kMaxDepth)
      throw Error(TENON_INVALID_ARGUMENT, "program: expected at most " + std::to_string(kMaxDepth) +
                                              " regions inside one another, got more");
    for (const Type& type : graph_.values) check_type(type);
    for (ValueId input : graph_.inputs) define(input, "an input");
    for (const Leaf& leaf : graph_.leaves) define(leaf.value, "a leaf");
    for (index_ = 0; index_ < graph_.steps.size(); ++index_) check_step(graph_.steps[index_]);
    for (const GradUpdate& update : graph_.grads) check_grad(update);
    for (ValueId result : graph_.results)
      if (!is_defined(result))
        fail("the program returns value " + std::to_string(result) + ", which no step makes");
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(TENON_INVALID_ARGUMENT, "program: " + problem);
  }
  [[noreturn]] void fail_step(const Step& step, const std::string& problem) const {
    fail("step " + std::to_string(index_) + ", " + step_text(step) + ": " + problem);
  }
  bool is_defined(ValueId id) const { return id < defined_.size() && defined_[id]; }
  void define(ValueId id, const char* what) {
    if (id >= defined_.size() || defined_[id])
      fail(std::string(what) + " defines value " + std::to_string(id) +
           (id < defined_.size() ? ", which is defined already" : ", which has no type"));
    defined_[id] = true;
  }
  void check_type(const Type& type) const {
    bool is_valid =
        type.dtype >= 0 && type.dtype < TENON_DTYPE_COUNT && type.shape.size() <= TENON_MAX_NDIM;
    int64_t numel = 1;
    for (int64_t extent : type.shape)
      is_valid = is_valid && extent >= 0 && !__builtin_mul_overflow(numel, extent, &numel);
    if (!is_valid) fail("a value has a type that no tensor can have: " + type_text(type));
  }

  void check_grad(const GradUpdate& update) const {
    auto is_leaf = [&](const Leaf& leaf) { return leaf.value == update.tensor; };
    const bool is_outside =
        std::count(graph_.inputs.begin(), graph_.inputs.end(), update.tensor) > 0 ||
        std::any_of(graph_.leaves.begin(), graph_.leaves.end(), is_leaf);
    if (depth_ > 0 || !is_outside) fail("it sets .grad of a value that is no input and no leaf");
    if (update.grad == kNoValueId) return;
    if (!is_defined(update.grad) || graph_.values[update.grad] != graph_.values[update.tensor])
      fail("it sets .grad of value " + std::to_string(update.tensor) +
           " to one of another type, or to none that a step makes");
  }

  void check_step(const Step& step) {
    for_each_operand(step, [&](ValueId id) {
      if (!is_defined(id))
        fail_step(step,
                  "expected arguments that earlier steps made, got value " + std::to_string(id));
    });
    switch (step.kind) {
      case StepKind::kCall:
        check_call(step);
        break;
      case StepKind::kView:
        check_view(step);
        break;
      case StepKind::kDetach:
        expect(step, step.operands.size() == 1 && is_value(step, 0) && step.results.size() == 1,
               "one value and one result");
        break;
      default:
        check_regions(step);
    }
    if (step.kind != StepKind::kCall) expect(step, step.given == 0, "new results");
    for (size_t i = 0; i < step.results.size(); ++i) {
      if (!is_given(step, i))
        define(step.results[i], "a step");
      else if (!is_defined(step.results[i]))
        fail_step(step, "it writes into value " + std::to_string(step.results[i]) +
                            ", which nothing made");
    }
  }

  void check_call(const Step& step) const {
    if (!step.op) fail("step " + std::to_string(index_) + " names no operator");
    const tenon_op_def& def = *host->op_def(step.op);
    if (def.schema_hash != step.schema_hash)
      fail_step(step, "the program was made with another signature of the operator than " +
                          std::string(def.schema ? def.schema : def.name) +
                          "; export it again with this version");
    if (def.flags & (TENON_OP_LIST_OUTPUT | TENON_OP_DATA_DEPENDENT))
      fail_step(step, "results whose number or shape depends on data are not supported");
    if (step.operands.size() != def.nparams || step.results.size() != def.nouts)
      fail_step(step, "expected " + std::to_string(def.nparams) + " arguments and " +
                          std::to_string(def.nouts) + " results, got " +
                          std::to_string(step.operands.size()) + " and " +
                          std::to_string(step.results.size()));
    for (uint32_t i = 0; i < def.nparams; ++i)
      if (!fits(def.params[i], step.operands[i]))
        fail_step(step, "argument `" + std::string(def.params[i].name) +
                            "` is of another kind than in " +
                            std::string(def.schema ? def.schema : def.name));
  }

  void check_view(const Step& step) const {
    expect(step,
           step.operands.size() == 1 && is_value(step, 0) && step.results.size() == 1 &&
               step.results[0] < graph_.values.size(),
           "one value and one result");
    const Type& base = graph_.values[step.operands[0].value];
    const Type& view = graph_.values[step.results[0]];
    expect(
        step,
        step.strides.size() == view.shape.size() && step.base_strides.size() == base.shape.size(),
        "a stride for each axis");
    expect(step, view.dtype == base.dtype && view.device == base.device,
           "a view of its base's dtype and device");
    // So that no address in between overflows; the host checks the bounds.
    constexpr int64_t kLimit = int64_t{1} << 40;
    for (int64_t stride : step.strides)
      expect(step, stride > -kLimit && stride < kLimit, "strides below 2^40");
    expect(step, step.offset > -kLimit && step.offset < kLimit, "an offset below 2^40");
  }

  void check_regions(const Step& step) const {
    for (const Operand& operand : step.operands)
      expect(step, operand.kind == Operand::kValue, "values as arguments");
    const size_t count = step.operands.size();
    const size_t regions = step.kind == StepKind::kScan ? 1 : 2;
    const bool is_cond = step.kind == StepKind::kCond;
    expect(step, step.regions.size() == regions, "its regions");
    expect(step, !is_cond || count >= 1, "a predicate");
    expect(step, uint64_t{step.carried} + step.scanned <= count, "its carried and scanned values");
    for (size_t i = 0; i < regions; ++i) {
      const Graph& region = step.regions[i];
      expect(step, region.leaves.empty(), "regions without leaves");
      expect(step, region.inputs.size() == (is_cond ? count - 1 : count),
             "as many inputs of each region as it has arguments");
      size_t returned = step.results.size();
      if (step.kind == StepKind::kWhile) returned = i == 0 ? 1 : step.carried;
      expect(step, region.results.size() == returned, "as many results of each region as it has");
      Verifier(region, depth_ + 1).run();
      check_writes(step, region);
    }
    if (step.kind == StepKind::kWhile)
      expect(step, step.results.size() == step.carried, "a result for each carried value");
    if (step.kind == StepKind::kScan)
      expect(step, step.results.size() >= step.carried, "a result for each carried value");
  }

  // What a region gets belongs to its surroundings.
  void check_writes(const Step& step, const Graph& region) const {
    if (region.inputs.empty()) return;
    if (writes_into_inputs(region))
      fail_step(step, "a region writes into what it was given; expected new results");
  }

  bool is_value(const Step& step, size_t i) const {
    return step.operands[i].kind == Operand::kValue;
  }
  void expect(const Step& step, bool holds, const char* what) const {
    if (!holds) fail_step(step, std::string("expected ") + what);
  }

  const Graph& graph_;
  int depth_;
  size_t index_ = 0;
  std::vector<bool> defined_;
};

}  // namespace

void verify(const Graph& graph) {
  Verifier(graph, 0).run();
  check_names(graph);
}

}  // namespace tenon::graph
