// SPDX-License-Identifier: Apache-2.0
// The C headers that kernels are written against: typed signatures, schema hashes, boxed wrappers.
// One for each operator file, so that a new operator compiles anew only what includes its family, and
// one that includes them all. For the same reason they do not say on which line an operator stands.
#include "emit/cpp_types.hpp"
#include "emit/emit.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// Data-dependent operators allocate their results themselves.
bool passes_results(const Operator& op) { return !op.data_dependent(); }

std::string typed_parameters(const Operator& op) {
  std::string text = "tenon_ctx* ctx";
  for (const Param& param : op.signature.params) text += ", " + c_param(param);
  if (passes_results(op))
    for (const Result& result : op.signature.results) text += ", tenon_tensor* " + result.name;
  return text + ", tenon_err* err";
}

std::string unboxed_arguments(const Operator& op) {
  std::string text = "ctx";
  for (size_t i = 0; i < op.signature.params.size(); ++i)
    text += ", " + c_unboxed(op.signature.params[i], i);
  if (passes_results(op))
    for (size_t i = 0; i < op.signature.results.size(); ++i)
      text += cat(", tenon_out_tensor(&outs[", i, "])");
  return text + ", err";
}

std::string entry(const Operator& op) {
  std::string lower = c_prefix(op), upper = upper_case(lower);
  return fill(R"(/* @schema@
 * @summary@ */
typedef tenon_status (*@lower@_fn_@op@)(@typed@);
#define @upper@_HASH_@op@ UINT64_C(@hash@)
#define @upper@_BOX_@op@(boxed_name, fn) \
  static tenon_status boxed_name(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, \
                                 tenon_value* outs, uint32_t nouts, tenon_err* err) { \
    (void)args, (void)nargs, (void)outs, (void)nouts; \
    return fn(@unboxed@); \
  }
#define @upper@_KERNEL_@op@(fn, device, dtype_mask, traits, score) \
  {sizeof(tenon_kernel_def), (traits), "@qualified@", (device), @upper@_HASH_@op@, (dtype_mask), \
   (score), 0, fn##_boxed, (tenon_typed_fn)(fn), 0}

)",
              {{"schema", op.schema()},
               {"summary", op.summary()},
               {"lower", lower},
               {"upper", upper},
               {"op", op.name},
               {"typed", typed_parameters(op)},
               {"hash", hex64(fnv1a(op.schema()))},
               {"unboxed", unboxed_arguments(op)},
               {"qualified", op.qualified_name()}});
}

std::string family_path(const Package& package, const std::string& file) {
  return cat(package.name_space, "/signatures/", stem(file), ".h");
}

OutputFile family_file(const Package& package, const std::string& file) {
  std::string guard = upper_case(cat(package.name_space, "_signatures_", stem(file), "_h_"));
  std::string text = generated_line({file}, "/*");
  text += cat("/* See ", package.name_space, "/op_signatures.h for what is defined. */\n");
  text += cat("#ifndef ", guard, "\n#define ", guard, "\n\n#include <tenon/unbox.h>\n\n");
  for (const Operator* op : package.in_file(file))
    if (op->has_typed_form()) text += entry(*op);
  return {family_path(package, file), cat(text, "#endif /* ", guard, " */\n")};
}

}  // namespace

std::vector<OutputFile> emit_signatures_h(const Package& package, const EmitOptions&) {
  std::vector<OutputFile> files;
  std::string upper = upper_case(package.name_space), includes;
  for (const std::string& file : package.files) {
    files.push_back(family_file(package, file));
    includes += cat("#include <", family_path(package, file), ">\n");
  }
  std::string text = generated_line(package.files, "/*");
  text += fill(
      R"(/* Kernels of namespace `@ns@`, in C11: all operators. Includes one header for each operator file,
 * <@ns@/signatures/FILE.h>, which kernels of that file can do with. For an operator `op`:
 *
 *   @ns@_fn_op                 the signature of a typed kernel
 *   @NS@_BOX_op(fn_boxed, fn)  defines the boxed wrapper that every kernel needs
 *   @NS@_KERNEL_op(fn, device, dtype_mask, traits, score)
 *                              initialiser of a tenon_kernel_def; uses `fn_boxed`
 *   @NS@_HASH_op               schema hash
 *
 * Parameters: Tensor NULL if none; lists with their count, NULL if none; dtype and device -1 if none;
 * Scalar and optional numbers as tenon_value, tag NONE if none. */
#ifndef @NS@_OP_SIGNATURES_H_
#define @NS@_OP_SIGNATURES_H_

@includes@
#endif /* @NS@_OP_SIGNATURES_H_ */
)",
      {{"ns", package.name_space}, {"NS", upper}, {"includes", includes}});
  files.push_back({cat(package.name_space, "/op_signatures.h"), text});
  return files;
}

}  // namespace tenon::codegen
