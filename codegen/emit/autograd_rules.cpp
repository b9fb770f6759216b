// SPDX-License-Identifier: Apache-2.0
// Gradient rules: one backward function per operator with `grad`, and what each gradient reads.
#include "emit/emit.hpp"
#include "emit/expression_cpp.hpp"
#include "expression/usage.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string hex_mask(uint64_t mask) {
  return mask < 10 ? std::to_string(mask) : cat("UINT64_C(", hex64(mask), ")");
}

std::string gradient_variable(const std::string& param) { return "gradient_" + param; }

std::string arrived(const std::set<int>& gradients) {
  return join(gradients, " || ", [](int index) { return cat("grad_outs[", index, "]"); });
}

// `if (needs & 1) { steps; gradient_x = ...; }`
std::string gradient_block(const Operator& op, const CheckedGradient& checked,
                           const ExpressionCpp& cpp) {
  std::string body;
  const Value& result = checked.program.result;
  const std::vector<std::string>& params = checked.gradient->params;
  for (const auto& [name, value] : checked.program.steps)
    body += cat("    ", cpp.step(name, value), "\n");
  auto needed = [&](const std::string& name) {
    return cat("needs & ", hex_mask(uint64_t{1} << op.signature.find_param(name)));
  };
  if (params.size() == 1) {
    body += cat("    ", gradient_variable(params[0]), " = ", cpp.owned(result), ";\n");
  } else if (result.type.base == ValueType::Record) {
    body += cat("    const auto result = ", cpp.owned(result), ";\n");
    for (size_t i = 0; i < params.size(); ++i)
      body += cat("    if (", needed(params[i]), ") ", gradient_variable(params[i]), " = result.",
                  result.type.record->signature.results[i].name, ";\n");
  } else {
    for (size_t i = 0; i < params.size(); ++i)
      body += cat("    if (", needed(params[i]), ") ", gradient_variable(params[i]), " = ",
                  cpp.owned(result.children[i]), ";\n");
  }
  std::string condition = cat("needs & ", hex_mask(params_mask(op, *checked.gradient)));
  if (op.signature.results.size() > 1 && !checked.usage.gradients.empty())
    condition = cat("(", condition, ") && (", arrived(checked.usage.gradients), ")");
  return cat("  if (", condition, ") {  // ", checked.gradient->where.source(), "\n", body,
             "  }\n");
}

// Gradients that arrive for results which no entry reads would be lost without a word.
std::string refuse_unread(const Operator& op, const std::set<int>& read) {
  std::set<int> unread;
  std::string names;
  for (int i = 0; i < static_cast<int>(op.signature.results.size()); ++i) {
    OutDtype::Rule dtype = op.dtypes.outs[i].rule;
    if (read.count(i) || dtype == OutDtype::Bool || dtype == OutDtype::Int64) continue;
    unread.insert(i);
    names += cat(names.empty() ? "" : ", ", "`", op.signature.results[i].name, "`");
  }
  if (unread.empty()) return "";
  return cat("  if (", arrived(unread), ")\n    return tenon::fail(err, TENON_UNSUPPORTED, ",
             quoted(cat("one arrived for ", names,
                        ", through which none can pass; detach() what is used of them")),
             ");\n");
}

