// SPDX-License-Identifier: Apache-2.0
#include "rewrite/rule.hpp"

#include <tenon/error.hpp>

#include <map>

#include "expression/operator_names.hpp"
#include "expression/parser.hpp"

namespace tenon::graph {
namespace {

using codegen::NodeKind;

constexpr size_t kMaxNodes = 256;

bool takes_tensor(int32_t kind) {
  return kind == TENON_PARAM_TENSOR || kind == TENON_PARAM_TENSORS;
}

// Reads one side. Variables are shared by both.
class Reader {
 public:
  Reader(Rule& rule, Expression& out, const char* side, bool may_introduce)
      : rule_(rule), out_(out), side_(side), may_introduce_(may_introduce) {}

  // Lines of `name = expression`, and the result last.
  void run(std::string_view text) {
    for (bool has_result = false; !has_result;) {
      const size_t end = text.find('\n');
      const codegen::Step step = parsed(text.substr(0, end));
      has_result = end == std::string_view::npos;
      if (step.name.empty() != has_result)
        fail("expected `name = expression` for all but the last line, which is the result");
      const uint32_t made = operand(step.expression, TENON_PARAM_TENSOR);
      if (has_result)
        out_.root = made;
      else if (!named_.try_emplace(step.name, made).second)
        fail("`" + step.name + "` has two lines");
      else
        text.remove_prefix(end + 1);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(TENON_INVALID_ARGUMENT, "rewrite `" + rule_.name + "`: " + side_ + ": " + problem);
  }

  codegen::Step parsed(std::string_view line) const {
    try {
      return codegen::parse_step(line, {"rewrite " + rule_.name, 1}, side_);
    } catch (const std::exception& error) {
      throw Error(TENON_INVALID_ARGUMENT, error.what());
    }
  }

  uint32_t add(const std::string& key, Expression::Node node) {
    auto [known, is_new] = known_.try_emplace(key, static_cast<uint32_t>(out_.nodes.size()));
    if (is_new) out_.nodes.push_back(std::move(node));
    if (out_.nodes.size() > kMaxNodes)
      fail("expected at most " + std::to_string(kMaxNodes) + " parts, got more");
    return known->second;
  }

  // What stands for a parameter of that kind.
  uint32_t operand(const codegen::Node& node, int32_t kind) {
    if (node.kind == NodeKind::Name && !node.is_infinity_or_nan() && !is_dtype(node, kind))
      return variable(node.text, kind);
    if (is_number(node) || is_dtype(node, kind)) return number(node, kind);
    if (is_arithmetic(node) || (!takes_tensor(kind) && has_sign(node))) return arithmetic(node);
    if (!takes_tensor(kind))
      fail("expected a number, a name or `none` in the place of `" + text_of(node) +
           "`, as the parameter takes no tensor");
    switch (node.kind) {
      case NodeKind::Call:
        return call(node.text, node.children, node.keywords, text_of(node));
      case NodeKind::Unary:
      case NodeKind::Binary:
        return call(codegen::operator_of_sign(node.text, node.kind == NodeKind::Unary),
                    node.children, std::vector<std::string>(node.children.size()), text_of(node));
      default:
        fail("expected calls of operators, signs, numbers and names, got `" + text_of(node) + "`");
    }
  }

  uint32_t variable(const std::string& name, int32_t kind) {
    if (auto named = named_.find(name); named != named_.end()) return named->second;
    uint32_t index = 0;
    while (index < rule_.variables.size() && rule_.variables[index].name != name) ++index;
    if (index == rule_.variables.size()) {
      if (!may_introduce_) fail("expected names that `from` has, got `" + name + "`");
      rule_.variables.push_back({name, TENON_PARAM_TENSOR});
    }
    narrow(rule_.variables[index], kind);
    Expression::Node node;
    node.kind = Expression::kVariable;
    node.variable = index;
    return add("$" + name, std::move(node));
  }

  // The strictest use says what a variable is: an axis is one number where one use takes one and
  // another a list; a number that one use takes as float is one.
  void narrow(Rule::Variable& variable, int32_t kind) {
    if (takes_tensor(kind) || kind == variable.kind) return;
    const bool is_wider = variable.is_tensor() || variable.kind == TENON_PARAM_SCALAR ||
                          (variable.kind == TENON_PARAM_INTS && kind == TENON_PARAM_INT);
    const bool is_narrower = kind == TENON_PARAM_SCALAR ||
                             (kind == TENON_PARAM_INTS && variable.kind == TENON_PARAM_INT);
    if (is_wider)
      variable.kind = kind;
    else if (!is_narrower)
      fail("`" + variable.name + "` stands for arguments of two kinds");
  }

  static bool is_dtype(const codegen::Node& node, int32_t kind) {
    return kind == TENON_PARAM_DTYPE && node.kind == NodeKind::Name &&
           host->dtype_find(node.text.c_str()) >= 0;
  }
  static bool is_number(const codegen::Node& node) {
    switch (node.kind) {
      case NodeKind::Integer:
      case NodeKind::Float:
      case NodeKind::Boolean:
      case NodeKind::None:
      case NodeKind::String:
      case NodeKind::List:
        return true;
      case NodeKind::Name:
        return node.is_infinity_or_nan();
      case NodeKind::Unary:
        return node.text == "-" && is_number(node.children[0]);
      default:
        return false;
    }
  }
  // Numbers, and variables that stand for one because something else uses them so.
  static bool has_sign(const codegen::Node& node) {
    return node.kind == NodeKind::Binary && node.text.size() == 1 &&
           std::string("+-*/").find(node.text) != std::string::npos;
  }
  bool is_arithmetic(const codegen::Node& node) const {
    if (!has_sign(node)) return false;
    for (const codegen::Node& child : node.children)
      if (!is_number(child) && !is_arithmetic(child) && !stands_for_number(child)) return false;
    return true;
  }
  bool stands_for_number(const codegen::Node& node) const {
    if (node.kind != NodeKind::Name) return false;
    for (const Rule::Variable& known : rule_.variables)
      if (known.name == node.text) return !known.is_tensor();
    return false;
  }

  uint32_t number(const codegen::Node& node, int32_t kind) {
    Expression::Node out;
    out.number = literal(node, kind);
    return add("#" + std::to_string(kind) + text_of(node), std::move(out));
  }

  double real(const codegen::Node& node) const {
    if (node.kind == NodeKind::Unary) return -real(node.children[0]);
    if (node.kind == NodeKind::Integer) return static_cast<double>(node.integer);
    if (node.kind == NodeKind::Float) return node.number;
    if (node.is_infinity_or_nan()) return node.text == "inf" ? __builtin_inf() : __builtin_nan("");
    fail("expected a number, got `" + text_of(node) + "`");
  }
  static bool is_integer(const codegen::Node& node) {
    return node.kind == NodeKind::Unary ? is_integer(node.children[0])
                                        : node.kind == NodeKind::Integer;
  }

  Attribute literal(const codegen::Node& node, int32_t kind) const {
    switch (node.kind) {
      case NodeKind::None:
        return {};
      case NodeKind::Boolean:
        return Attribute(boxed(node.boolean));
      case NodeKind::String:
        return Attribute(boxed(std::string_view(node.text)));
      case NodeKind::List: {
        std::vector<int64_t> integers;
        std::vector<double> numbers;
        for (const codegen::Node& each : node.children) {
          numbers.push_back(real(each));
          integers.push_back(static_cast<int64_t>(numbers.back()));
        }
        return kind == TENON_PARAM_FLOATS ? Attribute(boxed(numbers.data(), numbers.size()))
                                          : Attribute(boxed(integers.data(), integers.size()));
      }
      default:
        break;
    }
    if (kind == TENON_PARAM_DTYPE && node.kind == NodeKind::Name)
      return Attribute(boxed_dtype(host->dtype_find(node.text.c_str())));
    const double value = real(node);
    const Attribute plain =
        is_integer(node) ? Attribute(boxed(static_cast<int64_t>(value))) : Attribute(boxed(value));
    const Attribute fitting = attribute_as(plain, kind);
    if (fitting.tag() == TENON_VALUE_NONE)
      fail("`" + text_of(node) + "` is of another kind than its parameter");
    return fitting;
  }

  uint32_t arithmetic(const codegen::Node& node) {
    if (may_introduce_) fail("`" + text_of(node) + "` is a number; write its value");
    Expression::Node out;
    out.kind = Expression::kArithmetic;
    out.sign = node.text[0];
    for (const codegen::Node& child : node.children)
      out.operands.push_back(operand(child, TENON_PARAM_SCALAR));
    return add("=" + text_of(node), std::move(out));
  }

  uint32_t call(const std::string& callee, const std::vector<codegen::Node>& arguments,
                const std::vector<std::string>& keywords, const std::string& text) {
    Expression::Node node;
    node.kind = Expression::kCall;
    node.op = host->op_find(callee.c_str());
    if (!node.op || !host->op_def(node.op)) fail("operator `" + callee + "` is unknown");
    const tenon_op_def& def = *host->op_def(node.op);
    if (def.flags & (TENON_OP_LIST_OUTPUT | TENON_OP_DATA_DEPENDENT | TENON_OP_RANDOM) ||
        def.nouts == 0)
      fail("`" + callee +
           "`: operators that draw random numbers, whose shapes depend on data or that have a list "
           "of "
           "results are not supported");
    node.operands.assign(def.nparams, Expression::kNoNode);
    for (size_t i = 0; i < arguments.size(); ++i) {
      uint32_t index = static_cast<uint32_t>(i);
      if (!keywords[i].empty())
        for (index = 0; index < def.nparams && keywords[i] != def.params[index].name;) ++index;
      if (index >= def.nparams || node.operands[index] != Expression::kNoNode)
        fail("`" + text + "`: " +
             (keywords[i].empty() ? "argument " + std::to_string(i + 1) : "`" + keywords[i] + "`") +
             " does not fit " + def.schema);
      if (def.params[index].kind == TENON_PARAM_TENSORS)
        fail("`" + callee + "`: lists of tensors are not supported");
      node.operands[index] = operand(arguments[i], def.params[index].kind);
    }
    return add(text, std::move(node));
  }

  Rule& rule_;
  Expression& out_;
  const char* side_;
  bool may_introduce_;
  std::map<std::string, uint32_t> known_;  // by the text of the part
  std::map<std::string, uint32_t> named_;  // by the name of its line
};

}  // namespace

bool number_of(const Attribute& attribute, double& out) {
  const tenon_value value = attribute.value();
  if (value.tag == TENON_VALUE_FLOAT)
    out = value.v.f;
  else if (value.tag == TENON_VALUE_INT || value.tag == TENON_VALUE_BOOL)
    out = static_cast<double>(value.v.i);
  else
    return false;
  return true;
}

Attribute attribute_as(const Attribute& attribute, int32_t kind) {
  const tenon_value value = attribute.value();
  const bool is_integer = value.tag == TENON_VALUE_INT;
  switch (kind) {
    case TENON_PARAM_INTS:
      return is_integer ? Attribute(boxed(&value.v.i, 1)) : attribute;
    case TENON_PARAM_INT:
      if (value.tag == TENON_VALUE_INTS)
        return value.aux == 1 ? Attribute(boxed(*static_cast<const int64_t*>(value.v.p)))
                              : Attribute();
      return is_integer ? attribute : Attribute();
    case TENON_PARAM_FLOAT:
      if (is_integer) return Attribute(boxed(static_cast<double>(value.v.i)));
      return value.tag == TENON_VALUE_FLOAT ? attribute : Attribute();
    case TENON_PARAM_BOOL:
      return value.tag == TENON_VALUE_BOOL ? attribute : Attribute();
    case TENON_PARAM_TENSOR:
    case TENON_PARAM_SCALAR: {
      double number = 0;
      return number_of(attribute, number) ? attribute : Attribute();
    }
    default:
      return attribute;
  }
}

Rule Rule::parse(const tenon_graph_rewrite& text) {
  Rule rule;
  rule.name = text.name ? text.name : "";
  if (rule.name.empty() || rule.name.find_first_of(",!=") != std::string::npos)
    throw Error(TENON_INVALID_ARGUMENT,
                "rewrite: expected a name without , ! and =, got '" + rule.name + "'");
  rule.from_text = text.from ? text.from : "";
  rule.to_text = text.to ? text.to : "";
  rule.numerics = text.numerics;
  rule.units = text.units;
  if (text.dtypes) rule.dtypes = text.dtypes;
  if (rule.numerics < TENON_GRAPH_EXACT || rule.numerics > TENON_GRAPH_FAST || !(rule.units >= 0) ||
      (rule.numerics == TENON_GRAPH_EXACT) != (rule.units == 0))
    throw Error(TENON_INVALID_ARGUMENT,
                "rewrite `" + rule.name +
                    "`: expected numerics exact with 0 units, or ulp or fast with more, got " +
                    std::to_string(rule.numerics) + " with " + std::to_string(rule.units));
  Reader(rule, rule.from, "from", true).run(rule.from_text);
  if (rule.from.nodes[rule.from.root].kind != Expression::kCall)
    throw Error(TENON_INVALID_ARGUMENT, "rewrite `" + rule.name +
                                            "`: from: expected a call of an operator, got `" +
                                            rule.from_text + "`");
  Reader(rule, rule.to, "to", false).run(rule.to_text);
  const Expression::Kind kind = rule.to.nodes[rule.to.root].kind;
  const bool is_tensor = kind == Expression::kCall ||
                         (kind == Expression::kVariable &&
                          rule.variables[rule.to.nodes[rule.to.root].variable].is_tensor());
  if (!is_tensor)
    throw Error(TENON_INVALID_ARGUMENT,
                "rewrite `" + rule.name + "`: to: expected an expression that is a tensor, got `" +
                    rule.to_text + "`");
  return rule;
}

tenon_graph_rewrite Rule::text() const {
  return {.struct_size = sizeof(tenon_graph_rewrite),
          .numerics = numerics,
          .units = units,
          .dtypes = dtypes,
          .name = name.c_str(),
          .from = from_text.c_str(),
          .to = to_text.c_str()};
}

}  // namespace tenon::graph
