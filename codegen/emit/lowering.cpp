// SPDX-License-Identifier: Apache-2.0
#include "emit/lowering.hpp"

#include <map>

#include "expression/scalar.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct NotPrimitive {};  // thrown where an expression cannot be lowered

// Functions and signs that are one primitive.
const std::map<std::string, std::string>& unary_opcodes() {
  static const std::map<std::string, std::string> table = [] {
    std::map<std::string, std::string> opcodes = {{"-", "NEGATIVE"}, {"~", "INVERT"}};
    for (const char* name :
         {"abs",   "sign", "floor", "ceil",  "round", "trunc", "sqrt",  "cbrt", "exp",  "exp2",
          "expm1", "log",  "log2",  "log10", "log1p", "sin",   "cos",   "tan",  "asin", "acos",
          "atan",  "sinh", "cosh",  "tanh",  "asinh", "acosh", "atanh", "erf",  "erfc", "lgamma"})
      opcodes[name] = upper_case(name);
    return opcodes;
  }();
  return table;
}
const std::map<std::string, std::string>& binary_opcodes() {
  static const std::map<std::string, std::string> table = {{"+", "ADD"},
                                                           {"-", "SUBTRACT"},
                                                           {"*", "MULTIPLY"},
                                                           {"/", "DIVIDE"},
                                                           {"%", "REMAINDER"},
                                                           {"&", "AND"},
                                                           {"|", "OR"},
                                                           {"^", "XOR"},
                                                           {"<<", "SHIFT_LEFT"},
                                                           {">>", "SHIFT_RIGHT"},
                                                           {"&&", "AND"},
                                                           {"||", "OR"},
                                                           {"pow", "POW"},
                                                           {"atan2", "ATAN2"},
                                                           {"fmod", "FMOD"},
                                                           {"hypot", "HYPOT"},
                                                           {"floordiv", "FLOOR_DIVIDE"},
                                                           {"floormod", "REMAINDER"},
                                                           {"copysign", "COPYSIGN"},
                                                           {"nextafter", "NEXTAFTER"},
                                                           {"min", "MINIMUM"},
                                                           {"max", "MAXIMUM"}};
  return table;
}
const std::map<std::string, std::string>& compare_opcodes() {
  static const std::map<std::string, std::string> table = {
      {"==", "EQUAL"}, {"!=", "NOT_EQUAL"}, {"<", "LESS"}, {"<=", "LESS_EQUAL"}};
  return table;
}

constexpr const char* kInfinity = "std::numeric_limits<double>::infinity()";

// Steps in the order of evaluation, equal ones once.
class ProgramText {
 public:
  explicit ProgramText(const Operator& op) : op_(op) {}

