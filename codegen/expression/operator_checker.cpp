// SPDX-License-Identifier: Apache-2.0
#include "expression/operator_checker.hpp"

#include "expression/host_functions.hpp"
#include "expression/operator_names.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

bool is_comparison(const std::string& sign) {
  return sign == "<" || sign == "<=" || sign == ">" || sign == ">=";
}
bool is_equality(const std::string& sign) { return sign == "==" || sign == "!="; }
bool is_logical(const std::string& sign) { return sign == "&&" || sign == "||"; }

}  // namespace

OperatorChecker::OperatorChecker(const Operator& op, const Package& package, std::string key)
    : op_(op), package_(package), key_(std::move(key)) {
  for (size_t i = 0; i < op.signature.params.size(); ++i) {
    const Param& param = op.signature.params[i];
    bindings_[param.name] = {type_of(param), Role::Argument, static_cast<int>(i)};
  }
}

Program OperatorChecker::program(const Steps& steps) {
  Program result;
  for (const Step& step : steps) {
    Value value = check(step.expression);
    if (step.name.empty()) {
      result.result = std::move(value);
      break;
    }
    if (bindings_.count(step.name))
      fail(step.expression,
           cat("`", step.name, "` is a name already; choose another for this step"));
    if (is_reserved_word(step.name))
      fail(step.expression,
           cat("`", step.name, "` is reserved; choose another name for this step"));
    if (value.type.base == ValueType::None) fail(step.expression, "a step cannot be `none`");
    bindings_[step.name] = {value.type, Role::Step, static_cast<int>(result.steps.size())};
    result.steps.emplace_back(step.name, std::move(value));
  }
  return result;
}

Value OperatorChecker::check(const Node& node) {
  switch (node.kind) {
    case NodeKind::Integer:
      return constant(node, {ValueType::Int});
    case NodeKind::Float:
      return constant(node, {ValueType::Float});
    case NodeKind::Boolean:
      return constant(node, {ValueType::Bool});
    case NodeKind::String:
      return constant(node, {ValueType::String});
    case NodeKind::None:
      return constant(node, {ValueType::None, true});
    case NodeKind::Name:
      return name(node);
    case NodeKind::Unary:
      return unary(node);
    case NodeKind::Binary:
      return binary(node);
    case NodeKind::Conditional:
      return conditional(node);
    case NodeKind::Call:
      return call(node);
    case NodeKind::List:
      return list(node);
    case NodeKind::Tuple:
      break;
    case NodeKind::Member:
      return member(node);
    case NodeKind::Subscript:
      return subscript(node);
  }
  fail(node, "unknown expression");
}

void OperatorChecker::fail(const Node& node, const std::string& text) const {
  throw Error(node.where, cat(key_, ": ", text));
}

Value OperatorChecker::make(Value::Form form, ValueType type, const Node& node) {
  Value value;
  value.form = form;
  value.type = type;
  value.text = node.text;
  if (form == Value::Constant) value.node = node;
  return value;
}

Value OperatorChecker::constant(const Node& node, ValueType type) {
  return make(Value::Constant, type, node);
}

Value OperatorChecker::name(const Node& node) {
  auto binding = bindings_.find(node.text);
  if (binding == bindings_.end()) {
    if (find_dtype(node.text)) return constant(node, {ValueType::Dtype});
    if (node.is_infinity_or_nan()) return constant(node, {ValueType::Float});
    std::vector<std::string> known;
    for (const auto& entry : bindings_) known.push_back(entry.first);
    fail(node, cat("unknown name `", node.text, "`", did_you_mean(node.text, known),
                   "; names here: ", join(known, " ")));
  }
  Value value = make(Value::Variable, binding->second.type, node);
  value.role = binding->second.role;
  value.index = binding->second.index;
  if (value.type.optional && present_.count(node.text)) {
    value.type.optional = false;
    value.narrowed = true;
  }
  return value;
}

void OperatorChecker::refuse_optional(const Node& node, const Value& value) const {
  if (value.type.base == ValueType::None) fail(node, "`none` cannot be computed with");
  if (value.type.optional)
    fail(node,
         cat("`", text_of(node), "` may be none; write `", text_of(node), " == none ? ... : ...`"));
}

