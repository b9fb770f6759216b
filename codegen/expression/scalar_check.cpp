// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "expression/scalar.hpp"
#include "expression/scalar_functions.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using Type = ScalarType;

bool is_number(const Type& type) {
  return type.kind == Type::Element || type.kind == Type::Real || type.kind == Type::Int ||
         type.kind == Type::Float;
}

const char* name_of(const Type& type) {
  switch (type.kind) {
    case Type::Element:
      return "an element";
    case Type::Real:
      return "a real number";
    case Type::Bool:
      return "a bool";
    case Type::Int:
      return "an int";
    case Type::Float:
      return "a float";
    case Type::String:
      return "text";
  }
  return "";
}

class ScalarChecker {
 public:
  ScalarChecker(const Operator& op, DtypeMask mask, std::string key)
      : mask_(mask), key_(std::move(key)) {
    int attribute = 0;
    for (const Param& param : op.signature.params)
      if (!param.holds_tensors()) bind_attribute(param, attribute++);
  }

  void bind(const std::string& name, Type type) {
    ScalarValue value;
    value.form = ScalarValue::Variable;
    value.type = type;
    value.text = name;
    names_[name] = value;
  }

  // Lines, each of which may read those before it.
  ScalarSteps check_steps(const Steps& lines) {
    ScalarSteps steps;
    for (const Step& line : lines) {
      if (names_.count(line.name))
        fail(line.expression, cat("`", line.name, "` already has a meaning; choose another name"));
      ScalarValue value = check(line.expression);
      if (!value.type.varying) {
        names_[line.name] = std::move(value);
        continue;
      }
      bind(line.name, value.type);
      steps.emplace_back(line.name, std::move(value));
    }
    return steps;
  }

  bool is_read(const std::string& name) const { return read_.count(name) != 0; }

  ScalarValue check(const Node& node) {
    switch (node.kind) {
      case NodeKind::Integer:
        return literal(node.text, {Type::Int, false});
      case NodeKind::Float:
        return literal(node.text, {Type::Float, false});
      case NodeKind::Boolean:
        return literal(node.boolean ? "true" : "false", {Type::Bool, false});
      case NodeKind::String:
        return literal(node.text, {Type::String, false});
      case NodeKind::Name:
        return name(node);
      case NodeKind::Unary:
        return unary(node);
      case NodeKind::Binary:
        return binary(node);
      case NodeKind::Conditional:
        return conditional(node, node.children);
      case NodeKind::Call:
        return call(node);
      case NodeKind::None:
        fail(node, "`none` is only compared with: `attribute == none`");
      case NodeKind::List:
      case NodeKind::Tuple:
      case NodeKind::Member:
      case NodeKind::Subscript:
        break;
    }
    fail(node, cat("`", text_of(node), "` has no meaning for one element"));
  }

  [[noreturn]] void fail(const Node& node, const std::string& text) const {
    throw Error(node.where, cat(key_, ": ", text));
  }

  bool complex() const { return (mask_ & complex_dtypes()) != 0; }
  bool inexact_only() const { return (mask_ & (integer_dtypes() | bool_dtypes())) == 0; }
  bool only_bool() const { return mask_ == bool_dtypes(); }

 private:
  void bind_attribute(const Param& param, int attribute) {
    ScalarValue value;
    value.form = ScalarValue::Variable;
    value.text = param.name;
    value.attribute = attribute;
    switch (param.kind) {
      case ParamKind::Int:
        value.type = {Type::Int, false};
        break;
      case ParamKind::Float:
        value.type = {Type::Float, false};
        break;
      case ParamKind::Bool:
        value.type = {Type::Bool, false};
        break;
      case ParamKind::Scalar:
        value.type = {Type::Element, false};
        break;
      case ParamKind::String:
        value.type = {Type::String, false};
        break;
      default:
        return;  // lists and dtypes are no scalars
    }
    names_[param.name] = value;
  }

  static ScalarValue literal(const std::string& text, Type type) {
    ScalarValue value;
    value.text = text;
    value.type = type;
    return value;
  }

