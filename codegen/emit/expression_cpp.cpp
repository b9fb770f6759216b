// SPDX-License-Identifier: Apache-2.0
#include "emit/expression_cpp.hpp"

#include "emit/cpp_types.hpp"
#include "expression/host_functions.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// May this be a number at run time, though it is a Tensor by type? Only parameters may.
bool may_be_number(const Value& value) {
  if (value.type.base != ValueType::Tensor) return value.type.is_number();
  if (value.form == Value::Variable) return value.role == Role::Argument;
  if (value.form != Value::OperatorCall || value.children.size() > 2) return false;
  const std::string& name = value.op->name;
  bool folds = name == "add" || name == "subtract" || name == "multiply" || name == "divide" ||
               name == "negative";
  if (!folds || value.op->name_space != "tenon") return false;
  for (const Value& child : value.children)
    if (!may_be_number(child)) return false;
  return true;
}

bool is_folded(const Value& value) {
  return value.form == Value::OperatorCall && may_be_number(value);
}

bool is_nontrivial(const Value& value) {
  return value.form == Value::Arithmetic || value.form == Value::Conditional;
}

std::string in_parentheses(const std::string& text, const Value& value) {
  return is_nontrivial(value) && text.front() != '(' ? "(" + text + ")" : text;
}

}  // namespace

std::string ExpressionCpp::text(const Value& value) const {
  switch (value.form) {
    case Value::Constant:
      return constant(value);
    case Value::Variable:
      return variable(value);
    case Value::Arithmetic:
      return arithmetic(value);
    case Value::HostCall:
      return host_call(value);
    case Value::OperatorCall:
      return operator_call(value);
    case Value::Conditional:
      return conditional(value);
    case Value::List:
      return list(value);
    case Value::Meta:
      if (value.text == "device" && !device_of_.empty()) return device_of_;
      return cat("expression::", value.text, "_of(", text(value.children[0]), ")");
    case Value::Element:
      return cat("expression::at(scope, ", text(value.children[0]), ", ", text(value.children[1]),
                 ")");
    case Value::ResultOf:
      return cat(text(value.children[0]), ".", value.text);
    case Value::IsNone:
      return none_test(value);
  }
  return "";
}

std::string ExpressionCpp::constant(const Value& value) const {
  const Node& node = value.node;
  switch (value.type.base) {
    case ValueType::Int:
      return node.text;
    case ValueType::Float:
      if (node.is_infinity_or_nan()) return node.text == "inf" ? "INFINITY" : "NAN";
      return cpp_number(node.number);
    case ValueType::Bool:
      return node.boolean ? "true" : "false";
    case ValueType::String:
      return cat("std::string_view(", quoted(node.text), ")");
    case ValueType::Dtype:
      return dtypes()[*find_dtype(node.text)].macro;
    default:
      return "nullptr";
  }
}

std::string ExpressionCpp::variable(const Value& value) const {
  bool unwrap = value.narrowed && value.type.base != ValueType::Tensor &&
                value.type.base != ValueType::Dtype && value.type.base != ValueType::Device &&
                value.type.base != ValueType::Tensors;
  return unwrap ? "*" + value.text : value.text;
}

std::string ExpressionCpp::arithmetic(const Value& value) const {
  const std::string& sign = value.text;
  const Value& left = value.children[0];
  std::string a = in_parentheses(text(left), left);
  if (value.children.size() == 1) {
    if (left.type.is(ValueType::Scalar)) return cat("expression::negative(", a, ")");
    if (left.type.is(ValueType::Int) && left.form != Value::Constant)
      return cat("expression::minus(0, ", a, ")");
    return cat(sign, sign == "-" && a.front() == '-' ? "(" + a + ")" : a);
  }
  const Value& right = value.children[1];
  std::string b = in_parentheses(text(right), right);
  bool scalars = left.type.is(ValueType::Scalar) || right.type.is(ValueType::Scalar);
  if (left.type.base == ValueType::Ints || left.type.base == ValueType::Floats)
    return cat(sign == "!=" ? "!" : "", "expression::", sign == "+" ? "joined" : "equal", "(", a,
               ", ", b, ")");
  if (sign == "/") return cat("expression::quotient(", a, ", ", b, ")");
  if (sign == "//") return cat("expression::floor_divide(", a, ", ", b, ")");
  if (sign == "%") return cat("expression::floor_modulo(", a, ", ", b, ")");
  if (sign == "<<") return cat("(int64_t{", a, "} << ", b, ")");
  if (scalars) {
    if (value.type.is(ValueType::Scalar))
      return cat("expression::",
                 sign == "+"   ? "sum"
                 : sign == "-" ? "difference"
                               : "product",
                 "(", a, ", ", b, ")");
    auto number = [](const Value& side, const std::string& side_text) {
      return side.type.is(ValueType::Scalar) ? cat(side_text, ".number()") : side_text;
    };
    return cat(number(left, a), " ", sign, " ", number(right, b));
  }
  if (value.type.is(ValueType::Int))
    return cat("expression::",
               sign == "+"   ? "plus"
               : sign == "-" ? "minus"
                             : "times",
               "(", a, ", ", b, ")");
  return cat(a, " ", sign, " ", b);
}