Value OperatorChecker::unary(const Node& node) {
  Value operand = check(node.children[0]);
  refuse_optional(node.children[0], operand);
  if (operand.type.is(ValueType::Tensor))
    return infix(node, operator_of_sign(node.text, true), {std::move(operand)});
  bool fits = node.text == "-"   ? operand.type.is_number()
              : node.text == "!" ? operand.type.is(ValueType::Bool)
                                 : operand.type.is(ValueType::Int);
  if (!fits)
    fail(node, cat("`", node.text, "` does not apply to ", name_of(operand.type), " `",
                   text_of(node.children[0]), "`"));
  Value value = make(Value::Arithmetic, operand.type, node);
  value.children.push_back(std::move(operand));
  return value;
}

Value OperatorChecker::binary(const Node& node) {
  const std::string& sign = node.text;
  // `b` is only evaluated where `a` holds, so a test in `a` narrows `b`.
  Value left = check(node.children[0]);
  auto saved = present_;
  if (sign == "&&") narrow(left, true);
  if (sign == "||") narrow(left, false);
  Value right = check(node.children[1]);
  present_ = saved;

  bool none_left = left.type.base == ValueType::None,
       none_right = right.type.base == ValueType::None;
  if (is_equality(sign) && (none_left || none_right)) {
    if (none_left) std::swap(left, right);
    Value value = make(Value::IsNone, {ValueType::Bool}, node);
    value.children.push_back(std::move(left));
    return value;
  }
  refuse_optional(node.children[0], left);
  refuse_optional(node.children[1], right);
  if (left.type.is(ValueType::Tensor) || right.type.is(ValueType::Tensor))
    return infix(node, operator_of_sign(sign, false), {std::move(left), std::move(right)});
  ValueType type = arithmetic_type(node, left.type, right.type);
  Value value = make(Value::Arithmetic, type, node);
  value.children = {std::move(left), std::move(right)};
  return value;
}

ValueType OperatorChecker::arithmetic_type(const Node& node, const ValueType& left,
                                           const ValueType& right) const {
  const std::string& sign = node.text;
  bool numbers = left.is_number() && right.is_number();
  if (is_logical(sign) && left.is(ValueType::Bool) && right.is(ValueType::Bool))
    return {ValueType::Bool};
  if (is_equality(sign) && (left.base == right.base || numbers)) return {ValueType::Bool};
  if (is_comparison(sign) && numbers) return {ValueType::Bool};
  if (sign == "+" && left.is(ValueType::Ints) && right.is(ValueType::Ints)) return left;
  bool integers = left.is(ValueType::Int) && right.is(ValueType::Int);
  if (sign == "//" || sign == "%" || sign == "<<" || sign == ">>" || sign == "&" || sign == "|" ||
      sign == "^") {
    if (integers) return {ValueType::Int};
  } else if (sign == "/") {
    if (numbers) return {ValueType::Float};
  } else if (sign == "+" || sign == "-" || sign == "*") {
    if (integers) return {ValueType::Int};
    if (numbers && (left.is(ValueType::Scalar) || right.is(ValueType::Scalar)))
      return {ValueType::Scalar};
    if (numbers) return {ValueType::Float};
  }
  fail(node, cat("`", sign, "` does not apply to ", name_of(left), " and ", name_of(right), " in `",
                 text_of(node), "`"));
}

void OperatorChecker::narrow(const Value& test, bool outcome) {
  if (test.form == Value::IsNone && test.children[0].form == Value::Variable) {
    if ((test.text == "!=") == outcome) present_.insert(test.children[0].text);
  } else if (test.form == Value::Arithmetic && test.text == "!") {
    narrow(test.children[0], !outcome);
  } else if (test.form == Value::Arithmetic && test.text == (outcome ? "&&" : "||")) {
    for (const Value& child : test.children) narrow(child, outcome);
  }
}

Value OperatorChecker::conditional(const Node& node) {
  Value condition = check(node.children[0]);
  if (!condition.type.is(ValueType::Bool))
    fail(node,
         cat("the condition of `?:` is a bool known without data, got ", name_of(condition.type),
             " `", text_of(node.children[0]), "`; for tensors use where(condition, a, b)"));
  auto saved = present_;
  narrow(condition, true);
  Value then = check(node.children[1]);
  present_ = saved;
  narrow(condition, false);
  Value otherwise = check(node.children[2]);
  present_ = saved;
  Value value = make(Value::Conditional, common_type(node, then.type, otherwise.type), node);
  value.children = {std::move(condition), std::move(then), std::move(otherwise)};
  return value;
}