std::string backward_function(const Operator& op, const GradientRule& rule) {
  std::set<int> named, outputs, gradients;
  for (const CheckedGradient& checked : rule.gradients) {
    named.insert(checked.usage.named.begin(), checked.usage.named.end());
    outputs.insert(checked.usage.outputs.begin(), checked.usage.outputs.end());
    gradients.insert(checked.usage.gradients.begin(), checked.usage.gradients.end());
  }
  ExpressionCpp cpp;
  cpp.take_devices_from(
      cat("expression::device_of_any(grad_outs, ", op.signature.results.size(), ")"));

  std::string body = refuse_unread(op, gradients);
  if (!gradients.empty()) body += cat("  if (!(", arrived(gradients), ")) return TENON_OK;\n");
  body += "  Scope scope(err);\n";
  body += ExpressionCpp::declare_arguments(op, named);
  for (int index : outputs) {
    const std::string& name = op.signature.results[index].name;
    body +=
        cat("  [[maybe_unused]] const Tensor ", name, " = Tensor::borrow(outs[", index, "]);\n");
  }
  for (int index : gradients) {
    const std::string& name = op.signature.results[index].name;
    std::string arrived_one = cat("Tensor::borrow(grad_outs[", index, "])");
    body += rule.zeroed.count(index)
                ? cat("  const Tensor d", name, " = grad_outs[", index, "] ? ", arrived_one,
                      " : tenon::ops::zeros_like(scope, ", name, ");\n")
                : cat("  const Tensor d", name, " = ", arrived_one, ";\n");
  }
  std::string give;
  for (const CheckedGradient& checked : rule.gradients) {
    for (const std::string& name : checked.gradient->params) {
      int index = op.signature.find_param(name);
      bool list = op.signature.params[index].kind == ParamKind::Tensors;
      std::string variable = gradient_variable(name), target = cat("grad_args[", index, "]");
      body += cat("  ", list ? "std::vector<Tensor> " : "Tensor ", variable, ";\n");
      give += list ? cat("  if (!", variable, ".empty()) expression::give_list(", target, ", ",
                         variable, ");\n")
                   : cat("  expression::give_gradient(", target, ", std::move(", variable, "));\n");
    }
  }
  for (const CheckedGradient& checked : rule.gradients) body += gradient_block(op, checked, cpp);
  return fill(R"(// @file@
tenon_status backward_@op@(const tenon_host*, [[maybe_unused]] const tenon_value* args, uint32_t,
    [[maybe_unused]] tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t, uint64_t needs,
    tenon_value* grad_args, tenon_err* err) {
@body@  if (!scope.ok()) return scope.status();
@give@  return TENON_OK;
}
)",
              {{"file", op.where.source()}, {"op", op.name}, {"body", body}, {"give", give}});
}

std::string reads_tables(const Operator& op, const GradientRule& rule) {
  if (rule.gradients.size() < 2) return "";
  const std::string& name = op.name;
  return cat("const uint64_t arg_reads_", name, "[] = {", join(rule.arg_reads, ", ", hex_mask),
             "};\n", "const uint64_t out_reads_", name, "[] = {",
             join(rule.out_reads, ", ", hex_mask), "};\n");
}

std::string row(const Operator& op, const GradientRule& rule) {
  const std::string& name = op.name;
  bool reads = rule.gradients.size() > 1;
  const char* flags = op.complex_gradient == ComplexGradient::None ? "0"
                      : op.complex_gradient == ComplexGradient::AsWritten
                          ? "TENON_GRAD_RULE_COMPLEX"
                          : "TENON_GRAD_RULE_HOLOMORPHIC";
  return cat("    {sizeof(tenon_grad_rule), ", flags, ", ", quoted(op.qualified_name()), ", ",
             hex_mask(rule.diff_args), ", ", hex_mask(rule.saves_args), ", ",
             hex_mask(rule.shapes_args), ", ", hex_mask(rule.saves_outs), ", backward_", name, ", ",
             reads ? "arg_reads_" + name : "nullptr", ", ", reads ? "out_reads_" + name : "nullptr",
             "},\n");
}

}  // namespace

std::vector<OutputFile> emit_autograd_rules(const Package& package, const EmitOptions& options) {
  bool standard = package.name_space == "tenon";
  std::string body, rows;
  uint32_t count = 0;
  for (const Operator* op : package.emitted) {
    if (op->gradients.empty()) continue;
    GradientRule rule = gradient_rule(*op, package);
    body += backward_function(*op, rule) + reads_tables(*op, rule) + "\n";
    rows += row(*op, rule);
    ++count;
  }
  // An array cannot be empty.
  if (count == 0) rows = "    {},\n";
  std::string text = generated_line(package.files);
  text += fill(R"(@include@#include <tenon/ops.hpp>
#include <tenon/ops/expression.hpp>
#include <tenon/services/autograd.h>

namespace @namespace@ {
using namespace ::tenon;

namespace {

@body@}  // namespace

extern const tenon_grad_rule kGradRules[] = {
@rows@};
extern const uint32_t kGradRuleCount = @count@;

}  // namespace @namespace@
)",
               {{"include", standard ? "" : cat("#include <", package.name_space, "/ops.hpp>\n")},
                {"namespace", standard ? "tenon::autograd" : options.cpp_namespace},
                {"body", body},
                {"rows", rows},
                {"count", std::to_string(count)}});
  return {{"autograd/rules.cpp", text}};
}

}  // namespace tenon::codegen
