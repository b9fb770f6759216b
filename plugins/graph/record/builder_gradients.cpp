// SPDX-License-Identifier: Apache-2.0
// Gradients in a program that is built: the steps between some values and a result, from the last
// one to the first, each by the rule of its operator. What rules call are steps like all others, so
// that gradients have gradients.
#include <tenon/services/gradient_rules.h>
#include <tenon/error.hpp>

#include <unordered_map>
#include <vector>

#include "record/builder.hpp"
#include "record/building.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

// Each order of a derivative has some times the steps of the one before: files that ask for many end here.
constexpr size_t kMaxSteps = size_t{1} << 18;

bool is_complex(int32_t dtype) { return dtype == TENON_DTYPE_C64 || dtype == TENON_DTYPE_C128; }

// Has it derivatives? Integers and truth values are constants.
bool is_differentiable(int32_t dtype) {
  return dtype >= TENON_DTYPE_F8E4M3 && dtype <= TENON_DTYPE_C128;
}

[[noreturn]] void refuse(const Step& step, const std::string& problem) {
  throw Error(TENON_UNSUPPORTED,
              "builder: gradients do not pass through " + step_text(step) + ", " + problem);
}

Tensor call(const char* name, std::vector<tenon_value> args) {
  const tenon_op* op = host->op_find(name);
  if (!op)
    throw Error(TENON_NOT_FOUND, "builder: gradients need the operator `" + std::string(name) +
                                     "`; load the plugin standard_ops");
  const ErrorSink err;
  tenon_value result = kNoValue;
  err.check(host->op_call(op, args.data(), static_cast<uint32_t>(args.size()), &result, 1, err));
  return Tensor::adopt(as_tensor(result));
}

Tensor filled(const Tensor& like, double number) {
  return call("full", {boxed(like->shape, static_cast<uint32_t>(like->ndim)), boxed(number),
                       boxed_dtype(like->dtype)});
}

// Rules give gradients as broadcasting and promotion made them.
Tensor fitted(Tensor gradient, const Tensor& like) {
  std::vector<int64_t> axes;
  const int32_t extra = gradient->ndim - like->ndim;
  bool fits = extra >= 0;
  for (int32_t axis = 0; fits && axis < gradient->ndim; ++axis) {
    if (axis >= extra && gradient->shape[axis] == like->shape[axis - extra]) continue;
    fits = axis < extra || like->shape[axis - extra] == 1;
    axes.push_back(axis);
  }
  if (!fits)
    throw Error(TENON_INVALID_ARGUMENT, "expected a gradient of the shape of " +
                                            type_text(type_of(*like.get())) +
                                            ", or of one that broadcasting made of it, got " +
                                            type_text(type_of(*gradient.get())));
  if (!axes.empty())
    gradient = call("sum", {boxed(gradient.get()), boxed(axes.data(), axes.size()), boxed(true)});
  if (extra != 0)
    gradient = call("reshape",
                    {boxed(gradient.get()), boxed(like->shape, static_cast<uint32_t>(like->ndim))});
  if (gradient->dtype != like->dtype)
    gradient = call("cast", {boxed(gradient.get()), boxed_dtype(like->dtype)});
  return gradient;
}

const tenon_gradient_rules_api& rules() {
  const auto* api = static_cast<const tenon_gradient_rules_api*>(
      host->service_find(TENON_GRADIENT_RULES_SERVICE, TENON_GRADIENT_RULES_VERSION));
  if (!api)
    throw Error(TENON_UNAVAILABLE,
                "builder: gradients need the plugin `autograd`, which was not loaded");
  return *api;
}

class Backward {
 public:
  using Ids = std::unordered_map<const tenon_tensor*, ValueId>;
  Backward(const Graph& graph, const std::vector<Tensor>& tensors, const Ids& ids)
      : graph_(graph), tensors_(tensors), ids_(ids) {}

  void run(ValueId result, const std::vector<ValueId>& sources) {
    const size_t count = graph_.steps.size();
    grow();
    for (ValueId source : sources) depends_[source] = true;
    follow(0, count);
    if (!depends_[result]) return;
    gradients_[result] = filled(tensors_[result], 1.0);
    for (size_t i = count; i-- > 0;) pass(i);
  }

  Tensor of(ValueId source) const {
    return gradients_[source] ? gradients_[source] : filled(tensors_[source], 0.0);
  }

