// SPDX-License-Identifier: Apache-2.0
#include "emit/scalar_cpp.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using Kind = ScalarType::Kind;

bool is_host(const ScalarValue& value) {
  return value.type.kind == Kind::Int || value.type.kind == Kind::Float;
}

// A number that float32 holds as a subnormal or not at all, as the last coefficients of a power series are.
bool is_tiny(const ScalarValue& value) {
  if (value.form != ScalarValue::Literal || value.type.kind != Kind::Float) return false;
  const double size = std::fabs(std::strtod(value.text.c_str(), nullptr));
  return size > 0 && size < std::numeric_limits<float>::min();
}

class CppTranslator {
 public:
  explicit CppTranslator(const ScalarNames& names) : names_(names) {}

  // In its own type.
  std::string text(const ScalarValue& value) const {
    switch (value.form) {
      case ScalarValue::Literal:
        return value.type.kind == Kind::String ? cat("std::string_view(", quoted(value.text), ")")
                                               : value.text;
      case ScalarValue::Limit:
        return limit(value);
      case ScalarValue::Variable:
        return value.text;
      case ScalarValue::Unary: {
        std::string plain = cat("(", value.text, text(value.children[0]), ")");
        return narrowed(value, plain);
      }
      case ScalarValue::Binary:
        return binary(value);
      case ScalarValue::Conditional:
        return cat("(", text(value.children[0]), " ? ", as(value.children[1], value.type.kind),
                   " : ", as(value.children[2], value.type.kind), ")");
      case ScalarValue::Select:
        return select(value);
      case ScalarValue::Function:
        return function(value);
      case ScalarValue::IsNone:
        return cat(value.text == "!=" ? "!" : "", none_name(value.attribute));
    }
    return "";
  }

  // In the type of `kind`, as an operand beside values of that kind.
  std::string as(const ScalarValue& value, Kind kind) const {
    std::string plain = text(value);
    if (value.type.kind == kind) return plain;
    if (kind == Kind::Element && is_tiny(value))
      return cat("math::normal_or_zero<", names_.element, ">(", plain, ")");
    if (kind == Kind::Element) return cat(names_.element, "(", unwrapped(plain), ")");
    if (kind == Kind::Real) return cat(names_.real, "(", unwrapped(plain), ")");
    if (kind == Kind::Bool) return cat("bool(", unwrapped(plain), ")");
    return plain;
  }

  static std::string none_name(int attribute) { return cat("attribute", attribute, "_is_none"); }

 private:
  static std::string unwrapped(const std::string& text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return text;
    int depth = 0;
    for (size_t i = 0; i + 1 < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth == 0) return text;
    }
    return text.substr(1, text.size() - 2);
  }

  // C++ computes small integers in int; functions and comparisons want the element type back.
  std::string narrowed(const ScalarValue& value, const std::string& plain) const {
    return value.type.kind == Kind::Element && names_.integers
               ? cat(names_.element, "(", unwrapped(plain), ")")
               : plain;
  }

  std::string limit(const ScalarValue& value) const {
    if (value.text == "inf") return "std::numeric_limits<double>::infinity()";
    if (value.text == "nan") return "std::numeric_limits<double>::quiet_NaN()";
    std::string limits = cat("std::numeric_limits<", names_.element, ">::");
    std::string finite = value.text == "lowest" ? limits + "lowest()" : limits + "max()";
    return cat("(", limits, "has_infinity ? ", value.text == "lowest" ? "-" : "", limits,
               "infinity() : ", finite, ")");
  }

  std::string binary(const ScalarValue& value) const {
    const ScalarValue& left = value.children[0];
    const ScalarValue& right = value.children[1];
    Kind kind = operand_kind(left, right);
    std::string a = as(left, kind), b = as(right, kind);
    const std::string& sign = value.text;
    bool element = kind == Kind::Element;
    if (sign == "%")
      return cat("math::floormod(",
                 element ? cat(a, ", ", b) : cat("double(", a, "), double(", b, ")"), ")");
    if (element && sign == "<<") return cat("math::shift_left(", a, ", ", b, ")");
    if (element && sign == ">>") return cat("math::shift_right(", a, ", ", b, ")");
    if (!element && kind == Kind::Int && sign == "/")
      return cat("(double(", a, ") / double(", b, "))");
    // Of elements both sides are computed: a jump around the second one keeps loops from being vectorised.
    if (value.type.varying && kind == Kind::Bool && (sign == "&&" || sign == "||"))
      return cat("(", a, sign == "&&" ? " & " : " | ", b, ")");
    return narrowed(value, cat("(", a, " ", sign, " ", b, ")"));
  }

  static Kind operand_kind(const ScalarValue& left, const ScalarValue& right) {
    Kind a = left.type.kind, b = right.type.kind;
    if (a == b) return a;
    for (Kind kind : {Kind::Element, Kind::Real, Kind::Bool, Kind::Float})
      if (a == kind || b == kind) return kind;
    return a;
  }

  std::string select(const ScalarValue& value) const {
    Kind kind = value.type.kind;
    std::string condition = text(value.children[0]), a = as(value.children[1], kind),
                b = as(value.children[2], kind);
    if (kind == Kind::Element || kind == Kind::Real)
      return cat("math::select(", unwrapped(condition), ", ", unwrapped(a), ", ", unwrapped(b),
                 ")");
    return cat("(", condition, " ? ", a, " : ", b, ")");
  }

  std::string function(const ScalarValue& value) const {
    if (value.type.kind == Kind::Float)
      return cat("std::", value.text, "(",
                 join(value.children, ", ",
                      [&](const ScalarValue& child) { return cat("double(", text(child), ")"); }),
                 ")");
    Kind kind = Kind::Element;
    bool real = true;
    for (const ScalarValue& child : value.children)
      real = real && (child.type.kind == Kind::Real || is_host(child));
    bool any_real = false;
    for (const ScalarValue& child : value.children)
      any_real = any_real || child.type.kind == Kind::Real;
    if (real && any_real) kind = Kind::Real;
    return cat(
        "math::", value.text, "(",
        join(value.children, ", ",
             [&](const ScalarValue& child) {
               return unwrapped(child.type.kind == Kind::Bool ? text(child) : as(child, kind));
             }),
        ")");
  }

  const ScalarNames& names_;
};

