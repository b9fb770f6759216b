// SPDX-License-Identifier: Apache-2.0
#include "evaluate.hpp"

#include <tenon/ops/expression.hpp>

namespace tenon::interpreter {
namespace {

using codegen::Role;
using codegen::Value;
using codegen::ValueType;

constexpr uint32_t kMaxArguments = 32, kMaxResults = 8;

bool is_number(const tenon_value& value) { return expression::is_number(TensorArg(value)); }

// In the form that a parameter takes where the boxed one is not.
void adapt(Item& item, ValueType::Base param) {
  const tenon_value value = boxed(item);
  if (param == ValueType::Tensors && value.tag == TENON_VALUE_NONE) item = TensorList().value();
  if (param != ValueType::Floats) return;
  if (value.tag == TENON_VALUE_INTS || value.tag == TENON_VALUE_INT)
    item = expression::floats(expression::arg_ints(value));
}

Item adopt_results(const Code& code, tenon_value* outs) {
  if (code.type == ValueType::Tensors) {
    auto** array = static_cast<tenon_tensor**>(outs[0].v.p);
    std::vector<Tensor> tensors;
    for (uint32_t i = 0; i < outs[0].aux; ++i) tensors.push_back(Tensor::borrow(array[i]));
    host->list_release(array, outs[0].aux);
    return tensors;
  }
  if (code.results == 1) return Tensor::adopt(static_cast<tenon_tensor*>(outs[0].v.p));
  std::vector<Tensor> tensors(code.results);
  for (uint32_t i = 0; i < code.results; ++i)
    tensors[i] = Tensor::adopt(static_cast<tenon_tensor*>(outs[i].v.p));
  return tensors;
}

ScalarArg folded(Fold fold, const tenon_value& a, const tenon_value& b) {
  switch (fold) {
    case Fold::kNegative:
      return expression::negative(a);
    case Fold::kAdd:
      return expression::sum(a, b);
    case Fold::kSubtract:
      return expression::difference(a, b);
    case Fold::kMultiply:
      return expression::product(a, b);
    default:
      return expression::quotient(a, b);
  }
}

}  // namespace

void Evaluation::run_steps(const Program& program) {
  steps_.reserve(program.steps.size());  // later steps borrow from earlier ones
  for (const Code& step : program.steps) steps_.push_back(evaluate(step));
}

Tensor Evaluation::tensor(const Item& item) {
  if (auto* tensor = std::get_if<Tensor>(&item)) return *tensor;
  return expression::tensor(scope_, boxed(item));
}

std::vector<Tensor> Evaluation::tensors(const Item& item) {
  if (auto* tensors = std::get_if<std::vector<Tensor>>(&item)) return *tensors;
  return expression::tensors(expression::arg_tensors(boxed(item)));
}

Item Evaluation::evaluate(const Code& code) {
  Depth depth(scope_, 1);
  if (!depth || !scope_.ok()) return none();
  switch (code.form) {
    case Value::Constant:
      return code.constant;
    case Value::Variable:
      return variable(code);
    case Value::Arithmetic:
      return arithmetic(code);
    case Value::HostCall: {
      std::vector<Item> arguments;
      for (const Code& child : code.children) arguments.push_back(evaluate(child));
      return scope_.ok() ? code.function(scope_, arguments) : none();
    }
    case Value::OperatorCall:
      return operator_call(code);
    case Value::Conditional: {
      const Item condition = evaluate(code.children[0]);
      if (!scope_.ok()) return none();
      return evaluate(code.children[boxed(condition).v.i ? 1 : 2]);
    }
    case Value::List:
      return list(code);
    case Value::Meta:
      return fact(code);
    case Value::Element:
      return element(code);
    case Value::ResultOf: {
      const Item record = evaluate(code.children[0]);
      const TensorList results = expression::arg_tensors(boxed(record));
      const auto index = static_cast<uint64_t>(code.index);
      return index < results.size() ? Tensor::borrow(results[index]) : Tensor();
    }
    case Value::IsNone:
      return is_none(code);
  }
  return none();
}

Item Evaluation::variable(const Code& code) {
  switch (code.role) {
    case Role::Argument:
      return around_.args[code.index];
    case Role::Output:
      return TensorArg(around_.outs[code.index]).value();
    case Role::Gradient: {
      if (tenon_tensor* gradient = around_.grad_outs[code.index])
        return TensorArg(gradient).value();
      // Of results that feed one gradient together; the rule keeps these.
      static Callee& zeros = *new Callee("tenon::zeros_like", 0);
      tenon_value arg = TensorArg(around_.outs[code.index]).value(), out = kNoValue;
      if (!zeros.run(scope_, &arg, 1, &out, 1)) return none();
      return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
    }
    case Role::Step:
      return boxed(steps_[static_cast<size_t>(code.index)]);
  }
  return none();
}

Item Evaluation::arithmetic(const Code& code) {
  Item left = evaluate(code.children[0]);
  if (!scope_.ok()) return none();
  if (code.children.size() == 1) return apply(scope_, code.sign, code.type, left);
  if (code.sign == Sign::kAnd || code.sign == Sign::kOr)
    if ((boxed(left).v.i != 0) == (code.sign == Sign::kOr)) return left;
  Item right = evaluate(code.children[1]);
  if (!scope_.ok()) return none();
  return apply(scope_, code.sign, code.type, left, right);
}

Item Evaluation::operator_call(const Code& code) {
  Item held[kMaxArguments];
  tenon_value args[kMaxArguments], outs[kMaxResults];
  const tenon_op_def* def = nullptr;
  const auto nargs = static_cast<uint32_t>(code.bound.size());
  bool numbers = code.fold != Fold::kNone;
  for (uint32_t i = 0; i < nargs; ++i) {
    const int child = code.bound[i];
    if (child < 0) {
      const tenon_op* op = def ? nullptr : code.callee->find(scope_);
      if (op) def = host->op_def(op);
      if (!scope_.ok()) return none();
      args[i] = def->params[i].default_value;
      continue;
    }
    held[i] = evaluate(code.children[static_cast<size_t>(child)]);
    adapt(held[i], code.params[i]);
    args[i] = boxed(held[i]);
    numbers = numbers && is_number(args[i]);
  }
  if (!scope_.ok()) return none();
  // Numbers stay numbers, so that they do not take part in promotion.
  if (numbers) return folded(code.fold, args[0], args[nargs > 1 ? 1 : 0]).value();
  for (uint32_t i = 0; i < code.results; ++i) outs[i] = kNoValue;
  Depth depth(scope_, 20);
  if (!depth || !code.callee->run(scope_, args, nargs, outs, code.results)) return none();
  return adopt_results(code, outs);
}

Item Evaluation::list(const Code& code) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<Tensor> tensors;
  for (const Code& child : code.children) {
    const Item item = evaluate(child);
    if (!scope_.ok()) return none();
    const tenon_value value = boxed(item);
    if (code.type == ValueType::Tensors)
      tensors.push_back(tensor(item));
    else if (code.type == ValueType::Floats)
      floats.push_back(ScalarArg(value).number());
    else
      ints.push_back(value.v.i);
  }
  if (code.type == ValueType::Tensors) return tensors;
  if (code.type == ValueType::Floats) return floats;
  return ints;
}