 private:
  void grow() {
    depends_.resize(graph_.values.size());
    gradients_.resize(graph_.values.size());
  }

  // Which results of steps [begin, end) depend on the sources, as numbers that have derivatives.
  void follow(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const Step& step = graph_.steps[i];
      bool reads = false;
      for_each_operand(step, [&](ValueId value) { reads = reads || depends_[value]; });
      for (size_t k = 0; k < step.results.size(); ++k) {
        const ValueId result = step.results[k];
        if (is_given(step, k) && (reads || depends_[result]))
          refuse(step, "which writes into memory that exists");
        if (reads && is_differentiable(graph_.values[result].dtype)) depends_[result] = true;
      }
    }
  }

  // Steps are added meanwhile: nothing of this one is borrowed.
  void pass(size_t index) {
    const Step step = graph_.steps[index];
    std::vector<tenon_tensor*> arrived;
    bool has_arrived = false, is_complex_call = false;
    for (ValueId result : step.results) {
      tenon_tensor* gradient = depends_[result] ? gradients_[result].get() : nullptr;
      arrived.push_back(gradient);
      has_arrived = has_arrived || gradient;
      is_complex_call = is_complex_call || is_complex(graph_.values[result].dtype);
    }
    if (!has_arrived) return;
    if (step.kind == StepKind::kDetach) return;
    if (step.kind != StepKind::kCall)
      refuse(step, "a branch, loop or window whose rule is not an operator's");
    const tenon_op_def& def = *host->op_def(step.op);
    const tenon_grad_rule* rule = rules().rule(step.op);
    if (!rule && def.flags & TENON_OP_COMPOSITE) return pass_parts(step, arrived);
    if (!rule && def.flags & TENON_OP_NO_GRAD) return;
    if (!rule) refuse(step, "an operator that has no rule for its gradient");

    uint64_t needs = 0;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      if (!(rule->diff_args >> i & 1)) continue;
      const auto counts = [&](ValueId value) {
        is_complex_call = is_complex_call || is_complex(graph_.values[value].dtype);
        if (depends_[value]) needs |= uint64_t{1} << i;
      };
      if (step.operands[i].kind == Operand::kValue) counts(step.operands[i].value);
      for (ValueId value : step.operands[i].list) counts(value);
    }
    if (!needs) return;
    if (is_complex_call && !(rule->flags & TENON_GRAD_RULE_COMPLEX))
      refuse(step, "whose rule is that of real numbers, got complex ones");
    call_rule(*rule, step, arrived, needs);
  }

  // A composite that is one step, as a kernel serves it, and has no rule: what it is made of has some.
  void pass_parts(const Step& step, const std::vector<tenon_tensor*>& arrived) {
    const size_t begin = graph_.steps.size();
    std::vector<std::vector<tenon_tensor*>> lists;
    std::vector<tenon_value> args = arguments(step, ~uint64_t{0}, lists);
    std::vector<tenon_value> outs(step.results.size(), kNoValue);
    const ErrorSink err;
    err.check(host->op_call(step.op, args.data(), static_cast<uint32_t>(args.size()), outs.data(),
                            static_cast<uint32_t>(outs.size()), err));
    const size_t end = graph_.steps.size();
    if (end > begin && graph_.steps[begin].op == step.op)
      refuse(step, "an operator that has no rule for its gradient");
    grow();
    follow(begin, end);
    for (size_t k = 0; k < outs.size(); ++k) {
      const Tensor out = Tensor::adopt(as_tensor(outs[k]));
      const ValueId part = ids_.at(out.get());
      if (arrived[k] && depends_[part]) add(part, Tensor::borrow(arrived[k]));
    }
    for (size_t i = end; i-- > begin;) pass(i);
  }

  // Those of `read` alone, and attributes.
  std::vector<tenon_value> arguments(const Step& step, uint64_t read,
                                     std::vector<std::vector<tenon_tensor*>>& lists) const {
    std::vector<tenon_value> args(step.operands.size(), kNoValue);
    lists.resize(step.operands.size());
    for (size_t i = 0; i < args.size(); ++i) {
      const Operand& operand = step.operands[i];
      if (operand.kind == Operand::kAttribute) args[i] = operand.attribute.value();
      if (operand.kind == Operand::kAttribute || !(read >> i & 1)) continue;
      for (ValueId value : operand.list) lists[i].push_back(tensors_[value].get());
      args[i] = operand.kind == Operand::kValue ? boxed(tensors_[operand.value].get())
                                                : boxed(lists[i].data(), lists[i].size());
    }
    return args;
  }

  void call_rule(const tenon_grad_rule& rule, const Step& step,
                 const std::vector<tenon_tensor*>& arrived, uint64_t needs) {
    const auto nargs = static_cast<uint32_t>(step.operands.size());
    std::vector<std::vector<tenon_tensor*>> lists;
    const std::vector<tenon_value> args =
        arguments(step, rule.saves_args | rule.shapes_args, lists);
    std::vector<tenon_tensor*> outs;
    for (size_t k = 0; k < step.results.size(); ++k)
      outs.push_back(rule.saves_outs >> k & 1 ? tensors_[step.results[k]].get() : nullptr);
    std::vector<tenon_value> made(nargs, kNoValue);
    const ErrorSink err;
    const tenon_status status =
        rules().run(&rule, args.data(), nargs, outs.data(), arrived.data(),
                    static_cast<uint32_t>(outs.size()), needs, made.data(), err);
    std::vector<std::pair<ValueId, Tensor>> delivered;
    for (uint32_t i = 0; i < nargs; ++i) {
      const Operand& operand = step.operands[i];
      if (tenon_tensor* gradient = as_tensor(made[i]))
        delivered.emplace_back(operand.value, Tensor::adopt(gradient));
      if (made[i].tag != TENON_VALUE_TENSORS) continue;
      auto** list = static_cast<tenon_tensor**>(made[i].v.p);
      for (uint32_t k = 0; k < made[i].aux; ++k)
        if (list[k] && k < operand.list.size())
          delivered.emplace_back(operand.list[k], Tensor::borrow(list[k]));
      host->list_release(list, made[i].aux);
    }
    if (status != TENON_OK)
      throw Error(status, "gradient of " + step_text(step) + ": " + host->err_text(err));
    for (auto& [value, gradient] : delivered) {
      if (!depends_[value]) continue;
      try {
        add(value, std::move(gradient));
      } catch (const Error& error) {
        throw Error(error.code(), "gradient of " + step_text(step) + ": " + error.what());
      }
    }
  }

  void add(ValueId value, Tensor gradient) {
    gradient = fitted(std::move(gradient), tensors_[value]);
    Tensor& sum = gradients_[value];
    sum = sum ? call("add", {boxed(sum.get()), boxed(gradient.get())}) : std::move(gradient);
  }

  const Graph& graph_;
  const std::vector<Tensor>& tensors_;  // by value; more are added meanwhile
  const Ids& ids_;
  std::vector<bool> depends_;
  std::vector<Tensor> gradients_;
};

}  // namespace

