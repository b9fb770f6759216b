// SPDX-License-Identifier: Apache-2.0
#include "emit/shape_rules.hpp"

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// A hand-written function sets every dtype itself if all results say `native`.
bool all_native(const Operator& op) {
  for (const OutDtype& out : op.dtypes.outs)
    if (out.rule != OutDtype::Native) return false;
  return true;
}

// A rule that gives no shape, as that depends on data, and checks dtypes alone.
bool only_checks(const Operator& op) { return op.shape->kind == ShapeRule::DataDependent; }

bool is_generated(const Operator& op) {
  if (!op.shape || op.uses_broadcast_rule()) return false;
  if (only_checks(op)) return op.kind == OperatorKind::Kernel && !op.dtypes.checked.empty();
  return op.shape->kind != ShapeRule::Native || !op.dtypes.checked.empty() || !all_native(op);
}

std::string argument(const Operator& op, const std::string& param) {
  return cat("args[", op.signature.find_param(param), "]");
}

// C++ for the compute dtype of the call.
std::string compute_dtype(const Operator& op) {
  std::string text = cat("shapes::first_dtype(args, ", op.signature.params.size(), ")");
  if (op.dtypes.compute == Compute::Promote || op.dtypes.compute == Compute::PromoteFloat) {
    text = cat("shapes::promoted_dtype(args, {",
               join(op.dtypes.promoted, ", ",
                    [&](const std::string& name) {
                      return std::to_string(op.signature.find_param(name));
                    }),
               "})");
    if (op.dtypes.compute == Compute::PromoteFloat) text = cat("shapes::float_dtype(", text, ")");
  }
  return text;
}

std::string out_dtype(const Operator& op, const OutDtype& out) {
  switch (out.rule) {
    case OutDtype::Same:
      return "compute";
    case OutDtype::Bool:
      return "TENON_DTYPE_BOOL";
    case OutDtype::Int64:
      return "TENON_DTYPE_I64";
    case OutDtype::Real:
      return "shapes::real_dtype(compute)";
    case OutDtype::Accumulate:
      return "shapes::accumulate_dtype(compute)";
    case OutDtype::Float:
      return "shapes::float_dtype(compute)";
    case OutDtype::Param:
      return cat("shapes::dtype_or(", argument(op, out.param), ", compute)");
    case OutDtype::Native:
      return "compute";  // overwritten by the hand-written function
  }
  return "";
}

std::string shape_statement(const Operator& op, size_t result) {
  const ShapeRule& rule = *op.shape;
  std::string name = quoted(op.name), out = cat("outs[", result, "]");
  auto attempt = [](const std::string& call) { return cat("  TENON_TRY(", call, ");\n"); };
  switch (rule.kind) {
    case ShapeRule::Broadcast:
      return attempt(cat("shapes::broadcast(", name, ", {",
                         join(rule.params, ", ",
                              [&](const std::string& param) { return "&" + argument(op, param); }),
                         "}, ", out, ", err)"));
    case ShapeRule::Same:
      return cat("  shapes::same(", argument(op, rule.params[0]), ", ", out, ");\n");
    case ShapeRule::Reduce: {
      std::string axes = rule.params.size() > 1 ? argument(op, rule.params[1]) : "tenon_value{}";
      std::string axis_name = quoted(rule.params.size() > 1 ? rule.params[1] : "axis");
      std::string keepdim = rule.params.size() > 2
                                ? cat("tenon_arg_bool(&", argument(op, rule.params[2]), ") != 0")
                                : (rule.keepdim ? "true" : "false");
      return attempt(cat("shapes::reduce(", name, ", ", argument(op, rule.params[0]), ", ",
                         axis_name, ", ", axes, ", ", keepdim, ", ", out, ", err)"));
    }
    case ShapeRule::Of:
      return attempt(cat("shapes::of(", name, ", ", quoted(rule.params[0]), ", ",
                         argument(op, rule.params[0]), ", ", out, ", err)"));
    case ShapeRule::Native:
    case ShapeRule::DataDependent:
      return "";
  }
  return "";
}

}  // namespace

std::string infer_function_name(const Operator& op) {
  if (is_generated(op)) return "rule_" + op.name;
  bool native = op.shape && op.shape->kind == ShapeRule::Native;
  return native ? "infer_" + op.name : "nullptr";
}

std::string shape_rule_function(const Operator& op) {
  if (!is_generated(op)) return "";
  std::string body;
  for (const auto& [param, mask] : op.dtypes.checked)
    body += cat("  TENON_TRY(shapes::check_dtype(", quoted(op.name), ", ", quoted(param), ", ",
                argument(op, param), ", UINT64_C(", hex64(mask), "), ", quoted(describe(mask)),
                ", err));\n");
  if (only_checks(op))
    return cat("tenon_status rule_", op.name,
               "(const tenon_value* args, uint32_t, tenon_meta*, uint32_t, tenon_err* err) {\n",
               body, "  return TENON_OK;\n}\n");
  body += cat("  [[maybe_unused]] const int32_t compute = ", compute_dtype(op), ";\n");
  for (size_t i = 0; i < op.signature.results.size(); ++i) {
    std::string out = cat("outs[", i, "]"), dtype = out_dtype(op, op.dtypes.outs[i]);
    body += op.is_view() ? cat("  shapes::set_view(", out, ", ", dtype, ", 0);\n")
                         : cat("  shapes::set_new(", out, ", ", dtype, ");\n");
    body += shape_statement(op, i);
  }
  if (op.shape->kind == ShapeRule::Native) {
    std::string call = cat("infer_", op.name, "(args, nargs, outs, nouts, err)");
    // What `out` says holds whatever the hand-written function thinks.
    body +=
        op.dtypes.outs_given ? cat("  TENON_TRY(", call, ");\n") : cat("  return ", call, ";\n");
    for (size_t i = 0; op.dtypes.outs_given && i < op.dtypes.outs.size(); ++i)
      if (op.dtypes.outs[i].rule != OutDtype::Native)
        body += cat("  outs[", i, "].dtype = static_cast<uint8_t>(",
                    out_dtype(op, op.dtypes.outs[i]), ");\n");
  }
  if (op.shape->kind != ShapeRule::Native || op.dtypes.outs_given) body += "  return TENON_OK;\n";
  return cat(
      "tenon_status rule_", op.name,
      "([[maybe_unused]] const tenon_value* args, [[maybe_unused]] uint32_t nargs,\n"
      "    tenon_meta* outs, [[maybe_unused]] uint32_t nouts, [[maybe_unused]] tenon_err* err) {\n",
      body, "}\n");
}

}  // namespace tenon::codegen
