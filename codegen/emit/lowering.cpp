// SPDX-License-Identifier: Apache-2.0
#include "emit/lowering.hpp"

#include "expression/operator_names.hpp"
#include "expression/scalar_program.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

struct NotPrimitive {};  // thrown where an expression cannot be lowered

std::string row_of(const ScalarStep& step) {
  switch (step.form) {
    case ScalarStep::Input:
      return cat("Input, 0, ", step.a);
    case ScalarStep::Attribute:
      return cat("Attribute, 0, ", step.a);
    case ScalarStep::IsNone:
      return cat("IsNone, 0, ", step.a);
    case ScalarStep::Float:
      if (step.text == "inf") return "Float, 0, 0, 0, 0, std::numeric_limits<double>::infinity()";
      if (step.text == "nan") return "Float, 0, 0, 0, 0, std::numeric_limits<double>::quiet_NaN()";
      return cat("Float, 0, 0, 0, 0, ", step.text);
    case ScalarStep::Int:
      return cat("Int, 0, 0, 0, 0, ", step.text);
    case ScalarStep::Bool:
      return cat("Bool, 0, 0, 0, 0, ", step.text);
    case ScalarStep::Lowest:
      return "Lowest";
    case ScalarStep::Highest:
      return "Highest";
    case ScalarStep::Partial:
      return "Partial";
    case ScalarStep::Count:
      return "Count";
    case ScalarStep::Select:
      return cat("Select, 0, ", step.a, ", ", step.b, ", ", step.c);
    case ScalarStep::Call:
      break;
    case ScalarStep::Text:
      throw NotPrimitive();
  }
  if (step.operands == 1)
    return cat("Unary, ", primitive_of(step.text, Primitive::Unary).macro, ", ", step.a);
  const Primitive compare = primitive_of(step.text, Primitive::Compare);
  if (compare.family == Primitive::Compare)
    return cat("Compare, ", compare.macro, ", ", step.a, ", ", step.b);
  return cat("Binary, ", primitive_of(step.text, Primitive::Binary).macro, ", ", step.a, ", ",
             step.b);
}

template <class Value>
std::string program(const Operator& op, const std::string& name, const Value& value) {
  const auto steps = scalar_program(op, value, Vocabulary::Primitives);
  if (!steps) throw NotPrimitive();
  std::string rows = join(
      *steps, "", [](const ScalarStep& step) { return cat("    {Do::", row_of(step), "},\n"); });
  return cat("  static constexpr Step ", name, "[] = {\n", rows, "  };\n");
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
    case OutDtype::Float:
      return "Float";
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

std::string lowered_elementwise(const Operator& op) {
  std::string programs, cases;
  size_t count = 0;
  for (const ScalarCase& scalar_case : op.cases) {
    // What functions of complex numbers are is not said by their opcodes.
    ScalarCase narrowed = scalar_case;
    narrowed.mask &= ~complex_dtypes();
    if (!narrowed.mask) continue;
    std::string name = cat("program", count);
    programs += program(op, name, check_case(op, narrowed));
    cases +=
        cat("      {UINT64_C(", hex64(narrowed.mask), "), {", name, ", std::size(", name, ")}},\n");
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
  return cat("// ", op.where.source(), "\n",
             entry_point(op, cat(programs, "  static constexpr Case cases[] = {\n", cases, "  };\n",
                                 "  static constexpr Elementwise definition = {", quoted(op.name),
                                 ", ", hex64(tensors), ", ", hex64(promoted), ", ",
                                 kCompute[static_cast<int>(op.dtypes.compute)], ", Out::",
                                 out_name(op.dtypes.outs[0].rule), ", ", count, ", cases};\n")));
}

// The primitive that combines partial results; `any` is the largest of bools, `all` the smallest.
const char* reduction_opcode(const CheckedReduction& reduction) {
  const auto op = reducing_operator(reduction);
  if (!op) throw NotPrimitive();
  return primitive_of(*op == "any"   ? "max"
                      : *op == "all" ? "min"
                                     : *op,
                      Primitive::Reduction)
      .macro;
}

std::string lowered_reduction(const Operator& op) {
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
      "// ", op.where.source(), "\n",
      entry_point(op, cat(programs, "  static constexpr Reduction definition = {\n      ",
                          quoted(op.name), ", ", index_of(1, "axis"), ", ", index_of(2, "keepdim"),
                          ", ", kCompute[static_cast<int>(op.dtypes.compute)],
                          ", Out::", out_name(op.dtypes.outs[0].rule), ", ",
                          reduction_opcode(checked), ", ", checked.truth ? "true" : "false",
                          ",\n      ", init, ", ", map, ", ", finish, "};\n")));
}

}  // namespace

bool has_derived_lowering(const Operator& op) { return !derived_lowering(op).empty(); }

std::string derived_lowering(const Operator& op) {
  if (op.decompose_native || !op.decompose.empty()) return "";
  try {
    if (!op.cases.empty()) return lowered_elementwise(op);
    if (op.reduction) return lowered_reduction(op);
  } catch (const NotPrimitive&) {
  }
  return "";
}

}  // namespace tenon::codegen
