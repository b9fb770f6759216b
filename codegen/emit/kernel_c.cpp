// SPDX-License-Identifier: Apache-2.0
// Tables of scalar expressions in Kernel C, one row per elementwise and reduction operator. What is
// around an expression is written once, in plugins/kernel_c.
#include <algorithm>

#include "emit/emit.hpp"
#include "emit/scalar_kernel_c.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// float8 elements have no arithmetic in Kernel C.
DtypeMask kernel_c_dtypes() {
  DtypeMask mask = bool_dtypes() | integer_dtypes() | complex_dtypes();
  for (const char* name : {"float16", "bfloat16", "float32", "float64"})
    mask |= DtypeMask{1} << *find_dtype(name);
  return mask;
}

KernelElements elements_of(DtypeMask mask) {
  return mask & complex_dtypes()                     ? KernelElements::Complex
         : mask & (integer_dtypes() | bool_dtypes()) ? KernelElements::Integers
                                                     : KernelElements::Floating;
}

std::string source_line(const Node& node) {
  return cat("// ", node.where.source(), ": ", text_of(node), "\n");
}

// "values_clip_0", with its definition in `text`; "nullptr" if the host computes nothing.
std::string values_function(const std::string& name, const KernelCText& scalar, std::string& text) {
  if (scalar.values.empty()) return "nullptr";
  std::string body;
  for (size_t i = 0; i < scalar.values.size(); ++i)
    body += cat("  values[", i, "] = number(", scalar.values[i].cpp, ");\n");
  text += cat("void ", name, "(const tenon_value* attributes, tenon_value* values) {\n",
              scalar.declarations, body, "}\n");
  return name;
}

std::string elementwise(const Operator& op) {
  std::string text, rows;
  for (size_t i = 0; i < op.cases.size(); ++i) {
    const ScalarCase& scalar_case = op.cases[i];
    for (DtypeMask group : {~complex_dtypes(), complex_dtypes()}) {
      const DtypeMask mask = scalar_case.mask & kernel_c_dtypes() & group;
      if (!mask) continue;
      ScalarCase narrowed = scalar_case;
      narrowed.mask = mask;
      KernelCText scalar =
          scalar_kernel_c(op.signature, check_case(op, narrowed), elements_of(mask));
      text += source_line(scalar_case.expression);
      const bool complex = group == complex_dtypes();
      std::string function =
          values_function(cat("values_", op.name, "_", i, complex ? "_complex" : ""), scalar, text);
      std::string types = join(scalar.values, ", ", [](const auto& v) { return quoted(v.type); });
      rows += cat("    {UINT64_C(", hex64(mask), "), ", quoted(scalar.parts), ", ",
                  quoted(scalar.expression), ", ", scalar.values.size(), ", {", types, "}, ",
                  function, "},\n");
    }
  }
  if (rows.empty()) return "";
  size_t inputs = 0, dtype_input = 0;
  std::string names;
  bool found = false;
  for (const Param& param : op.signature.params) {
    if (!param.is_tensor()) continue;
    bool own = op.dtypes.checked.count(param.name) != 0;
    if (!found && !own) {
      found = true;
      dtype_input = inputs;
    }
    names += cat(inputs ? ", " : "", "{", quoted(param.name), ", ", own ? 1 : 0, "}");
    ++inputs;
  }
  return text + fill(R"(constexpr ElementwiseCase cases_@op@[] = {
@rows@};
constexpr ElementwiseInput inputs_@op@[] = {@names@};
constexpr ElementwiseOp elementwise_@op@ = {@name@, @inputs@, @dtype_input@, inputs_@op@,
    std::size(cases_@op@), cases_@op@};
tenon_status run_@op@(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
    tenon_err* err) {
  return run_elementwise(elementwise_@op@, ctx, args, outs, err);
}

)",
                     {{"op", op.name},
                      {"name", quoted(op.qualified_name())},
                      {"rows", rows},
                      {"names", names},
                      {"inputs", std::to_string(inputs)},
                      {"dtype_input", std::to_string(dtype_input)}});
}

