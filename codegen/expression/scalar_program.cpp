// SPDX-License-Identifier: Apache-2.0
#include "expression/scalar_program.hpp"

#include <cstdlib>
#include <limits>
#include <map>

#include "expression/operator_names.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct NotExpressible {};

class Builder {
 public:
  Builder(const Operator& op, Vocabulary vocabulary)
      : op_(op), primitives_(vocabulary == Vocabulary::Primitives) {}

  int add(const ScalarValue& value) {
    const std::string& text = value.text;
    switch (value.form) {
      case ScalarValue::Literal:
        return literal(value);
      case ScalarValue::Limit:
        if (text == "lowest") return plain(ScalarStep::Lowest, 0);
        if (text == "highest") return plain(ScalarStep::Highest, 0);
        return text == "inf" ? number(text, std::numeric_limits<double>::infinity())
                             : number(text, std::numeric_limits<double>::quiet_NaN());
      case ScalarValue::Variable:
        return variable(value);
      case ScalarValue::IsNone: {
        int test = plain(ScalarStep::IsNone, attribute_params(op_.signature)[value.attribute]);
        return text == "!=" ? negation(test) : test;
      }
      case ScalarValue::Unary: {
        int operand = add(value.children[0]);
        return text == "!" ? negation(operand) : call(operator_of_sign(text, true), operand);
      }
      case ScalarValue::Binary:
      case ScalarValue::Conditional:
      case ScalarValue::Select: {
        std::vector<int> operands;  // in order: arguments of a call may be evaluated in any
        for (const ScalarValue& child : value.children) operands.push_back(add(child));
        return value.form == ScalarValue::Binary ? binary(text, operands[0], operands[1])
                                                 : select(operands[0], operands[1], operands[2]);
      }
      case ScalarValue::Function:
        return function(value);
    }
    throw NotExpressible();
  }

  // What later lines call `name`.
  void add_part(const std::string& name, const ScalarValue& value) { parts_[name] = add(value); }

  ScalarProgram steps;

 private:
  int step(ScalarStep step) {
    std::string key = cat(step.form, " ", step.text, " ", step.operands, " ", step.a, " ", step.b,
                          " ", step.c, " ", step.integer);
    auto [position, is_new] = numbers_.emplace(key, static_cast<int>(steps.size()));
    if (is_new) steps.push_back(std::move(step));
    if (steps.size() > kMaxSteps) throw NotExpressible();
    return position->second;
  }
  int plain(ScalarStep::Form form, int a) {
    ScalarStep row;
    row.form = form;
    row.a = a;
    return step(row);
  }
  int number(const std::string& text, double value) {
    ScalarStep row;
    row.form = ScalarStep::Float;
    row.text = text;
    row.number = value;
    return step(row);
  }
  int integer(ScalarStep::Form form, int64_t value) {
    ScalarStep row;
    row.form = form;
    row.integer = value;
    row.text = std::to_string(value);
    return step(row);
  }
  int call(const std::string& op, int a, int b = -1) {
    ScalarStep row;
    row.form = ScalarStep::Call;
    row.text = op;
    row.operands = b < 0 ? 1 : 2;
    row.a = a;
    row.b = b < 0 ? 0 : b;
    bool known = b < 0 ? primitive_of(op, Primitive::Unary).family != Primitive::None
                       : primitive_of(op, Primitive::Binary).family != Primitive::None ||
                             primitive_of(op, Primitive::Compare).family != Primitive::None;
    if (primitives_ && !known) throw NotExpressible();
    return step(row);
  }
  int select(int condition, int a, int b) {
    ScalarStep row;
    row.form = ScalarStep::Select;
    row.operands = 3;
    row.a = condition;
    row.b = a;
    row.c = b;
    return step(row);
  }
  int negation(int of) {
    return primitives_ ? call("equal", of, integer(ScalarStep::Bool, 0)) : call("logical_not", of);
  }

  int binary(const std::string& sign, int a, int b) {
    if (primitives_ && sign == ">") return binary("<", b, a);
    if (primitives_ && sign == ">=") return binary("<=", b, a);
    // Of bools the two are one.
    if (primitives_ && (sign == "&&" || sign == "||"))
      return call(sign == "&&" ? "bitwise_and" : "bitwise_or", a, b);
    return call(operator_of_sign(sign, false), a, b);
  }

