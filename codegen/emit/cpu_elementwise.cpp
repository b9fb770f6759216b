// SPDX-License-Identifier: Apache-2.0
#include <tenon/abi.h>

#include <algorithm>
#include <set>

#include "emit/cpu_kernels.hpp"
#include "emit/scalar_cpp.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string out_type(const Operator& op) {
  switch (op.dtypes.outs[0].rule) {
    case OutDtype::Bool:
      return "bool";
    case OutDtype::Int64:
      return "int64_t";
    case OutDtype::Real:
      return "R";
    case OutDtype::Accumulate:
      return "std::conditional_t<!std::is_integral_v<T>, T, std::conditional_t<std::is_signed_v<T> "
             "|| "
             "std::is_same_v<T, bool>, int64_t, uint64_t>>";
    default:
      return "T";
  }
}

// Inputs that are not converted to the compute dtype have exactly one of their own
// (scalar_check.cpp).
std::string in_type(const Operator& op, const Param& param) {
  auto checked = op.dtypes.checked.find(param.name);
  if (checked == op.dtypes.checked.end()) return "T";
  for (size_t id = 0; id < dtypes().size(); ++id)
    if (checked->second == DtypeMask{1} << id) return cpu_element_type(static_cast<int>(id));
  return "T";
}

std::string loop_name(const Operator& op, size_t index) {
  return op.cases.size() == 1 ? cat("loop_", op.name) : cat("loop_", op.name, "_", index);
}

// Functions with loops of their own (math/arrays.hpp), if they are the whole expression.
bool is_array_call(const ScalarValue& value, const std::vector<Param>& params) {
  static const std::set<std::string> functions = {
      "exp", "exp2", "log", "log2", "log10",  "log1p",   "atanh", "cbrt",     "sqrt",
      "sin", "cos",  "tan", "pow",  "lgamma", "digamma", "fmod",  "floormod", "floordiv"};
  if (value.form != ScalarValue::Function || !functions.count(value.text)) return false;
  if (value.children.size() != params.size()) return false;
  for (size_t i = 0; i < params.size(); ++i) {
    const ScalarValue& child = value.children[i];
    if (child.form != ScalarValue::Variable || child.text != params[i].name ||
        !params[i].is_tensor())
      return false;
  }
  return true;
}

// Sums, products and quotients of functions that the CPU has as vectorised loops
// (math/vec.hpp).
bool is_vectorized(const ScalarValue& value, bool& calls) {
  static const std::set<std::string> functions = {
      "exp",  "exp2",    "expm1", "log",        "log2",      "log10", "log1p", "sin",
      "cos",  "tan",     "asin",  "acos",       "atan",      "atan2", "sinh",  "cosh",
      "tanh", "asinh",   "acosh", "atanh",      "erf",       "erfc",  "cbrt",  "abs",
      "max",  "sigmoid", "rsqrt", "normal_cdf", "normal_pdf"};
  const bool is_call = value.form == ScalarValue::Function;
  if (is_call && !functions.count(value.text)) return false;
  if (value.type.varying && value.type.kind != ScalarType::Element) return false;
  if (!is_call && value.form != ScalarValue::Literal && value.form != ScalarValue::Variable &&
      value.form != ScalarValue::Unary && value.form != ScalarValue::Binary)
    return false;
  static const std::set<std::string> signs = {"+", "-", "*", "/"};
  if (value.form == ScalarValue::Binary && !signs.count(value.text)) return false;
  if (value.form == ScalarValue::Unary && value.text != "-") return false;
  calls = calls || (is_call && value.type.varying && value.text != "abs" && value.text != "max");
  for (const ScalarValue& child : value.children)
    if (!is_vectorized(child, calls)) return false;
  return true;
}

// Of one element, in additions. Of dearer operators the conversions are a small part.
constexpr int kMaxLowPrecisionCost = 4;

// `const T t = ...;` for each line with a name.
std::string declared_parts(const ScalarSteps& parts, const ScalarNames& names, bool vectorized) {
  std::string text;
  for (const auto& [name, value] : parts) {
    const bool is_bool = value.type.kind == ScalarType::Bool;
    const bool is_real = value.type.kind == ScalarType::Real;
    const std::string type = is_bool      ? "bool"
                             : vectorized ? "auto"
                             : is_real    ? names.real
                                          : names.element;
    text += cat("const ", type, " ", name, " = ", scalar_cpp_as_element(value, names), "; ");
  }
  return text;
}

