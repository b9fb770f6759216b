// SPDX-License-Identifier: Apache-2.0
#include "emit/scalar_kernel_c.hpp"

#include <cmath>
#include <cstdlib>

#include "emit/scalar_cpp.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

using Kind = ScalarType::Kind;

bool is_host(Kind kind) { return kind == Kind::Int || kind == Kind::Float; }

bool reads_attribute(const ScalarValue& value) {
  if (value.attribute >= 0) return true;
  for (const ScalarValue& child : value.children)
    if (reads_attribute(child)) return true;
  return false;
}

// A number that float32 has not is written with what float32 has nearest: compilers refuse such literals.
std::string float_literal(const std::string& text) {
  const double number = std::strtod(text.c_str(), nullptr);
  const auto nearest = static_cast<float>(number);
  if (number != 0 && nearest == 0) return cat("TK_NUMBER_BEYOND_F32(", text, ", TK_NUMBER(0.0))");
  if (std::isinf(nearest)) return cat("TK_NUMBER_BEYOND_F32(", text, ", TK_INFINITY)");
  return cat("TK_NUMBER(", text, ")");
}

class KernelCTranslator {
 public:
  KernelCTranslator(const Signature& signature, KernelElements elements)
      : signature_(signature),
        integers_(elements == KernelElements::Integers),
        complex_(elements == KernelElements::Complex) {}

  std::string text(const ScalarValue& value) {
    if (is_for_host(value)) return hoisted(value);
    switch (value.form) {
      case ScalarValue::Literal:
        if (value.type.kind == Kind::Bool) return value.text == "true" ? "1" : "0";
        return value.type.kind == Kind::Float ? float_literal(value.text) : value.text;
      case ScalarValue::Limit:
        return value.text == "inf"      ? "TK_INFINITY"
               : value.text == "nan"    ? "TK_NAN"
               : value.text == "lowest" ? "TK_LOWEST"
                                        : "TK_HIGHEST";
      case ScalarValue::Variable:
        return cat("e_", value.text);
      case ScalarValue::Unary:
        if (complex_ && value.type.kind == Kind::Element)
          return cat("k_neg(", text(value.children[0]), ")");
        return narrowed(value, cat("(", value.text, text(value.children[0]), ")"));
      case ScalarValue::Binary:
        return binary(value);
      case ScalarValue::Conditional:
      case ScalarValue::Select: {
        // Hoisted values are numbered in the order in which they are met. Arguments of a function are
        // evaluated in an order that the compiler chooses, so that the order is written out here.
        const std::string no = as(value.children[2], value.type.kind);
        const std::string yes = as(value.children[1], value.type.kind);
        const std::string condition = text(value.children[0]);
        return cat("(", condition, " ? ", yes, " : ", no, ")");
      }
      case ScalarValue::Function:
        return function(value);
      case ScalarValue::IsNone:
        break;  // always for the host
    }
    return "";
  }

  std::string as(const ScalarValue& value, Kind kind) {
    std::string plain = text(value);
    if (value.type.kind == kind) return plain;
    if (complex_ && kind == Kind::Element) return cat("k_of(", plain, ")");
    if (complex_ && kind == Kind::Real) return cat("((R)", plain, ")");
    if (kind == Kind::Element || kind == Kind::Real)
      return starts_with(plain, "TK_") ? plain : cat("((T)", plain, ")");
    if (kind == Kind::Bool) return cat("(", plain, " != 0)");
    return plain;
  }

  std::string as_element(const ScalarValue& value) {
    return is_host(value.type.kind) ? as(value, Kind::Element) : text(value);
  }

  KernelCText finish(std::string expression) {
    std::string declarations = declare_attributes(signature_, hosted_, names_, "  ");
    return {"", std::move(expression), std::move(values_), std::move(declarations)};
  }

 private:
  static bool starts_with(const std::string& text, const std::string& start) {
    return text.compare(0, start.size(), start) == 0;
  }

  static bool is_for_host(const ScalarValue& value) {
    if (value.type.varying || !reads_attribute(value)) return false;
    if (value.type.kind == Kind::Element) return value.form == ScalarValue::Variable;
    return is_host(value.type.kind) || value.type.kind == Kind::Bool;
  }