Item Evaluation::fact(const Code& code) {
  // In gradients, arguments of which only the shape is kept live on the meta device.
  if (code.fact == Code::Fact::kDevice && around_.grad_outs)
    return call::boxed_device(expression::device_of_any(around_.grad_outs, around_.nouts));
  const Item item = evaluate(code.children[0]);
  const TensorArg x = boxed(item);
  switch (code.fact) {
    case Code::Fact::kShape:
      return expression::shape_of(x).vector();
    case Code::Fact::kNdim:
      return tenon::boxed(expression::ndim_of(x));
    case Code::Fact::kNumel:
      return tenon::boxed(expression::numel_of(x));
    case Code::Fact::kDtype:
      return boxed_dtype(expression::dtype_of(x));
    case Code::Fact::kDevice:
      return call::boxed_device(expression::device_of(x));
  }
  return none();
}

Item Evaluation::element(const Code& code) {
  const Item list = evaluate(code.children[0]), position = evaluate(code.children[1]);
  if (!scope_.ok()) return none();
  const tenon_value value = boxed(list);
  const int64_t index = boxed(position).v.i;
  if (code.type == ValueType::Tensor)
    return expression::at(scope_, expression::arg_tensors(value), index);
  if (code.type == ValueType::Float)
    return tenon::boxed(expression::at(scope_, expression::arg_floats(value), index));
  return tenon::boxed(expression::at(scope_, expression::arg_ints(value), index));
}

Item Evaluation::is_none(const Code& code) {
  const Item item = evaluate(code.children[0]);
  const tenon_value value = boxed(item);
  const bool absent =
      value.tag == TENON_VALUE_NONE || (value.tag == TENON_VALUE_TENSORS && value.aux == 0);
  return tenon::boxed(absent == (code.sign == Sign::kEqual));
}

}  // namespace tenon::interpreter