std::string ExpressionCpp::host_call(const Value& value) const {
  std::vector<ValueType> types;
  for (const Value& child : value.children) types.push_back(child.type);
  const HostFunction* function = find_host_function(value.text, types);
  std::string arguments, name = value.text == "int" ? "integer" : value.text;
  for (size_t i = 0; i < value.children.size(); ++i) {
    if (i > 0) arguments += ", ";
    bool numbers = function && function->follows_arguments;
    if (numbers)
      arguments += cat(value.type.is(ValueType::Int) ? "int64_t{" : "double(",
                       text(value.children[i]), value.type.is(ValueType::Int) ? "}" : ")");
    else
      arguments +=
          function ? converted(value.children[i], function->params[i]) : text(value.children[i]);
  }
  return cat("expression::", name, "(", arguments, ")");
}

// An argument in the form that a parameter of this type takes.
std::string ExpressionCpp::converted(const Value& value, const ValueType& type) const {
  if (value.form == Value::Constant && value.type.base == ValueType::None) {
    switch (type.base) {
      case ValueType::Tensor:
        return "nullptr";
      case ValueType::Tensors:
        return "TensorList()";
      case ValueType::Dtype:
      case ValueType::Device:
        return "-1";
      default:
        return "std::nullopt";
    }
  }
  if (value.form == Value::List && type.base != ValueType::Tensors) {
    bool floats = type.base == ValueType::Floats;
    std::string items = join(value.children, ", ", [&](const Value& child) {
      std::string item = text(child);
      return floats && child.type.is(ValueType::Int) ? cat("double(", item, ")") : item;
    });
    return cat(floats ? "FloatList{" : "IntList{", items, "}");
  }
  std::string plain = text(value);
  if (value.type.base == type.base) return plain;
  if (plain.front() == '*') plain = "(" + plain + ")";
  switch (type.base) {
    case ValueType::Tensor:
      return value.type.is(ValueType::Scalar) ? plain + ".value()" : plain;
    case ValueType::Float:
      return value.type.is(ValueType::Scalar) ? plain + ".number()" : plain;
    case ValueType::Ints:
      return cat("IntList{", plain, "}");
    case ValueType::Floats:
      return cat("expression::floats(", plain, ")");
    default:
      return plain;
  }
}

// ", x, axis": the arguments of a call of an operator, up to the last one that is given.
std::string ExpressionCpp::arguments_of(const Value& value) const {
  const std::vector<Param>& params = value.op->signature.params;
  size_t last = params.size();
  while (last > 0 && value.bound[last - 1] < 0) --last;
  std::string arguments;
  for (size_t i = 0; i < last; ++i) {
    int child = value.bound[i];
    arguments += ", ";
    arguments +=
        child >= 0 ? converted(value.children[child], type_of(params[i])) : cpp_default(params[i]);
  }
  return arguments;
}

std::string ExpressionCpp::write_over(const Value& value, const std::string& out) const {
  return cat(value.op->name_space, "::ops::", value.op->name, "_out(scope, ", out,
             arguments_of(value), ");");
}

std::string ExpressionCpp::operator_call(const Value& value) const {
  std::string call =
      cat(value.op->name_space, "::ops::", value.op->name, "(scope", arguments_of(value), ")");
  if (!is_folded(value)) return call;
  // Numbers stay numbers, so that they do not take part in promotion.
  std::string operands;
  for (const Value& child : value.children)
    operands += ", " + converted(child, {ValueType::Tensor});
  return cat("expression::fold_", value.op->name, "(scope", operands,
             ", tenon::ops::", value.op->name, ")");
}