  int add(const ScalarValue& value) {
    const std::string& text = value.text;
    switch (value.form) {
      case ScalarValue::Literal:
        return literal(value);
      case ScalarValue::Limit:
        if (text == "lowest") return step("Lowest");
        if (text == "highest") return step("Highest");
        return number(text == "inf" ? kInfinity : "std::numeric_limits<double>::quiet_NaN()");
      case ScalarValue::Variable:
        return variable(value);
      case ScalarValue::IsNone: {
        int test = step(cat("IsNone, 0, ", attribute_params(op_.signature)[value.attribute]));
        return text == "!=" ? negation(test) : test;
      }
      case ScalarValue::Unary:
        return text == "!" ? negation(add(value.children[0])) : unary(text, add(value.children[0]));
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
    throw NotPrimitive();
  }

  std::string rows() const {
    return join(steps_, "", [](const std::string& row) { return cat("    {Do::", row, "},\n"); });
  }

 private:
  int step(const std::string& row) {
    auto [position, is_new] = numbers_.emplace(row, static_cast<int>(steps_.size()));
    if (is_new) steps_.push_back(row);
    if (steps_.size() > 255) throw NotPrimitive();  // operands are bytes
    return position->second;
  }
  int number(const std::string& text) { return step(cat("Float, 0, 0, 0, 0, ", text)); }
  int negation(int of) { return compare("EQUAL", of, step("Bool, 0, 0, 0, 0, 0")); }
  int unary(const std::string& name, int a) {
    auto found = unary_opcodes().find(name);
    if (found == unary_opcodes().end()) throw NotPrimitive();
    return step(cat("Unary, TENON_UNARY_", found->second, ", ", a));
  }
  int compare(const std::string& opcode, int a, int b) {
    return step(cat("Compare, TENON_COMPARE_", opcode, ", ", a, ", ", b));
  }
  int select(int condition, int a, int b) {
    return step(cat("Select, 0, ", condition, ", ", a, ", ", b));
  }

  int binary(const std::string& name, int a, int b) {
    if (name == ">") return binary("<", b, a);
    if (name == ">=") return binary("<=", b, a);
    auto compared = compare_opcodes().find(name);
    if (compared != compare_opcodes().end()) return compare(compared->second, a, b);
    auto found = binary_opcodes().find(name);
    if (found == binary_opcodes().end()) throw NotPrimitive();
    return step(cat("Binary, TENON_BINARY_", found->second, ", ", a, ", ", b));
  }

  int literal(const ScalarValue& value) {
    switch (value.type.kind) {
      case ScalarType::Bool:
        return step(cat("Bool, 0, 0, 0, 0, ", value.text == "true" ? 1 : 0));
      case ScalarType::Int:
        return step(cat("Int, 0, 0, 0, 0, ", value.text));
      case ScalarType::Float:
        return number(value.text);
      default:
        throw NotPrimitive();
    }
  }

  int variable(const ScalarValue& value) {
    if (value.type.kind == ScalarType::String) throw NotPrimitive();
    if (value.attribute >= 0)
      return step(cat("Attribute, 0, ", attribute_params(op_.signature)[value.attribute]));
    if (op_.reduction) {
      if (value.text == "n") return step("Count");
      return step(value.text == "x" ? "Input, 0, 0" : "Partial");
    }
    return step(cat("Input, 0, ", op_.signature.find_param(value.text)));
  }

  int function(const ScalarValue& value) {
    const std::string& name = value.text;
    const int x = add(value.children[0]);
    const int y = value.children.size() > 1 ? add(value.children[1]) : x;
    if (name == "sigmoid" || name == "rsqrt") {
      const int one = number("1");
      if (name == "rsqrt") return binary("/", one, unary("sqrt", x));
      return binary("/", one, binary("+", one, unary("exp", unary("-", x))));
    }
    if (name == "fmin" || name == "fmax") {  // the other one where one is NaN
      const int wins = binary(name == "fmin" ? "<" : ">", x, y), alone = binary("!=", y, y);
      return select(binary("||", wins, alone), x, y);
    }
    if (name == "isnan") return binary("!=", x, x);
    if (name == "isinf" || name == "isfinite") {
      const int size = unary("abs", x), infinity = number(kInfinity);
      return binary(name == "isinf" ? "==" : "<", size, infinity);
    }
    // Parts of a number that is its own real part.
    if (name == "real" || name == "conj") return x;
    if (name == "imag") return step("Int, 0, 0, 0, 0, 0");
    return value.children.size() > 1 ? binary(name, x, y) : unary(name, x);
  }

  const Operator& op_;
  std::vector<std::string> steps_;
  std::map<std::string, int> numbers_;
};

std::string program(const Operator& op, const std::string& name, const ScalarValue& value) {
  ProgramText text(op);
  text.add(value);  // the last step, since it contains all others
  return cat("  static constexpr Step ", name, "[] = {\n", text.rows(), "  };\n");
}

const char* out_name(OutDtype::Rule rule) {
  switch (rule) {
    case OutDtype::Bool:
      return "Bool";
    case OutDtype::Int64:
      return "Int64";
    case OutDtype::Real:
      return "Real";
    case OutDtype::Accumulate:
      return "Accumulate";
    default:
      return "Same";
  }
}

constexpr const char* kCompute[] = {"TENON_COMPUTE_FIRST", "TENON_COMPUTE_PROMOTE",
                                    "TENON_COMPUTE_PROMOTE_FLOAT", "TENON_COMPUTE_OUTPUT"};

std::string entry_point(const Operator& op, const std::string& definition) {
  return fill(R"(tenon_status decompose_@op@(
    tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t, tenon_err* err) {
  using namespace lowering;
@definition@  return run(definition, args, outs, err);
}

)",
              {{"op", op.name}, {"definition", definition}});
}