ValueType OperatorChecker::common_type(const Node& node, ValueType a, ValueType b) const {
  if (a.base == ValueType::None) std::swap(a, b);
  if (b.base == ValueType::None) {
    a.optional = true;
    return a;
  }
  ValueType with_a = a, with_b = b;
  with_a.optional = with_b.optional = a.optional || b.optional;
  if (a.base == ValueType::Record || b.base == ValueType::Record) {
    if (a.base == b.base && a.record == b.record) return a;
  } else if ((a.base == ValueType::Tensor) != (b.base == ValueType::Tensor)) {
    // A number on one side would have no dtype and no device.
  } else if (converts(b, with_a) && with_a.base != ValueType::Ints) {
    return with_a;
  } else if (converts(a, with_b)) {
    return with_b;
  } else if (converts(b, with_a)) {
    return with_a;
  }
  fail(node, cat("both sides of `?:` need one type, got ", name_of(a), " and ", name_of(b), " in `",
                 text_of(node), "`"));
}

Value OperatorChecker::list(const Node& node) {
  Value value = make(Value::List, {ValueType::Ints}, node);
  bool floats = false, tensors = false, others = false;
  for (const Node& child : node.children) {
    value.children.push_back(check(child));
    const ValueType& type = value.children.back().type;
    floats = floats || type.is(ValueType::Float);
    tensors = tensors || type.base == ValueType::Tensor;
    others = others || !(type.is(ValueType::Int) || type.is(ValueType::Float) ||
                         type.base == ValueType::Tensor);
  }
  if ((others || (tensors && floats)) && !tensor_literals_)
    fail(node,
         cat("a list holds integers, floats or tensors, all of one kind: `", text_of(node), "`"));
  if (tensors) {
    for (const Value& child : value.children)
      if (child.type.base != ValueType::Tensor && !tensor_literals_)
        fail(node, cat("a list holds integers, floats or tensors, all of one kind: `",
                       text_of(node), "`"));
    value.type = {ValueType::Tensors};
  } else if (floats) {
    value.type = {ValueType::Floats};
  }
  return value;
}

Value OperatorChecker::member(const Node& node) {
  Value base = check(node.children[0]);
  static const std::map<std::string, ValueType> metas = {{"shape", {ValueType::Ints}},
                                                         {"ndim", {ValueType::Int}},
                                                         {"numel", {ValueType::Int}},
                                                         {"dtype", {ValueType::Dtype}},
                                                         {"device", {ValueType::Device}}};
  if (base.type.is(ValueType::Record)) {
    int index = base.type.record->signature.find_result(node.text);
    if (index < 0)
      fail(node, cat("`", base.type.record->name, "` has no result `", node.text,
                     "`; its signature is ", base.type.record->signature.canonical()));
    Value value = make(Value::ResultOf, {ValueType::Tensor}, node);
    value.index = index;
    value.children.push_back(std::move(base));
    return value;
  }
  refuse_optional(node.children[0], base);
  auto meta = metas.find(node.text);
  if (!base.type.is(ValueType::Tensor) || meta == metas.end())
    fail(node,
         cat("`", text_of(node.children[0]), "` is ", name_of(base.type), " and has no member `",
             node.text, "`; tensors have shape, ndim, numel, dtype and device"));
  Value value = make(Value::Meta, meta->second, node);
  value.children.push_back(std::move(base));
  return value;
}

std::optional<Value> OperatorChecker::extents(const Node& node) {
  const Node& member = node.children[0];
  if (member.kind != NodeKind::Member || member.text != "shape") return std::nullopt;
  Value list = check(member.children[0]);
  if (!list.type.is(ValueType::Tensors)) return std::nullopt;
  Value index = check(node.children[1]);
  if (!index.type.is(ValueType::Int))
    fail(node, cat("`[]` takes an int, got ", name_of(index.type), " in `", text_of(node), "`"));
  Value value = make(Value::HostCall, {ValueType::Ints}, node);
  value.text = "extents";
  value.children = {std::move(list), std::move(index)};
  return value;
}

Value OperatorChecker::subscript(const Node& node) {
  if (auto value = extents(node)) return *std::move(value);
  Value base = check(node.children[0]);
  Value index = check(node.children[1]);
  refuse_optional(node.children[0], base);
  ValueType type;
  if (base.type.is(ValueType::Ints)) type = {ValueType::Int};
  if (base.type.is(ValueType::Floats)) type = {ValueType::Float};
  if (base.type.is(ValueType::Tensors)) type = {ValueType::Tensor};
  if (type.base == ValueType::None || !index.type.is(ValueType::Int))
    fail(node, cat("`[]` picks an element of int[], float[] or Tensor[] by an int, got ",
                   name_of(base.type), " and ", name_of(index.type), " in `", text_of(node), "`"));
  Value value = make(Value::Element, type, node);
  value.children = {std::move(base), std::move(index)};
  return value;
}

}  // namespace tenon::codegen