  int literal(const ScalarValue& value) {
    switch (value.type.kind) {
      case ScalarType::Bool:
        return integer(ScalarStep::Bool, value.text == "true");
      case ScalarType::Int:
        return integer(ScalarStep::Int, std::strtoll(value.text.c_str(), nullptr, 10));
      case ScalarType::Float:
        return number(value.text, std::strtod(value.text.c_str(), nullptr));
      default:
        break;
    }
    if (primitives_) throw NotExpressible();
    ScalarStep row;
    row.form = ScalarStep::Text;
    row.text = value.text;
    return step(row);
  }

  int variable(const ScalarValue& value) {
    if (value.attribute >= 0) {
      if (primitives_ && value.type.kind == ScalarType::String) throw NotExpressible();
      return plain(ScalarStep::Attribute, attribute_params(op_.signature)[value.attribute]);
    }
    if (const auto part = parts_.find(value.text); part != parts_.end()) return part->second;
    if (op_.reduction && value.text == "n") return plain(ScalarStep::Count, 0);
    if (op_.reduction) return plain(value.text == "x" ? ScalarStep::Input : ScalarStep::Partial, 0);
    return plain(ScalarStep::Input, op_.signature.find_param(value.text));
  }

  int function(const ScalarValue& value) {
    const std::string& name = value.text;
    const int x = add(value.children[0]);
    const int y = value.children.size() > 1 ? add(value.children[1]) : -1;
    if (name == "normal_cdf") {  // no operator has these
      const int z = binary("*", x, number("-0.707106781186547524401", -0.707106781186547524401));
      return binary("*", call("erfc", z), number("0.5", 0.5));
    }
    if (name == "normal_pdf") {
      const int z = binary("*", binary("*", x, x), number("-0.5", -0.5));
      return binary("*", call("exp", z),
                    number("0.398942280401432677940", 0.398942280401432677940));
    }
    if (primitives_) return taken_apart(name, x, y);
    if (name == "arg") {
      const int imaginary = call("imag", x), real = call("real", x);
      return call("atan2", imaginary, real);
    }
    return call(operator_of_function(name), x, y);
  }

  int taken_apart(const std::string& name, int x, int y) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (name == "sigmoid" || name == "rsqrt") {
      const int one = number("1", 1);
      if (name == "rsqrt") return binary("/", one, call("sqrt", x));
      return binary("/", one, binary("+", one, call("exp", call("negative", x))));
    }
    if (name == "fmin" || name == "fmax") {  // the other one where one is NaN
      const int wins = binary(name == "fmin" ? "<" : ">", x, y), alone = binary("!=", y, y);
      return select(binary("||", wins, alone), x, y);
    }
    if (name == "isnan") return binary("!=", x, x);
    if (name == "isinf" || name == "isfinite") {
      const int size = call("abs", x), limit = number("inf", infinity);
      return binary(name == "isinf" ? "==" : "<", size, limit);
    }
    // Parts of a number that is its own real part.
    if (name == "real" || name == "conj") return x;
    if (name == "imag") return integer(ScalarStep::Int, 0);
    return call(operator_of_function(name), x, y);
  }

  const Operator& op_;
  const bool primitives_;
  std::map<std::string, int> numbers_;  // of steps, by what they compute
  std::map<std::string, int> parts_;    // of lines with a name
};

}  // namespace

std::optional<ScalarProgram> scalar_program(const Operator& op, const ScalarValue& value,
                                            Vocabulary vocabulary) {
  return scalar_program(op, ScalarLines{{}, value}, vocabulary);
}

std::optional<ScalarProgram> scalar_program(const Operator& op, const ScalarLines& lines,
                                            Vocabulary vocabulary) {
  try {
    Builder builder(op, vocabulary);
    for (const auto& [name, value] : lines.parts) builder.add_part(name, value);
    const int last = builder.add(lines.result);
    // The last step, since it contains all others; unless the whole is a part of itself: real(x).
    if (static_cast<size_t>(last) + 1 != builder.steps.size()) return std::nullopt;
    return std::move(builder.steps);
  } catch (const NotExpressible&) {
    return std::nullopt;
  }
}

std::optional<std::string> reducing_operator(const CheckedReduction& reduction) {
  const ScalarValue& combine = reduction.combine;
  const std::string& text = combine.text;
  if (combine.children.size() != 2 || combine.children[0].form != ScalarValue::Variable ||
      combine.children[1].form != ScalarValue::Variable ||
      combine.children[0].text == combine.children[1].text)
    return std::nullopt;
  if (text == "+") return "sum";
  if (text == "*") return "prod";
  if (text == "max" || text == "min") return text;
  if (text == "||") return "any";
  if (text == "&&") return "all";
  return std::nullopt;
}

}  // namespace tenon::codegen