std::string elementwise(const Operator& op) {
  std::string programs, cases;
  size_t count = 0;
  for (const ScalarCase& scalar_case : op.cases) {
    // What functions of complex numbers are is not said by their opcodes.
    const DtypeMask dtypes = scalar_case.mask & ~complex_dtypes();
    if (!dtypes) continue;
    std::string name = cat("program", count);
    programs += program(op, name, check_case(op, {dtypes, scalar_case.expression}));
    cases += cat("      {UINT64_C(", hex64(dtypes), "), {", name, ", std::size(", name, ")}},\n");
    ++count;
  }
  if (count == 0) throw NotPrimitive();
  DtypeMask tensors = 0, promoted = 0;
  for (size_t i = 0; i < op.signature.params.size(); ++i) {
    const Param& param = op.signature.params[i];
    if (param.is_tensor()) tensors |= DtypeMask{1} << i;
    bool first = op.dtypes.compute == Compute::First && !op.dtypes.checked.count(param.name);
    if (param.is_tensor() && (first || op.dtypes.is_promoted(param.name)))
      promoted |= DtypeMask{1} << i;
  }
  return cat("// ", op.where.origin(), "\n",
             entry_point(op, cat(programs, "  static constexpr Case cases[] = {\n", cases, "  };\n",
                                 "  static constexpr Elementwise definition = {", quoted(op.name),
                                 ", ", hex64(tensors), ", ", hex64(promoted), ", ",
                                 kCompute[static_cast<int>(op.dtypes.compute)], ", Out::",
                                 out_name(op.dtypes.outs[0].rule), ", ", count, ", cases};\n")));
}

// The primitive that combines partial results.
const char* reduction_opcode(const ScalarValue& combine) {
  const std::string& text = combine.text;
  if (combine.children.size() != 2 || combine.children[0].form != ScalarValue::Variable ||
      combine.children[1].form != ScalarValue::Variable ||
      combine.children[0].text == combine.children[1].text)
    throw NotPrimitive();
  if (text == "+") return "SUM";
  if (text == "*") return "PROD";
  if (text == "max" || text == "||") return "MAX";
  if (text == "min" || text == "&&") return "MIN";
  throw NotPrimitive();
}

std::string reduction(const Operator& op) {
  CheckedReduction checked = check_reduction(op);
  auto index_of = [&](size_t rule_param, const char* name) {
    const auto& params = op.shape->params;
    int index = op.signature.find_param(params.size() > rule_param ? params[rule_param] : name);
    return index < 0 ? std::string("~0u") : std::to_string(index);
  };
  std::string programs;
  auto add = [&](const char* name, const ScalarValue& value) {
    programs += program(op, name, value);
    return cat("{", name, ", std::size(", name, ")}");
  };
  const std::string init = checked.init ? add("init", *checked.init) : "{nullptr, 0}";
  const std::string map = add("map", checked.map), finish = add("finish", checked.finish);
  return cat(
      "// ", op.where.origin(), "\n",
      entry_point(op, cat(programs, "  static constexpr Reduction definition = {\n      ",
                          quoted(op.name), ", ", index_of(1, "axis"), ", ", index_of(2, "keepdim"),
                          ", ", kCompute[static_cast<int>(op.dtypes.compute)],
                          ", Out::", out_name(op.dtypes.outs[0].rule), ", TENON_REDUCTION_",
                          reduction_opcode(checked.combine), ", ", checked.truth ? "true" : "false",
                          ",\n      ", init, ", ", map, ", ", finish, "};\n")));
}

}  // namespace

bool has_derived_lowering(const Operator& op) { return !derived_lowering(op).empty(); }

std::string derived_lowering(const Operator& op) {
  if (op.decompose_native || !op.decompose.empty()) return "";
  try {
    if (!op.cases.empty()) return elementwise(op);
    if (op.reduction) return reduction(op);
  } catch (const NotPrimitive&) {
  }
  return "";
}

}  // namespace tenon::codegen