  static ScalarValue make(ScalarValue::Form form, Type type, const std::string& text) {
    ScalarValue value = literal(text, type);
    value.form = form;
    return value;
  }

  ScalarValue name(const Node& node) {
    auto found = names_.find(node.text);
    if (found != names_.end()) {
      read_.insert(node.text);
      return found->second;
    }
    if (node.is_infinity_or_nan()) return make(ScalarValue::Limit, {Type::Float, false}, node.text);
    if (node.text == "lowest" || node.text == "highest")
      return make(ScalarValue::Limit, {Type::Element, false}, node.text);
    std::vector<std::string> known;
    for (const auto& entry : names_) known.push_back(entry.first);
    fail(node, cat("unknown name `", node.text, "`", did_you_mean(node.text, known),
                   "; names here: ", join(known, " ")));
  }

  // Both numbers in one type: elements win over host numbers.
  Type common(const Node& node, const ScalarValue& left, const ScalarValue& right) const {
    Type a = left.type, b = right.type;
    bool varying = a.varying || b.varying;
    auto has = [&](Type::Kind kind) { return a.kind == kind || b.kind == kind; };
    if (a.kind == b.kind) return {a.kind, varying};
    // 0 and 1 as the elements of a bool expression.
    if (only_bool() && has(Type::Bool) && has(Type::Int)) return {Type::Bool, varying};
    if (!is_number(a) || !is_number(b))
      fail(node, cat("`", node.text, "`: ", name_of(a), " and ", name_of(b), " do not mix in `",
                     text_of(node), "`"));
    if (has(Type::Element) || has(Type::Real)) {
      if (has(Type::Float) && !inexact_only())
        fail(
            node,
            cat("`", text_of(node), "` mixes a float with elements that may be ",
                describe(mask_ & (integer_dtypes() | bool_dtypes())),
                "; use `compute: promote_float`, a Scalar attribute, or one expression per class"));
      return {has(Type::Element) ? Type::Element : Type::Real, varying};
    }
    return {Type::Float, varying};
  }

  ScalarValue unary(const Node& node) {
    ScalarValue operand = check(node.children[0]);
    bool numeric = is_number(operand.type);
    if (node.text == "!" && operand.type.kind != Type::Bool)
      fail(node, cat("`!` applies to a bool, got ", name_of(operand.type), "; write `x == 0`"));
    if (node.text == "-" && !numeric)
      fail(node, cat("`-` applies to numbers, got ", name_of(operand.type)));
    if (node.text == "-" && operand.type.kind == Type::Element && (mask_ & bool_dtypes()))
      fail(node, "`-` has no meaning for bool; narrow `allow` or give bool its own expression");
    if (node.text == "~") require_integers(node, operand.type);
    ScalarValue value = make(ScalarValue::Unary, operand.type, node.text);
    value.children.push_back(std::move(operand));
    return value;
  }

  void require_integers(const Node& node, const Type& type) const {
    bool bitwise = node.text == "&" || node.text == "|" || node.text == "^";
    DtypeMask good = integer_dtypes() | (bitwise ? bool_dtypes() : 0);
    if (type.kind == Type::Int || (only_bool() && bitwise && type.kind == Type::Bool)) return;
    if (type.kind == Type::Element && (mask_ & ~good) == 0) return;
    fail(node, cat("`", node.text, "` applies to integers, got ", name_of(type), " of ",
                   describe(mask_)));
  }