// One pass over the elements. A choice that does not depend on them is made outside.
std::string run_statement(const ScalarLines& lines, const std::string& types,
                          const std::vector<Param>& params,
                          const std::vector<std::string>& param_types, const ScalarNames& names,
                          const std::string& indent) {
  const ScalarValue& value = lines.result;
  if (value.form == ScalarValue::Conditional && lines.parts.empty()) {
    auto branch = [&](size_t i) {
      return run_statement({{}, value.children[i]}, types, params, param_types, names,
                           indent + "  ");
    };
    return cat(indent, "if (", scalar_cpp(value.children[0], names), ") {\n", branch(1), indent,
               "} else {\n", branch(2), indent, "}\n");
  }
  if (is_array_call(value, params))
    return cat(indent, "run_loop<", types, ">(data, strides, n, math::call::", value.text,
               "{});\n");
  bool calls = false;
  const ScalarValue all = all_lines(lines);
  const auto is_vector_line = [&](const ScalarValue& line) { return is_vectorized(line, calls); };
  const bool vectorized = !names.integers &&
                          std::all_of(all.children.begin(), all.children.end(), is_vector_line) &&
                          calls;
  std::vector<std::string> declared;
  for (size_t i = 0; i < param_types.size(); ++i)
    declared.push_back(cat(vectorized ? "const auto&" : param_types[i],
                           scalar_reads(all, params[i].name) ? " " + params[i].name : ""));
  const std::string function =
      cat("[=](", join(declared, ", "), ") { ", declared_parts(lines.parts, names, vectorized),
          "return ", scalar_cpp_as_element(value, names), "; }");
  return cat(indent, "run_loop<", types, ">(data, strides, n, ",
             vectorized ? cat("math::vectorized(", function, ")") : function, ");\n");
}

std::string loop(const Operator& op, size_t index) {
  const ScalarCase& scalar_case = op.cases[index];
  const ScalarLines lines = check_case(op, scalar_case);
  ScalarNames names{"T", "R", (scalar_case.mask & (integer_dtypes() | bool_dtypes())) != 0,
                    "attributes"};
  std::vector<std::string> param_types;
  for (const Param& param : op.signature.params)
    if (param.is_tensor()) param_types.push_back(in_type(op, param));
  std::string types = cat(out_type(op), ", ", join(param_types, ", "));
  std::string body = run_statement(lines, types, op.signature.params, param_types, names, "  ");
  bool real_parts = types[0] == 'R' || body.find("R(") != std::string::npos ||
                    body.find("const R ") != std::string::npos;
  std::string attributes = declare_attributes(op.signature, all_lines(lines), names, "  ");
  return fill(R"(// @file@: @source@
template <class T>
void @name@(char* const* data, const int64_t* strides, int64_t n, const tenon_value*@argument@) {
@real@@attributes@@body@}
)",
              {{"file", scalar_case.expression.where.source()},
               {"source", text_of(scalar_case.expression)},
               {"name", loop_name(op, index)},
               {"argument", attributes.empty() ? "" : " attributes"},
               {"real", real_parts ? "  using R = decltype(math::real(T()));\n" : ""},
               {"attributes", attributes},
               {"body", body}});
}

// Choices between elements as they are, which integers of their size go through as well.
bool is_choice(const ScalarLines& lines) {
  const ScalarValue& value = lines.result;
  return lines.parts.empty() && value.form == ScalarValue::Select &&
         std::all_of(value.children.begin(), value.children.end(),
                     [](const ScalarValue& child) { return child.form == ScalarValue::Variable; });
}

// The reduced floats that have loops of their own.
DtypeMask reduced_loop_dtypes(const Operator& op) {
  DtypeMask reduced = op.dtypes.allow & ~cpu_loop_dtypes(op.dtypes.allow);
  if (op.cases.size() == 1 && is_choice(check_case(op, op.cases[0]))) return reduced;
  for (const Param& param : op.signature.params)
    if (param.is_tensor() && in_type(op, param) != "T") return 0;
  if (out_type(op) != "T" && out_type(op) != "R") return 0;
  DtypeMask found = 0;
  for (const ScalarCase& scalar_case : op.cases) {
    const ScalarLines lines = check_case(op, scalar_case);
    if (lines.parts.empty() && scalar_cost(lines.result) <= kMaxLowPrecisionCost &&
        is_low_precision_arithmetic(lines.result))
      found |= scalar_case.mask;
  }
  return found & reduced & low_precision_dtypes();
}