std::string ExpressionCpp::conditional(const Value& value) const {
  const Value& then = value.children[1];
  const Value& otherwise = value.children[2];
  std::string condition = text(value.children[0]);
  auto side = [&](const Value& child) -> std::string {
    switch (value.type.base) {
      case ValueType::Tensor:
      case ValueType::Tensors:
        return owned(child);
      case ValueType::Ints:
        return cat("expression::own(", converted(child, {ValueType::Ints}), ")");
      case ValueType::Float:
        return cat("double(", converted(child, value.type), ")");
      case ValueType::Int:
        return cat("int64_t{", text(child), "}");
      case ValueType::Scalar:
        return cat("ScalarArg(", text(child), ")");
      case ValueType::Dtype:
      case ValueType::Device:
        return converted(child, value.type);
      default:
        return in_parentheses(text(child), child);
    }
  };
  return cat("(", in_parentheses(condition, value.children[0]), " ? ", side(then), " : ",
             side(otherwise), ")");
}

std::string ExpressionCpp::list(const Value& value) const {
  if (value.type.base == ValueType::Tensors)
    return cat("std::vector<Tensor>{",
               join(value.children, ", ", [&](const Value& child) { return owned(child); }), "}");
  return converted(value, value.type);
}

std::string ExpressionCpp::none_test(const Value& value) const {
  const Value& operand = value.children[0];
  std::string none = text(operand);
  if (operand.type.base == ValueType::Dtype || operand.type.base == ValueType::Device)
    return cat(none, value.text == "==" ? " < 0" : " >= 0");
  // Narrowing does not matter here: the question is whether there is a value.
  if (operand.form == Value::Variable) none = operand.text;
  bool tensor_argument = operand.type.base == ValueType::Tensor &&
                         operand.form == Value::Variable && operand.role == Role::Argument;
  if (tensor_argument) return cat(value.text == "==" ? "!" : "", "expression::present(", none, ")");
  if (operand.type.base == ValueType::Tensors)
    return cat(none, value.text == "==" ? ".size() == 0" : ".size() != 0");
  return cat(value.text == "==" ? "!" : "", value.text == "==" ? none : cat("bool(", none, ")"));
}

std::string ExpressionCpp::owned(const Value& value) const {
  std::string plain = text(value);
  if (value.type.base == ValueType::None) return "Tensor()";
  if (value.type.base == ValueType::Tensors && value.form == Value::Variable &&
      value.role == Role::Argument)
    return cat("expression::tensors(", plain, ")");
  if (value.type.base != ValueType::Tensor) return plain;
  bool argument = value.form == Value::Variable && value.role == Role::Argument;
  return argument || is_folded(value) ? cat("expression::tensor(scope, ", plain, ")") : plain;
}

std::string ExpressionCpp::step(const std::string& name, const Value& value) const {
  switch (value.type.base) {
    case ValueType::Tensor:
      return cat("const Tensor ", name, " = ", owned(value), ";");
    case ValueType::Tensors:
      return cat("const std::vector<Tensor> ", name, " = ", owned(value), ";");
    case ValueType::Ints:
      return cat("const std::vector<int64_t> ", name, " = expression::own(",
                 converted(value, value.type), ");");
    case ValueType::Floats:
      return cat("const std::vector<double> ", name, " = expression::own(",
                 converted(value, value.type), ");");
    case ValueType::Int:
      return cat("const int64_t ", name, " = ", text(value), ";");
    case ValueType::Float:
      return cat("const double ", name, " = ", text(value), ";");
    default:
      return cat("const auto ", name, " = ", text(value), ";");
  }
}

std::string ExpressionCpp::declare_arguments(const Operator& op, const std::set<int>& used) {
  std::string result;
  for (int index : used) {
    const Param& param = op.signature.params[index];
    std::string argument = cat("args[", index, "]");
    std::string value;
    switch (param.kind) {
      case ParamKind::Tensor:
        value = argument;
        break;
      case ParamKind::Tensors:
        value = cat("expression::arg_tensors(", argument, ")");
        break;
      case ParamKind::Dtype:
      case ParamKind::Device:
        value = cat("tenon_arg_id(&", argument, ")");
        break;
      default:
        value = cat("expression::", param.optional ? "optional_" : "arg_", c_word(param.kind), "(",
                    argument, ")");
    }
    result += cat("  const ", cpp_param_type(param), " ", param.name,
                  param.is_tensor() ? "(" + value + ")" : " = " + value, ";\n");
  }
  return result;
}

}  // namespace tenon::codegen