  ScalarValue binary(const Node& node) {
    const std::string& sign = node.text;
    if (node.children[1].kind == NodeKind::None || node.children[0].kind == NodeKind::None)
      return none_test(node);
    ScalarValue left = check(node.children[0]), right = check(node.children[1]);
    Type type = common(node, left, right);
    bool equality = sign == "==" || sign == "!=";
    bool order = sign == "<" || sign == "<=" || sign == ">" || sign == ">=";
    bool element = type.kind == Type::Element;
    if (sign == "&&" || sign == "||") {
      if (type.kind != Type::Bool)
        fail(node, cat("`", sign, "` applies to bools, got ", name_of(type), "; write `x != 0`"));
    } else if (equality) {
      type.kind = Type::Bool;
    } else if (order) {
      if (type.kind == Type::String) fail(node, "text is compared with == and != only");
      if (element && complex()) fail(node, cat("`", sign, "` has no meaning for complex numbers"));
      type.kind = Type::Bool;
    } else if (sign == "&" || sign == "|" || sign == "^" || sign == "<<" || sign == ">>") {
      require_integers(node, type);
    } else if (sign == "//") {
      fail(node, "`//` is for host values; write floordiv(a, b)");
    } else if (!is_number(type)) {
      fail(node, cat("`", sign, "` applies to numbers, got ", name_of(type), " in `", text_of(node),
                     "`"));
    } else if (sign == "/" && element && !inexact_only()) {
      fail(node, "`/` of integers: use `compute: promote_float`, or floordiv(a, b)");
    } else if (sign == "%" && element && complex()) {
      fail(node, "`%` has no meaning for complex numbers");
    } else if (sign == "-" && element && (mask_ & bool_dtypes())) {
      fail(node, "`-` has no meaning for bool; narrow `allow` or give bool its own expression");
    } else if (sign == "/" && type.kind == Type::Int) {
      type.kind = Type::Float;
    }
    ScalarValue value = make(ScalarValue::Binary, type, sign);
    value.children = {std::move(left), std::move(right)};
    return value;
  }

  ScalarValue none_test(const Node& node) {
    const Node& other = node.children[node.children[0].kind == NodeKind::None ? 1 : 0];
    ScalarValue value = check(other);
    if (value.attribute < 0 || (node.text != "==" && node.text != "!="))
      fail(node, "`none` is only compared with an optional attribute: `min == none`");
    ScalarValue test = make(ScalarValue::IsNone, {Type::Bool, false}, node.text);
    test.attribute = value.attribute;
    return test;
  }

  ScalarValue conditional(const Node& node, const std::vector<Node>& parts) {
    ScalarValue condition = check(parts[0]), then = check(parts[1]), otherwise = check(parts[2]);
    if (condition.type.kind != Type::Bool)
      fail(node, cat("the condition must be a bool, got ", name_of(condition.type), " `",
                     text_of(parts[0]), "`; write `x != 0`"));
    Type type = common(node, then, otherwise);
    type.varying = type.varying || condition.type.varying;
    bool select = condition.type.varying;
    ScalarValue value = make(select ? ScalarValue::Select : ScalarValue::Conditional, type, "");
    value.children = {std::move(condition), std::move(then), std::move(otherwise)};
    return value;
  }

  // polynomial(x, [c0, c1, c2]) is c0 + x * (c1 + x * c2), Horner's scheme.
  ScalarValue polynomial(const Node& node) {
    const bool is_plain = node.children.size() == 2 && node.children[0].kind == NodeKind::Name &&
                          node.children[1].kind == NodeKind::List;
    if (!is_plain || node.children[1].children.size() < 2)
      fail(node,
           "expected polynomial(x, [c0, c1, ...]) of a name and at least two coefficients; give an "
           "expression a line of its own, `t = ...`");
    const Node& x = node.children[0];
    const std::vector<Node>& coefficients = node.children[1].children;
    Node sum = coefficients.back();
    for (size_t i = coefficients.size() - 1; i-- > 0;) {
      Node product = node;
      product.kind = NodeKind::Binary;
      product.keywords.clear();
      product.text = "*";
      product.children = {x, std::move(sum)};
      sum = product;
      sum.text = "+";
      sum.children = {coefficients[i], std::move(product)};
    }
    return check(sum);
  }