// One operation that IEEE 754 defines, of elements and numbers (TENON_KERNEL_IEEE).
bool is_ieee(const ScalarValue& value) {
  static const std::set<std::string> kSigns = {"+", "-", "*", "/"},
                                     kFunctions = {"abs", "sqrt", "max", "min"};
  const bool is_operation =
      ((value.form == ScalarValue::Binary || value.form == ScalarValue::Unary) &&
       kSigns.count(value.text)) ||
      (value.form == ScalarValue::Function && kFunctions.count(value.text));
  return is_operation &&
         std::all_of(value.children.begin(), value.children.end(), [](const ScalarValue& child) {
           return child.form == ScalarValue::Literal ||
                  (child.form == ScalarValue::Variable && child.attribute < 0);
         });
}

bool is_ieee(const Operator& op) {
  return std::any_of(op.cases.begin(), op.cases.end(), [&](const ScalarCase& each) {
    if (!(each.mask >> TENON_DTYPE_F32 & 1)) return false;
    const ScalarLines lines = check_case(op, each);
    return lines.parts.empty() && is_ieee(lines.result);
  });
}

// The tensor whose dtype is the compute dtype.
size_t dtype_input(const Operator& op, size_t inputs) {
  for (size_t i = 0; i < inputs; ++i)
    if (!op.dtypes.checked.count(op.signature.params[i].name)) return i;
  return 0;
}

std::string elementwise_definition(const Operator& op) {
  std::string text;
  int cost = 1;
  for (size_t i = 0; i < op.cases.size(); ++i) {
    text += loop(op, i);
    cost = std::max(cost, scalar_cost(all_lines(check_case(op, op.cases[i]))));
  }
  size_t inputs = 0;
  for (const Param& param : op.signature.params) inputs += param.is_tensor();
  auto case_of = [&](int dtype) {
    size_t i = 0;
    while (i < op.cases.size() && !(cpu_loop_dtypes(op.cases[i].mask) >> dtype & 1)) ++i;
    return i;
  };
  auto loop_of = [&](int dtype) -> std::string {
    const char* type = cpu_element_type(dtype);
    const size_t i = case_of(type ? dtype : TENON_DTYPE_F32);
    if (i == op.cases.size()) return "nullptr";
    if (type) return cat(loop_name(op, i), "<", type, ">");
    if (is_choice(check_case(op, op.cases[i])))
      return cat(loop_name(op, i),
                 low_precision_dtypes() >> dtype & 1 ? "<uint16_t>" : "<uint8_t>");
    return cat("TENON_LOW_PRECISION_LOOP(", loop_name(op, i), ", ", low_precision_type(dtype), ")");
  };
  return text +
         fill(R"(const ElementwiseKernel kernel_@op@ = {
    .op = @name@,
    .inputs = @inputs@,
    .dtype_input = @dtype_input@,
    .cost = @cost@,
@promises@    .dtype_mask = UINT64_C(@mask@),  // @classes@
    .loops = {@loops@}};
)",
              {{"op", op.name},
               {"name", quoted(op.qualified_name())},
               {"inputs", std::to_string(inputs)},
               {"dtype_input", std::to_string(dtype_input(op, inputs))},
               {"cost", std::to_string(cost)},
               {"promises", is_ieee(op) ? "    .promises = TENON_KERNEL_IEEE,\n" : ""},
               {"mask", hex64(op.dtypes.allow)},
               {"classes", describe(op.dtypes.allow)},
               {"loops", cpu_loop_table(op.dtypes.allow, loop_of, reduced_loop_dtypes(op))}});
}

}  // namespace

std::vector<CpuKernel> cpu_elementwise_kernels(const Package& package, const std::string& file) {
  std::vector<CpuKernel> kernels;
  for (const Operator* op : package.in_file(file))
    if (!op->cases.empty()) kernels.push_back({op, elementwise_definition(*op)});
  return kernels;
}

}  // namespace tenon::codegen
