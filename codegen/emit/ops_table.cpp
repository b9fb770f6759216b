// SPDX-License-Identifier: Apache-2.0
// The tenon_op_def tables: what a plugin that defines operators hands to the host.
#include <map>

#include "emit/cpp_types.hpp"
#include "emit/decompose.hpp"
#include "emit/definition.hpp"
#include "emit/emit.hpp"
#include "emit/lowering.hpp"
#include "emit/shape_rules.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

std::string or_zero(const std::vector<NamedBit>& flags) {
  return flags.empty() ? "0" : join(flags, " | ", [](const NamedBit& flag) { return flag.name; });
}

bool has_decomposition(const Operator& op) {
  return op.decompose_native || !op.decompose.empty() || has_derived_lowering(op);
}

std::string params_table(const Operator& op) {
  const auto& params = op.signature.params;
  if (params.empty()) return "";
  std::string text, rows;
  for (const Param& param : params) {
    std::string array = cat("default_", op.name, "_", param.name);
    std::string elements = default_elements(param);
    if (!elements.empty())
      text += cat("const ", param.kind == ParamKind::Ints ? "int64_t " : "double ", array, "[] = {",
                  elements, "};\n");
    rows += cat("    {", quoted(param.name), ", ", macro_name(param.kind), ", ",
                or_zero(param_flags(op, param)), ", ", value_initialiser(param, array), "},\n");
  }
  return cat(text, "const tenon_param_def params_", op.name, "[] = {\n", rows, "};\n");
}

std::string compute_macro(Compute compute) {
  switch (compute) {
    case Compute::First:
      return "TENON_COMPUTE_FIRST";
    case Compute::Promote:
      return "TENON_COMPUTE_PROMOTE";
    case Compute::PromoteFloat:
      return "TENON_COMPUTE_PROMOTE_FLOAT";
    case Compute::Output:
      return "TENON_COMPUTE_OUTPUT";
  }
  return "";
}

// -- invoke: one trampoline for all operators whose signatures unbox alike
// ---------------------------

std::string invoke_name(const Operator& op) {
  std::string name = "invoke";
  for (const Param& param : op.signature.params) name += "_" + c_shape(param);
  return cat(name, "_to_", op.data_dependent() ? 0 : op.signature.results.size());
}

std::string invoke_function(const Operator& op) {
  std::string types = "tenon_ctx*", values = "ctx";
  for (size_t i = 0; i < op.signature.params.size(); ++i) {
    types += ", " + c_param_types(op.signature.params[i]);
    values += ", " + c_unboxed(op.signature.params[i], i);
  }
  if (!op.data_dependent())
    for (size_t i = 0; i < op.signature.results.size(); ++i) {
      types += ", tenon_tensor*";
      values += cat(", tenon_out_tensor(&outs[", i, "])");
    }
  return fill(R"(tenon_status @name@(
    tenon_typed_fn fn, tenon_ctx* ctx, [[maybe_unused]] const tenon_value* args, uint32_t,
    [[maybe_unused]] tenon_value* outs, uint32_t, tenon_err* err) {
  using Fn = tenon_status (*)(@types@, tenon_err*);
  return reinterpret_cast<Fn>(fn)(@values@, err);
}
)",
              {{"name", invoke_name(op)}, {"types", types}, {"values", values}});
}

// -- the table
// ---------------------------------------------------------------------------------------

std::string out_names_row(const Operator& op) {
  return join(op.signature.results, ", ", [](const Result& r) { return quoted(r.name); });
}

// Around a decomposition that computes smaller floats, and numbers that the operator takes as floats, in
// float32.
std::string interior_function(const Operator& op) {
  if (!op.dtypes.float32_interior) return "";
  const InteriorRule rule = op.interior_rule();
  return fill(
      R"(tenon_status decompose_@op@_in_float32(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs,
    tenon_value* outs, uint32_t nouts, tenon_err* err) {
  static constexpr interior::Rule rule = {@tensors@, @rounded@, @first@, @wide@, @floats@};
  return interior::in_float32(rule, args, nargs, outs, nouts, err,
      [&](const tenon_value* wide) { return decompose_@op@(ctx, wide, nargs, outs, nouts, err); });
}
)",
      {{"op", op.name},
       {"tensors", hex64(rule.tensors)},
       {"rounded", hex64(rule.rounded)},
       {"first", rule.first ? "true" : "false"},
       {"wide", rule.stays_wide ? "true" : "false"},
       {"floats", rule.takes_floats ? "true" : "false"}});
}

std::string decompose_name(const Operator& op) {
  if (!has_decomposition(op)) return "nullptr";
  return cat("decompose_", op.name, op.dtypes.float32_interior ? "_in_float32" : "");
}