  ScalarValue call(const Node& node) {
    for (const std::string& keyword : node.keywords)
      if (!keyword.empty()) fail(node, cat("`", node.text, "`: arguments are positional"));
    if (node.text == "polynomial") return polynomial(node);
    if (node.text == "select") {
      if (node.children.size() != 3) fail(node, "expected select(condition, a, b)");
      return conditional(node, node.children);
    }
    const ScalarFunction* function = find_scalar_function(node.text);
    if (!function) {
      std::vector<std::string> known = {"select", "polynomial"};
      for (const ScalarFunction& entry : scalar_functions()) known.push_back(entry.name);
      fail(node, cat("unknown function `", node.text, "`", did_you_mean(node.text, known)));
    }
    if (static_cast<int>(node.children.size()) != function->arity)
      fail(node, cat("`", node.text, "` takes ", function->arity, " argument(s), got ",
                     node.children.size()));
    ScalarValue value = make(ScalarValue::Function, {Type::Int, false}, node.text);
    for (const Node& child : node.children) value.children.push_back(check(child));
    Type type = value.children[0].type;
    for (const ScalarValue& child : value.children) type = common(node, value.children[0], child);
    if (type.kind == Type::Bool && only_bool()) type.kind = Type::Element;
    if (!is_number(type)) fail(node, cat("`", node.text, "` takes numbers, got ", name_of(type)));
    if (function->on_host && !type.varying &&
        (type.kind == Type::Int || type.kind == Type::Float)) {
      value.type = {Type::Float, false};
      return value;
    }
    // A number for the element functions: there is one implementation of each, on elements.
    if (type.kind == Type::Int || type.kind == Type::Float) type.kind = Type::Element;
    check_domain(node, *function, type);
    // Arguments meet in the type that is first; the emitter converts them.
    value.type = type;
    if (function->answer == ScalarFunction::Truth) value.type.kind = Type::Bool;
    if (function->answer == ScalarFunction::RealType && complex()) value.type.kind = Type::Real;
    return value;
  }

  void check_domain(const Node& node, const ScalarFunction& function, const Type& type) const {
    bool floats = function.domain == ScalarFunction::Floating ||
                  function.domain == ScalarFunction::FloatingComplex;
    bool complex_too = function.domain == ScalarFunction::Any ||
                       function.domain == ScalarFunction::FloatingComplex;
    if (floats && !inexact_only())
      fail(node, cat("`", node.text, "` is for floating dtypes, `allow` has ",
                     describe(mask_ & (integer_dtypes() | bool_dtypes())),
                     "; use `compute: promote_float` with `allow: floating`"));
    if (function.domain == ScalarFunction::WholeNumber && (mask_ & ~integer_dtypes()))
      fail(node, cat("`", node.text, "` is for integers, `allow` has ",
                     describe(mask_ & ~integer_dtypes()), "; use `allow: integer`"));
    if (!complex_too && type.kind == Type::Element && complex())
      fail(node, cat("`", node.text,
                     "` has no meaning for complex numbers; narrow `allow` or give "
                     "complex its own expression"));
  }

  DtypeMask mask_;
  std::string key_;
  std::map<std::string, ScalarValue> names_;
  std::set<std::string> read_;  // of `names_`
};

Type element_of(const Operator& op, const Param& param, DtypeMask mask, const Location& where) {
  auto checked = op.dtypes.checked.find(param.name);
  if (checked == op.dtypes.checked.end())
    return {mask == bool_dtypes() ? Type::Bool : Type::Element, true};
  if (checked->second == bool_dtypes()) return {Type::Bool, true};
  for (size_t id = 0; id < dtypes().size(); ++id) {
    DtypeMask one = DtypeMask{1} << id;
    if (checked->second != one) continue;
    if (one & integer_dtypes()) return {Type::Int, true};
    if (one & floating_dtypes()) return {Type::Float, true};
  }
  throw Error(where, cat("expr: `", param.name,
                         "` is not converted to the compute dtype, so it must "
                         "have exactly one dtype; `dtypes` allows ",
                         describe(checked->second)));
}

}  // namespace

std::vector<int> attribute_params(const Signature& signature) {
  std::vector<int> result;
  for (size_t i = 0; i < signature.params.size(); ++i)
    if (!signature.params[i].holds_tensors()) result.push_back(static_cast<int>(i));
  return result;
}