std::vector<Tensor> Builder::gradients(const tenon_tensor* result, tenon_tensor* const* sources,
                                       uint32_t nsources) {
  const ValueId from = value_of(result, "gradients");
  std::vector<ValueId> ids;
  for (uint32_t i = 0; i < nsources; ++i) {
    ids.push_back(value_of(sources[i], "gradients"));
    if (!is_differentiable(sources[i]->dtype))
      throw Error(TENON_TYPE_MISMATCH,
                  "builder: gradients: expected values of floating dtypes, got " +
                      std::string(host->dtype_name(sources[i]->dtype)));
  }
  if (!is_differentiable(result->dtype) || is_complex(result->dtype))
    throw Error(TENON_TYPE_MISMATCH,
                "builder: gradients: expected a result of a real floating dtype, got " +
                    std::string(host->dtype_name(result->dtype)));
  if (graph_.steps.size() > kMaxSteps)
    throw Error(TENON_UNSUPPORTED, "builder: gradients: expected a program of at most " +
                                       std::to_string(kMaxSteps) + " steps, got " +
                                       std::to_string(graph_.steps.size()));
  is_recorded_ = autograd() && autograd()->enabled();
  const Building scope(this);
  Backward backward(graph_, values_, by_tensor_);
  backward.run(from, ids);
  std::vector<Tensor> gradients;
  for (ValueId id : ids) gradients.push_back(backward.of(id));
  return gradients;
}

}  // namespace tenon::graph