std::string row(const Operator& op) {
  const std::string traits = traits_text(op);
  return fill(R"(    {
        .struct_size = sizeof(tenon_op_def),
        .flags = @flags@,
        .name = @name@,
        .schema = @schema@,
        .schema_hash = UINT64_C(@hash@),
        .doc = @doc@,
        .origin = "@origin@"@package@,
        .params = @params@,
        .nparams = @nparams@,
        .param_size = sizeof(tenon_param_def),
        .nouts = @nouts@,
        .compute = @compute@,
        .shape = @shape@,
        .out_dtype = @out@,
        .reserved = 0,
        .dtype_mask = UINT64_C(@mask@),
        .out_names = outs_@op@,
        .infer = @infer@,
        .decompose = @decompose@,
        .invoke = @invoke@,@traits@
    },
)",
              {{"origin", op.where.origin()},
               {"package", op.name_space == "tenon" ? "" : " TENON_PACKAGE_ORIGIN"},
               {"flags", or_zero(op_flags(op, has_derived_lowering(op)))},
               {"name", quoted(op.qualified_name())},
               {"schema", quoted(op.schema())},
               {"hash", hex64(fnv1a(op.schema()))},
               {"doc", quoted(op.doc)},
               {"params", op.signature.params.empty() ? "nullptr" : "params_" + op.name},
               {"nparams", std::to_string(op.signature.params.size())},
               {"nouts", std::to_string(op.signature.results.size())},
               {"compute", compute_macro(op.dtypes.compute)},
               {"shape", op.uses_broadcast_rule() ? "TENON_SHAPE_BROADCAST" : "TENON_SHAPE_INFER"},
               {"out", out_rule(op).name},
               {"mask", hex64(op.dtypes.allow)},
               {"op", op.name},
               {"infer", infer_function_name(op)},
               {"decompose", decompose_name(op)},
               {"invoke", op.has_typed_form() ? invoke_name(op) : "nullptr"},
               {"traits", traits.empty() ? "" : cat("\n        .traits = ", quoted(traits), ",")}});
}

std::string declarations(const Package& package) {
  std::string text;
  for (const Operator* op : package.emitted) {
    if (op->shape && op->shape->kind == ShapeRule::Native)
      text += cat("tenon_status infer_", op->name,
                  "(const tenon_value*, uint32_t, tenon_meta*, uint32_t, tenon_err*);\n");
    if (has_decomposition(*op))
      text +=
          cat("tenon_status decompose_", op->name,
              "(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t, tenon_err*);\n");
  }
  return text;
}

// Of two packages that define one operator, messages name both.
const char* package_origin(const Package& package) {
  if (package.name_space == "tenon") return "";
  return R"cpp(
#ifdef TENON_PACKAGE_NAME
#define TENON_PACKAGE_ORIGIN " (" TENON_PACKAGE_NAME " " TENON_PACKAGE_VERSION ")"
#else
#define TENON_PACKAGE_ORIGIN
#endif
  )cpp";
}

OutputFile table_file(const Package& package, const EmitOptions& options) {
  std::string body, rows;
  bool interiors = false;
  std::map<std::string, std::string> trampolines;
  for (const Operator* op : package.emitted) {
    body +=
        cat("// ", op->where.source(), "\n", params_table(*op), "const char* const outs_", op->name,
            "[] = {", out_names_row(*op), "};\n", shape_rule_function(*op), interior_function(*op));
    interiors = interiors || op->dtypes.float32_interior;
    if (op->has_typed_form()) trampolines.emplace(invoke_name(*op), invoke_function(*op));
    rows += row(*op);
  }
  std::string invokes = join(trampolines, "\n", [](const auto& entry) { return entry.second; });
  std::string text = generated_line(package.files);
  if (interiors) text += "#include <tenon/ops/interior.hpp>\n";
  text += fill(R"(#include <tenon/ops/shapes.hpp>
#include <tenon/unbox.h>

#include <cmath>
@package@
namespace @namespace@ {
using namespace ::tenon;

// Written by hand (shapes/, composites/) or generated beside this file (decompose_*.cpp).
@declarations@
namespace {

@invokes@
@body@
}  // namespace

extern const tenon_op_def kOperators[] = {
@rows@};
extern const uint32_t kOperatorCount = @count@;

}  // namespace @namespace@
)",
               {{"namespace", options.cpp_namespace},
                {"package", package_origin(package)},
                {"declarations", declarations(package)},
                {"invokes", invokes},
                {"body", body},
                {"rows", rows},
                {"count", std::to_string(package.emitted.size())}});
  return {options.folder + "/ops_table.cpp", text};
}

}  // namespace

std::vector<OutputFile> emit_ops_table(const Package& package, const EmitOptions& options) {
  std::vector<OutputFile> files = {table_file(package, options)};
  for (const std::string& file : package.files)
    files.push_back({cat(options.folder, "/decompose_", stem(file), ".cpp"),
                     decompose_file(package, file, options.cpp_namespace)});
  return files;
}

}  // namespace tenon::codegen