ScalarLines check_case(const Operator& op, const ScalarCase& scalar_case) {
  ScalarChecker checker(op, scalar_case.mask, "expr");
  for (const Param& param : op.signature.params)
    if (param.is_tensor())
      checker.bind(param.name,
                   element_of(op, param, scalar_case.mask, scalar_case.expression.where));
  ScalarLines lines;
  lines.parts = checker.check_steps(scalar_case.parts);
  lines.result = checker.check(scalar_case.expression);
  for (const Step& part : scalar_case.parts)
    if (!checker.is_read(part.name))
      checker.fail(part.expression, cat("the line `", part.name, "` is never read; remove it"));
  const ScalarValue& value = lines.result;
  OutDtype::Rule out = op.dtypes.outs[0].rule;
  bool truth = value.type.kind == Type::Bool;
  if (value.type.kind == Type::String) checker.fail(scalar_case.expression, "the result is text");
  if (out == OutDtype::Bool && !truth)
    checker.fail(scalar_case.expression, "expected a bool for `out: bool`; write `... != 0`");
  if (truth && out != OutDtype::Bool && !checker.only_bool())
    checker.fail(scalar_case.expression,
                 "the expression is a bool; say `out: bool`, or write `condition ? 1 : 0`");
  return lines;
}

ScalarValue all_lines(const ScalarLines& lines) {
  ScalarValue all;
  for (const auto& part : lines.parts) all.children.push_back(part.second);
  all.children.push_back(lines.result);
  return all;
}

ScalarSteps check_element_steps(const Operator& op) {
  ScalarChecker checker(op, op.dtypes.allow, "expr");
  for (const Param& param : op.signature.params)
    if (param.is_tensor()) checker.bind(param.name, {Type::Element, true});
  ScalarSteps steps = checker.check_steps(op.element_steps);
  for (const Result& result : op.signature.results) {
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](const auto& step) { return step.first == result.name; });
    if (found == steps.end() || found->second.type.kind != Type::Element)
      throw Error(op.where, cat("expr: expected a line `", result.name,
                                " = ...` whose value is an element, for the result of that name"));
  }
  return steps;
}

CheckedReduction check_reduction(const Operator& op) {
  const Reduction& reduction = *op.reduction;
  // Partial results of `out: float` are floating whatever the elements are.
  const bool inexact = op.dtypes.outs[0].rule == OutDtype::Float;
  const DtypeMask integers = integer_dtypes() | bool_dtypes();
  auto checker = [&](const char* part) {
    return ScalarChecker(op, inexact ? op.dtypes.allow & ~integers : op.dtypes.allow,
                         cat("reduce.", part));
  };
  CheckedReduction result;
  Type element{Type::Element, true};
  ScalarChecker map = checker("map");
  map.bind("x", op.dtypes.allow == bool_dtypes() ? Type{Type::Bool, true} : element);
  result.map = map.check(reduction.map);
  const bool truth = result.map.type.kind == Type::Bool;
  result.truth = truth;
  const Type partial{truth ? Type::Bool : Type::Element, true};
  auto require = [&](const ScalarChecker& in, const Node& node, const ScalarValue& value,
                     bool bool_wanted) {
    bool is_bool = value.type.kind == Type::Bool;
    if (is_bool != bool_wanted)
      in.fail(node,
              cat("expected ", bool_wanted ? "a bool" : "a number", ", got ", name_of(value.type)));
  };
  if (reduction.init) {
    ScalarChecker init = checker("init");
    result.init = init.check(*reduction.init);
    require(init, *reduction.init, *result.init, truth);
  }
  ScalarChecker combine = checker("combine");
  combine.bind("a", partial);
  combine.bind("b", partial);
  result.combine = combine.check(reduction.combine);
  require(combine, reduction.combine, result.combine, truth);
  ScalarChecker finish = checker("finish");
  finish.bind("a", partial);
  finish.bind("n", {Type::Int, false});
  result.finish = finish.check(reduction.finish);
  require(finish, reduction.finish, result.finish, op.dtypes.outs[0].rule == OutDtype::Bool);
  return result;
}

}  // namespace tenon::codegen