std::string several_results(const Operator& op) {
  const KernelCText scalar = scalar_kernel_c(op.signature, check_element_steps(op));
  std::string text = cat("// ", op.where.source(), "\n"), names;
  const std::string values = values_function(cat("values_", op.name), scalar, text);
  size_t inputs = 0;
  for (const Param& param : op.signature.params)
    if (param.is_tensor()) names += cat(inputs++ ? ", " : "", "{", quoted(param.name), ", 0}");
  return text +
         fill(R"(constexpr ElementwiseInput inputs_@op@[] = {@names@};
constexpr const char* types_@op@[] = {@types@};
constexpr SeveralResultsOp several_results_@op@ = {@name@, @inputs@, @results@, inputs_@op@, @count@, types_@op@, @values@,
    @statements@};
tenon_status run_@op@(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
    tenon_err* err) {
  return run_several_results(several_results_@op@, ctx, args, outs, err);
}

)",
              {{"op", op.name},
               {"name", quoted(op.qualified_name())},
               {"names", names},
               {"types", join(scalar.values, ", ", [](const auto& v) { return quoted(v.type); })},
               {"inputs", std::to_string(inputs)},
               {"results", std::to_string(op.signature.results.size())},
               {"count", std::to_string(scalar.values.size())},
               {"values", values},
               {"statements", quoted(scalar.expression)}});
}

std::string reduction(const Operator& op) {
  CheckedReduction checked = check_reduction(op);
  auto part = [&](const ScalarValue& value, const Node& node, KernelElements elements) {
    KernelCText scalar = scalar_kernel_c(op.signature, value, elements);
    if (!scalar.values.empty())
      throw Error(node.where, "reduce: attributes cannot be used in Kernel C; leave out kernel-c");
    return quoted(scalar.expression);
  };
  const Reduction& source = *op.reduction;
  auto parts = [&](KernelElements elements) {
    return cat(checked.init ? part(*checked.init, *source.init, elements) : "nullptr", ", ",
               part(checked.map, source.map, elements), ", ",
               part(checked.combine, source.combine, elements), ", ",
               part(checked.finish, source.finish, elements));
  };
  bool named = op.shape->params.size() > 1;
  int axis = op.signature.find_param(named ? op.shape->params[1] : "axis");
  return fill(
      R"(constexpr ReductionOp reduction_@op@ = {@name@, @axis@, @truth@,
    {@parts@}, {@complex@}};
tenon_status run_@op@(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
    tenon_err* err) {
  return run_reduction(reduction_@op@, ctx, args, outs, err);
}

)",
      {{"op", op.name},
       {"name", quoted(op.qualified_name())},
       {"axis", std::to_string(std::max(axis, 0))},
       {"truth", checked.truth ? "true" : "false"},
       {"parts", parts(elements_of(op.dtypes.allow & ~complex_dtypes()))},
       {"complex", op.dtypes.allow & complex_dtypes() ? parts(KernelElements::Complex) : ""}});
}

std::string kernel_row(const Operator& op, const char* traits) {
  // Steps with several results are for real elements.
  const DtypeMask written =
      op.element_steps.empty() ? kernel_c_dtypes() : kernel_c_dtypes() & ~complex_dtypes();
  return cat("    kernel(", quoted(op.qualified_name()), ", UINT64_C(",
             hex64(op.dtypes.allow & written), "), ", traits, ", run_", op.name, "),\n");
}

}  // namespace

std::vector<OutputFile> emit_kernel_c(const Package& package, const EmitOptions&) {
  std::string body, rows, elementwise_ops;
  for (const Operator* op : package.emitted) {
    std::string text = !op->cases.empty()           ? elementwise(*op)
                       : !op->element_steps.empty() ? several_results(*op)
                       : op->reduction              ? reduction(*op)
                                                    : "";
    if (text.empty()) continue;
    body += text;
    if (!op->cases.empty()) elementwise_ops += cat("    &elementwise_", op->name, ",\n");
    rows += kernel_row(*op, op->reduction                ? "kReductionTraits"
                            : !op->element_steps.empty() ? "kAnyStrides"
                                                         : "kElementwiseTraits");
  }
  std::string text = generated_line(package.files);
  if (rows.empty()) return {{"kernel_c/generated.cpp", text}};
  text += fill(R"(#include "expressions.hpp"

#include <cmath>
#include <iterator>
#include <string_view>

namespace tenon::kernel_c {
namespace {

@body@const tenon_kernel_def kKernels[] = {
@rows@};

@elementwise@}  // namespace

KernelList generated_kernels() { return kKernels; }
std::span<const ElementwiseOp* const> elementwise_ops() { return @elementwise_list@; }

}  // namespace tenon::kernel_c
)",
               {{"body", body},
                {"rows", rows},
                {"elementwise", elementwise_ops.empty()
                                    ? ""
                                    : cat("constexpr const ElementwiseOp* kElementwise[] = {\n",
                                          elementwise_ops, "};\n\n")},
                {"elementwise_list", elementwise_ops.empty() ? "{}" : "kElementwise"}});
  return {{"kernel_c/generated.cpp", text}};
}

}  // namespace tenon::codegen