  std::string hoisted(const ScalarValue& value) {
    std::string cpp = value.type.kind == Kind::Element ? cat("attributes[", value.attribute, "]")
                                                       : scalar_cpp(value, names_);
    size_t index = 0;
    while (index < values_.size() && values_[index].cpp != cpp) ++index;
    if (index == values_.size()) {
      const char* type = value.type.kind == Kind::Bool                ? "tk_i32"
                         : value.type.kind == Kind::Int               ? "tk_i64"
                         : complex_ && value.type.kind == Kind::Float ? "R"
                                                                      : "T";
      values_.push_back({cpp, type});
      if (value.type.kind != Kind::Element) hosted_.children.push_back(value);
    }
    return cat("v", index);
  }

  std::string narrowed(const ScalarValue& value, const std::string& plain) const {
    return value.type.kind == Kind::Element && integers_ ? cat("((T)", plain, ")") : plain;
  }

  std::string binary(const ScalarValue& value) {
    const ScalarValue& left = value.children[0];
    const ScalarValue& right = value.children[1];
    Kind kind = left.type.kind;
    if (left.type.kind != right.type.kind)
      for (Kind wider : {Kind::Float, Kind::Bool, Kind::Real, Kind::Element})
        if (left.type.kind == wider || right.type.kind == wider) kind = wider;
    std::string a = as(left, kind), b = as(right, kind);
    const std::string& sign = value.text;
    if (complex_ && kind == Kind::Element)
      return cat("k_", complex_operator(sign), "(", a, ", ", b, ")");
    if (sign == "%") return cat("k_floormod(", a, ", ", b, ")");
    if (kind == Kind::Element && sign == "<<") return cat("k_shift_left(", a, ", ", b, ")");
    if (kind == Kind::Element && sign == ">>") return cat("k_shift_right(", a, ", ", b, ")");
    return narrowed(value, cat("(", a, " ", sign, " ", b, ")"));
  }

  static const char* complex_operator(const std::string& sign) {
    return sign == "+"    ? "add"
           : sign == "-"  ? "sub"
           : sign == "*"  ? "mul"
           : sign == "/"  ? "div"
           : sign == "==" ? "eq"
                          : "ne";  // the checker refuses the others
  }

  std::string function(const ScalarValue& value) {
    const bool real = of_parts(value);
    return cat(real ? "r_" : "k_", value.text, "(",
               join(value.children, ", ",
                    [&](const ScalarValue& child) {
                      return child.type.kind == Kind::Bool
                                 ? text(child)
                                 : as(child, real ? Kind::Real : Kind::Element);
                    }),
               ")");
  }

  // Whether a function's arguments are parts of complex numbers, and numbers beside them.
  static bool of_parts(const ScalarValue& value) {
    bool any = false;
    for (const ScalarValue& child : value.children) {
      if (child.type.kind != Kind::Real && !is_host(child.type.kind)) return false;
      any = any || child.type.kind == Kind::Real;
    }
    return any;
  }

  const Signature& signature_;
  bool integers_, complex_;
  // What C++ code around host values calls its types; elements do not occur there.
  ScalarNames names_{"double", "double", false, "attributes"};
  std::vector<KernelCText::HostValue> values_;
  ScalarValue hosted_;  // its children: what C++ computes
};

}  // namespace

KernelCText scalar_kernel_c(const Signature& signature, const ScalarValue& value,
                            KernelElements elements) {
  return scalar_kernel_c(signature, ScalarLines{{}, value}, elements);
}

KernelCText scalar_kernel_c(const Signature& signature, const ScalarLines& lines,
                            KernelElements elements) {
  KernelCTranslator translator(signature, elements);
  std::string parts;
  for (const auto& [name, value] : lines.parts)
    parts += cat(value.type.kind == Kind::Bool                                          ? "int"
                 : value.type.kind == Kind::Real && elements == KernelElements::Complex ? "R"
                                                                                        : "T",
                 " e_", name, " = ", translator.text(value), "; ");
  std::string expression = translator.as_element(lines.result);
  KernelCText text = translator.finish(std::move(expression));
  text.parts = std::move(parts);
  return text;
}

KernelCText scalar_kernel_c(const Signature& signature, const ScalarSteps& steps) {
  KernelCTranslator translator(signature, KernelElements::Floating);
  std::string statements;
  for (const auto& [name, value] : steps)
    statements += cat("T e_", name, " = ", translator.text(value), "; ");
  for (size_t i = 0; i < signature.results.size(); ++i)
    statements += cat("r", i, " = e_", signature.results[i].name, "; ");
  return translator.finish(std::move(statements));
}

}  // namespace tenon::codegen
