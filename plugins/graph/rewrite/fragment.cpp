// SPDX-License-Identifier: Apache-2.0
#include "rewrite/fragment.hpp"

#include <tenon/error.hpp>

#include "support/host.hpp"

namespace tenon::graph {
namespace {

// Operators are called without gradients and mixed precision, whatever the caller's thread has switched on: what a
// program's step makes follows from its arguments alone.
class PlainThread {
 public:
  PlainThread() : amp_(amp() && amp()->dtype() >= 0 ? amp() : nullptr) {
    const ErrorSink err;
    if (amp_) err.check(amp_->push(nullptr, err));
    if (autograd()) had_gradients_ = autograd()->set_enabled(0);
  }
  ~PlainThread() {
    if (autograd()) autograd()->set_enabled(had_gradients_);
    if (amp_) amp_->pop();
  }
  PlainThread(const PlainThread&) = delete;
  PlainThread& operator=(const PlainThread&) = delete;

 private:
  const tenon_amp_api* const amp_;  // NULL: the thread is in no region
  int32_t had_gradients_ = 0;
};

Tensor meta_tensor(const Type& type) {
  const ErrorSink err;
  tenon_tensor* tensor;
  err.check(host->tensor_create(TENON_DEVICE_META, type.dtype,
                                static_cast<int32_t>(type.shape.size()), type.shape.data(), &tensor,
                                err));
  return Tensor::adopt(tensor);
}

class Builder {
 public:
  Builder(const Expression& expression, const std::vector<Operand>& variables, ValueId next)
      : expression_(expression), variables_(variables), next_(next) {}

  Fragment run() {
    // Operands stand before those who use them.
    for (const Expression::Node& node : expression_.nodes) made_.push_back(make(node));
    fragment_.result = made_[expression_.root];
    return std::move(fragment_);
  }

 private:
  Operand make(const Expression::Node& node) {
    switch (node.kind) {
      case Expression::kVariable:
        return variables_[node.variable];
      case Expression::kNumber:
        return Operand::of(node.number);
      case Expression::kArithmetic:
        return Operand::of(Attribute(boxed(computed(node))));
      default:
        return call(node);
    }
  }

  double computed(const Expression::Node& node) const {
    double parts[2] = {};
    for (int i = 0; i < 2; ++i)
      if (!number_of(made_[node.operands[i]].attribute, parts[i]))
        throw Error(TENON_INVALID_ARGUMENT, "arithmetic with what is no number");
    switch (node.sign) {
      case '+':
        return parts[0] + parts[1];
      case '-':
        return parts[0] - parts[1];
      case '*':
        return parts[0] * parts[1];
      default:
        return parts[0] / parts[1];
    }
  }

  Operand call(const Expression::Node& node) {
    const tenon_op_def& def = *host->op_def(node.op);
    Step step;
    step.op = node.op;
    step.name = def.name;
    step.schema_hash = def.schema_hash;
    for (uint32_t i = 0; i < def.nparams; ++i)
      step.operands.push_back(argument(def.params[i], node.operands[i]));
    for (uint32_t i = 0; i < def.nouts; ++i) step.results.push_back(next_++);
    const ValueId first = step.results[0];
    fragment_.steps.push_back(std::move(step));
    return Operand::of(first);
  }

  Operand argument(const tenon_param_def& param, uint32_t node) const {
    if (node == Expression::kNoNode) {
      if (param.flags & TENON_PARAM_FLAG_HAS_DEFAULT)
        return Operand::of(Attribute(param.default_value));
      return Operand::of(Attribute());
    }
    const Operand& given = made_[node];
    if (given.kind != Operand::kAttribute || given.attribute.tag() == TENON_VALUE_NONE)
      return given;
    Attribute fitting = attribute_as(given.attribute, param.kind);
    if (fitting.tag() == TENON_VALUE_NONE)
      throw Error(TENON_INVALID_ARGUMENT,
                  "an argument for `" + std::string(param.name) + "` of another kind");
    return Operand::of(std::move(fitting));
  }

  const Expression& expression_;
  const std::vector<Operand>& variables_;
  ValueId next_;
  std::vector<Operand> made_;  // by node
  Fragment fragment_;
};

}  // namespace

Fragment Fragment::of(const Expression& expression, const std::vector<Operand>& variables,
                      ValueId next) {
  return Builder(expression, variables, next).run();
}

void Fragment::run(std::vector<Tensor>& tensors) const {
  const PlainThread plain;
  const ErrorSink err;
  for (const Step& step : steps) {
    std::vector<tenon_value> args;
    std::vector<std::vector<tenon_tensor*>> lists(step.operands.size());
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const Operand& operand = step.operands[i];
      for (ValueId id : operand.list) lists[i].push_back(tensors[id].get());
      args.push_back(operand.kind == Operand::kValue  ? boxed(tensors[operand.value].get())
                     : operand.kind == Operand::kList ? boxed(lists[i].data(), lists[i].size())
                                                      : operand.attribute.value());
    }
    std::vector<tenon_value> outs(step.results.size(), kNoValue);
    err.check(host->op_call(step.op, args.data(), static_cast<uint32_t>(args.size()), outs.data(),
                            static_cast<uint32_t>(outs.size()), err));
    for (size_t i = 0; i < outs.size(); ++i) {
      if (tensors.size() <= step.results[i]) tensors.resize(step.results[i] + size_t{1});
      tensors[step.results[i]] = Tensor::adopt(as_tensor(outs[i]));
    }
  }
}

std::vector<Type> Fragment::types(const Graph& graph, tenon_device_id device) const {
  const size_t first_new = graph.values.size();
  std::vector<Tensor> tensors(first_new);
  for (const Step& step : steps)
    for_each_operand(step, [&](ValueId id) {
      if (id < first_new && !tensors[id]) tensors[id] = meta_tensor(graph.values[id]);
    });
  run(tensors);
  std::vector<Type> types;
  for (size_t id = first_new; id < tensors.size(); ++id) {
    types.push_back(type_of(*tensors[id].get()));
    types.back().device = device;
  }
  return types;
}

std::vector<Type> inferred_types(const Graph& graph, Step call) {
  tenon_device_id device = host->device_host();
  for_each_operand(call, [&](ValueId id) { device = graph.values[id].device; });
  for (size_t i = 0; i < call.results.size(); ++i)
    call.results[i] = static_cast<ValueId>(graph.values.size() + i);
  Fragment fragment;
  fragment.steps.push_back(std::move(call));
  return fragment.types(graph, device);
}

}  // namespace tenon::graph
