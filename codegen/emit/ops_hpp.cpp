// SPDX-License-Identifier: Apache-2.0
// The C++ operator API: one inline function per operator, in-place and out= forms derived; and the
// same functions without a scope, which throw.
#include "emit/cpp_types.hpp"
#include "emit/emit.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string parameters(const Operator& op, size_t first, bool defaults) {
  std::string text;
  for (size_t i = first; i < op.signature.params.size(); ++i) {
    const Param& param = op.signature.params[i];
    text += cat(", ", cpp_param_type(param), " ", param.name);
    // A required parameter may follow (by keyword in Python): then none before it has a default
    // here.
    bool tail = defaults;
    for (size_t j = i; j < op.signature.params.size(); ++j)
      tail = tail && op.signature.params[j].default_value.has_value();
    if (tail) text += " = " + cpp_default(param);
  }
  return text;
}

// Declares `args`; returns the two arguments that pass it on.
std::string boxed_arguments(const Operator& op, std::string& body) {
  const auto& params = op.signature.params;
  if (params.empty()) return "nullptr, 0";
  body += cat("  tenon_value args[] = {", join(params, ", ", cpp_boxed), "};\n");
  return cat("args, ", params.size());
}

std::string result_struct(const Operator& op) { return camel_case(op.name) + "Result"; }

std::string result_type(const Operator& op) {
  if (op.signature.list_result()) return "std::vector<Tensor>";
  return op.signature.results.size() == 1 ? "Tensor" : result_struct(op);
}

std::string plain_form(const Operator& op) {
  std::string text, body;
  size_t count = op.signature.results.size();
  if (count > 1)
    text +=
        cat("struct ", result_struct(op), " {\n  Tensor ",
            join(op.signature.results, ", ", [](const Result& r) { return r.name; }), ";\n};\n");
  std::string passed = boxed_arguments(op, body);
  if (op.signature.list_result()) {
    body += cat("  return call::list(scope, operator_", op.name, ", ", passed, ");\n");
  } else if (count == 1) {
    body += cat("  return call::result(scope, operator_", op.name, ", ", passed, ");\n");
  } else {
    body += cat("  auto tensors = call::results<", count, ">(scope, operator_", op.name, ", ",
                passed, ");\n");
    std::vector<std::string> moved;
    for (size_t i = 0; i < count; ++i) moved.push_back(cat("std::move(tensors[", i, "])"));
    body += cat("  return {", join(moved, ", "), "};\n");
  }
  return cat(text, "inline ", result_type(op), " ", op.name, "(Scope& scope",
             parameters(op, 0, true), ") {\n", body, "}\n");
}

std::string out_form(const Operator& op) {
  std::string body, tensors, list;
  for (const Result& result : op.signature.results) {
    tensors += cat(", const Tensor& ", result.name);
    list += cat(list.empty() ? "" : ", ", result.name, ".get()");
  }
  std::string passed = boxed_arguments(op, body);
  return cat("inline void ", op.name, "_out(Scope& scope", tensors, parameters(op, 0, true),
             ") {\n", body, "  call::into<", op.signature.results.size(), ">(scope, operator_",
             op.name, ", ", passed, ", {", list, "});\n}\n");
}

std::string in_place_form(const Operator& op) {
  const std::string& self = op.signature.params[0].name;
  std::string body = cat("  tenon_value args[] = {TensorArg(", self, ").value()");
  for (size_t i = 1; i < op.signature.params.size(); ++i)
    body += ", " + cpp_boxed(op.signature.params[i]);
  body += "};\n";
  return cat("inline void ", op.name, "_(Scope& scope, const Tensor& ", self,
             parameters(op, 1, true), ") {\n", body, "  call::into<1>(scope, operator_", op.name,
             ", args, ", op.signature.params.size(), ", {", self, ".get()});\n}\n");
}

std::string function(const Operator& op) {
  std::string text = cat("// ", op.where.source(), "\n");
  for (const std::string& line : lines_of(op.doc)) text += cat("// ", line, "\n");
  text += cat("inline constinit call::Operator operator_", op.name, "{",
              quoted(op.qualified_name()), "};\n", plain_form(op));
  if (op.has_out_form()) text += out_form(op);
  if (op.has_in_place_form()) text += in_place_form(op);
  return text + "\n";
}

// A function of ops.hpp without its scope. `tensors` come first, parameters from `first` on follow.
std::string throwing_form(const Operator& op, const std::string& result, const std::string& suffix,
                          const std::vector<std::string>& tensors, size_t first) {
  std::string declared, passed = "scope";
  for (const std::string& tensor : tensors) {
    declared += cat(declared.empty() ? "" : ", ", "const Tensor& ", tensor);
    passed += ", " + tensor;
  }
  std::string rest = parameters(op, first, true);
  declared += declared.empty() && !rest.empty() ? rest.substr(2) : rest;
  for (size_t i = first; i < op.signature.params.size(); ++i)
    passed += ", " + op.signature.params[i].name;
  std::string call = cat(op.name, suffix, "(", passed, ")");
  return cat("inline ", result, " ", op.name, suffix, "(", declared,
             ") {\n  call::Throwing scope;\n",
             result == "void" ? cat("  ", call, ";\n  scope.done();\n")
                              : cat("  return scope.done(", call, ");\n"),
             "}\n");
}

std::string throwing_function(const Operator& op) {
  std::vector<std::string> results;
  for (const Result& result : op.signature.results) results.push_back(result.name);
  std::string text = throwing_form(op, result_type(op), "", {}, 0);
  if (op.has_out_form()) text += throwing_form(op, "void", "_out", results, 0);
  if (op.has_in_place_form())
    text += throwing_form(op, "void", "_", {op.signature.params[0].name}, 1);
  return text;
}

}  // namespace

std::vector<OutputFile> emit_functions_hpp(const Package& package, const EmitOptions&) {
  bool is_tenon = package.name_space == "tenon";
  std::string text = generated_line(package.files);
  text +=
      fill(R"(// The functions of <@ns@/ops.hpp> without a scope: they throw tenon::Error instead.
#pragma once

#include <@ns@/ops.hpp>
#include <tenon/ops/@include@.hpp>

namespace @ns@::ops {

)",
           {{"ns", package.name_space}, {"include", is_tenon ? "tensor_operators" : "throwing"}});
  for (const Operator* op : package.emitted) text += throwing_function(*op);
  text += cat("\n}  // namespace ", package.name_space, "::ops\n");
  return {{cat(package.name_space, "/functions.hpp"), text}};
}

std::vector<OutputFile> emit_ops_hpp(const Package& package, const EmitOptions&) {
  std::string text = generated_line(package.files);
  text += fill(R"(// C++ operator functions of namespace `@ns@`. Errors collect in the Scope.
#pragma once

#include <tenon/ops/call.hpp>

#include <cmath>

namespace @ns@::ops {
@using@
)",
               {{"ns", package.name_space},
                {"using", package.name_space == "tenon" ? "" : "using namespace ::tenon;\n"}});
  for (const Operator* op : package.emitted) text += function(*op);
  text += cat("}  // namespace ", package.name_space, "::ops\n");
  return {{cat(package.name_space, "/ops.hpp"), text}};
}

}  // namespace tenon::codegen
