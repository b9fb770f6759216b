// SPDX-License-Identifier: Apache-2.0
#include "emit/decompose.hpp"

#include "emit/emit.hpp"
#include "emit/expression_cpp.hpp"
#include "emit/lowering.hpp"
#include "expression/operator_check.hpp"
#include "expression/usage.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string give_results(const Operator& op, const Value& result, const ExpressionCpp& cpp) {
  if (op.signature.list_result())
    return cat("  const std::vector<Tensor> result = ", cpp.owned(result),
               ";\n  if (scope.ok()) expression::give_list(outs[0], result);\n"
               "  return scope.status();\n");
  std::string values;
  if (result.type.base == ValueType::Record) {
    values = join(result.type.record->signature.results, ", ",
                  [](const Result& r) { return "result." + r.name; });
    return cat("  const auto result = ", cpp.owned(result),
               ";\n  return expression::give(scope, outs, {", values, "});\n");
  }
  if (op.signature.results.size() > 1)
    values = join(result.children, ", ", [&](const Value& child) { return cpp.owned(child); });
  else
    values = cpp.owned(result);
  return cat("  return expression::give(scope, outs, {", values, "});\n");
}

// The last step, a call of such an operator, writes over the argument itself where the host passes it as the output.
std::string write_over(const Operator& op, const Value& result, const ExpressionCpp& cpp) {
  if (!op.writes_in_place()) return "";
  const char* out = "Tensor::borrow(static_cast<tenon_tensor*>(outs[0].v.p))";
  return cat("  if (outs[0].tag == TENON_VALUE_TENSOR) {\n    ", cpp.write_over(result, out),
             "\n    return scope.status();\n  }\n");
}

std::string function(const Operator& op, const Package& package) {
  Program program = check_decompose(op, package);
  ExpressionCpp cpp;
  std::string body = ExpressionCpp::declare_arguments(op, usage_of(program).named);
  for (const auto& [name, value] : program.steps) body += cat("  ", cpp.step(name, value), "\n");
  body += write_over(op, program.result, cpp);
  body += give_results(op, program.result, cpp);
  return cat("// ", op.decompose.front().expression.where.source(), "\ntenon_status decompose_",
             op.name,
             "(tenon_ctx*, [[maybe_unused]] const tenon_value* args, uint32_t, tenon_value* outs,\n"
             "    uint32_t, tenon_err* err) {\n  Scope scope(err);\n",
             body, "}\n\n");
}

}  // namespace

std::string decompose_file(const Package& package, const std::string& file,
                           const std::string& cpp_namespace) {
  std::string functions, lowerings, include;
  for (const Operator* op : package.in_file(file)) {
    if (!op->decompose.empty()) functions += function(*op, package);
    lowerings += derived_lowering(*op);
  }
  std::string text = generated_line({file});
  if (functions.empty() && lowerings.empty())
    return text + "// No operator of this file decomposes by an expression.\n";
  if (!functions.empty() && package.name_space != "tenon")
    include += cat("#include <", package.name_space, "/ops.hpp>\n");
  if (!functions.empty())
    include += "#include <tenon/ops.hpp>\n#include <tenon/ops/expression.hpp>\n";
  if (!lowerings.empty()) include += "#include <tenon/ops/lowering.hpp>\n";
  return cat(text, include, "\nnamespace ", cpp_namespace, " {\nusing namespace ::tenon;\n\n",
             functions, lowerings, "}  // namespace ", cpp_namespace, "\n");
}

}  // namespace tenon::codegen
