// SPDX-License-Identifier: Apache-2.0
#include "emit/cpu_kernels.hpp"
#include "emit/scalar_cpp.hpp"
#include "expression/scalar_program.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// Partial results: wide integers where results are, otherwise the elements' own type.
std::string accumulator_type(const Operator& op, const CheckedReduction& reduction) {
  if (reduction.truth) return "bool";
  switch (op.dtypes.outs[0].rule) {
    case OutDtype::Int64:
      return "int64_t";
    case OutDtype::Accumulate:
      return "accumulate_t<T>";
    case OutDtype::Float:  // means of integers: float32 would lose their last digits
      return "std::conditional_t<std::is_integral_v<T>, double, T>";
    case OutDtype::Real:
      return "decltype(math::real(T()))";
    default:
      return "T";
  }
}

std::string result_type(const Operator& op) {
  switch (op.dtypes.outs[0].rule) {
    case OutDtype::Bool:
      return "bool";
    case OutDtype::Float:
      return "inexact_t<T>";
    default:
      return "Acc";
  }
}

// One member function: "Acc combine" with parameters "Acc a", "Acc b", named where they are read.
std::string method(const Operator& op, const std::string& head,
                   const std::vector<std::pair<std::string, std::string>>& params,
                   const ScalarValue& value, const ScalarNames& names) {
  std::string list = join(params, ", ", [&](const auto& param) {
    return scalar_reads(value, param.second) ? cat(param.first, " ", param.second) : param.first;
  });
  std::string attributes = declare_attributes(op.signature, value, names, "    ");
  std::string body = cat("return ", scalar_cpp_as_element(value, names), ";");
  if (attributes.empty()) return cat("  ", head, "(", list, ") const { ", body, " }\n");
  return cat("  ", head, "(", list, ") const {\n", attributes, "    ", body, "\n  }\n");
}

// Whether the largest or the least element is all there is to it: loops may look for it in their own way.
std::string extreme(const CheckedReduction& reduction) {
  const auto op = reducing_operator(reduction);
  if (reduction.map.form != ScalarValue::Variable || (op != "max" && op != "min")) return "";
  return cat("  static constexpr bool kIsMax = ", op == "max" ? "true" : "false", ";\n");
}

std::string traits(const Operator& op) {
  CheckedReduction reduction = check_reduction(op);
  bool integers = (op.dtypes.allow & (integer_dtypes() | bool_dtypes())) != 0;
  ScalarNames partial{"Acc", "R", integers, "attributes"};
  // Elements are widened before they are mapped, unless the map asks about them (x != 0).
  OutDtype::Rule out = op.dtypes.outs[0].rule;
  bool widen = !reduction.truth && out != OutDtype::Int64 && out != OutDtype::Real;
  ScalarNames element = widen ? partial : ScalarNames{"T", "R", integers, "attributes"};
  std::string methods;
  if (reduction.init) methods += method(op, "Acc init", {}, *reduction.init, partial);
  methods += method(op, "Acc map", {{widen ? "Acc" : "T", "x"}}, reduction.map, element);
  methods += method(op, "Acc combine", {{"Acc", "a"}, {"Acc", "b"}}, reduction.combine, partial);
  methods += method(op, "Out finish", {{"Acc", "a"}, {"int64_t", "n"}}, reduction.finish, partial);
  bool reads_attributes = methods.find("attributes[") != std::string::npos;
  return fill(
      R"(// @file@
template <class T>
struct @name@ {
  using In = T;
  using Acc = @accumulator@;
  using Out = @result@;
@real@  explicit @name@(const tenon_value*@argument@) {}
@methods@@extreme@@member@};
)",
      {{"file", op.where.source()},
       {"name", camel_case(op.name)},
       {"accumulator", accumulator_type(op, reduction)},
       {"result", result_type(op)},
       {"real",
        methods.find("R(") == std::string::npos ? "" : "  using R = decltype(math::real(T()));\n"},
       {"argument", reads_attributes ? " values) : attributes(values" : ""},
       {"methods", methods},
       {"extreme", extreme(reduction)},
       {"member", reads_attributes ? "  const tenon_value* attributes;\n" : ""}});
}

size_t axis_argument(const Operator& op) {
  if (op.shape->params.size() > 1)
    return static_cast<size_t>(op.signature.find_param(op.shape->params[1]));
  int axis = op.signature.find_param("axis");
  return static_cast<size_t>(std::max(axis, 0));
}

// The halves that have loops of their own: if partial results are elements.
DtypeMask half_loop_dtypes(const Operator& op) {
  CheckedReduction reduction = check_reduction(op);
  const OutDtype::Rule out = op.dtypes.outs[0].rule;
  if (reduction.truth || out == OutDtype::Int64 || out == OutDtype::Real) return 0;
  if (!is_low_precision_arithmetic(reduction.map) ||
      !is_low_precision_arithmetic(reduction.combine))
    return 0;
  return op.dtypes.allow & low_precision_dtypes();
}

std::string reduction_definition(const Operator& op) {
  auto loops_of = [&](int dtype) {
    const char* type = cpu_element_type(dtype);
    if (!type)
      return cat("TENON_LOW_PRECISION_REDUCTION(", camel_case(op.name), ", ",
                 low_precision_type(dtype), ")");
    return cat("&reduction_loops<", camel_case(op.name), "<", type, ">>");
  };
  return traits(op) +
         fill(R"(const ReductionKernel kernel_@op@ = {
    .op = @name@,
    .axis_argument = @axis@,
    .attributes = 1,
    .dtype_mask = UINT64_C(@mask@),  // @classes@
    .loops = {@loops@}};
)",
              {{"op", op.name},
               {"name", quoted(op.qualified_name())},
               {"axis", std::to_string(axis_argument(op))},
               {"mask", hex64(op.dtypes.allow)},
               {"classes", describe(op.dtypes.allow)},
               {"loops", cpu_loop_table(op.dtypes.allow, loops_of, half_loop_dtypes(op))}});
}

}  // namespace

std::vector<CpuKernel> cpu_reduction_kernels(const Package& package, const std::string& file) {
  std::vector<CpuKernel> kernels;
  for (const Operator* op : package.in_file(file))
    if (op->reduction) kernels.push_back({op, reduction_definition(*op)});
  return kernels;
}

}  // namespace tenon::codegen