void collect_attributes(const ScalarValue& value, std::set<int>& read, std::set<int>& tested) {
  if (value.form == ScalarValue::IsNone)
    tested.insert(value.attribute);
  else if (value.attribute >= 0)
    read.insert(value.attribute);
  for (const ScalarValue& child : value.children) collect_attributes(child, read, tested);
}

}  // namespace

std::string scalar_cpp(const ScalarValue& value, const ScalarNames& names) {
  return CppTranslator(names).text(value);
}

std::string scalar_cpp_as_element(const ScalarValue& value, const ScalarNames& names) {
  CppTranslator translator(names);
  return is_host(value) ? translator.as(value, Kind::Element) : translator.text(value);
}

std::string declare_attributes(const Signature& signature, const ScalarValue& value,
                               const ScalarNames& names, const std::string& indent) {
  std::set<int> read, tested;
  collect_attributes(value, read, tested);
  std::vector<int> params = attribute_params(signature);
  std::string result;
  for (int attribute : tested)
    result += cat(indent, "const bool ", CppTranslator::none_name(attribute), " = ",
                  names.attributes, "[", attribute, "].tag == TENON_VALUE_NONE;\n");
  for (int attribute : read) {
    const Param& param = signature.params[params[attribute]];
    std::string source = cat(names.attributes, "[", attribute, "]");
    std::string type, read_text;
    switch (param.kind) {
      case ParamKind::Int:
        type = "int64_t";
        read_text = cat("attribute_int(", source, ")");
        break;
      case ParamKind::Float:
        type = "double";
        read_text = cat("attribute_float(", source, ")");
        break;
      case ParamKind::Bool:
        type = "bool";
        read_text = cat("attribute_bool(", source, ")");
        break;
      case ParamKind::String:
        type = "std::string_view";
        read_text =
            cat("std::string_view(static_cast<const char*>(", source, ".v.p), ", source, ".aux)");
        break;
      default:
        type = names.element;
        read_text = names.integers
                        ? cat("std::is_integral_v<", type, "> ? ", type, "(attribute_int(", source,
                              ")) : ", type, "(attribute_float(", source, "))")
                        : cat(type, "(attribute_float(", source, "))");
    }
    result += cat(indent, "const ", type, " ", param.name, " = ", read_text, ";\n");
  }
  return result;
}

bool scalar_reads(const ScalarValue& value, const std::string& name) {
  if (value.form == ScalarValue::Variable && value.text == name) return true;
  for (const ScalarValue& child : value.children)
    if (scalar_reads(child, name)) return true;
  return false;
}

int scalar_cost(const ScalarValue& value) {
  int cost = 0;
  for (const ScalarValue& child : value.children) cost += scalar_cost(child);
  if (!value.type.varying && value.form != ScalarValue::Function) return cost;
  static const std::set<std::string> cheap = {
      "abs",   "sign",  "min",   "max",      "fmin", "fmax", "floor", "ceil",    "round",
      "trunc", "isnan", "isinf", "isfinite", "real", "imag", "conj",  "copysign"};
  static const std::set<std::string> dear = {"pow",      "lgamma", "digamma",   "floormod",
                                             "floordiv", "fmod",   "nextafter", "gcd"};
  switch (value.form) {
    case ScalarValue::Function:
      if (cheap.count(value.text)) return cost + 1;
      if (value.text == "sqrt" || value.text == "rsqrt") return cost + 4;
      return cost + (dear.count(value.text) ? 64 : 16);
    case ScalarValue::Binary:
      return cost + (value.text == "/" || value.text == "%" ? 4 : 1);
    case ScalarValue::Unary:
    case ScalarValue::Select:
      return cost + 1;
    default:
      return cost;
  }
}

}  // namespace tenon::codegen
