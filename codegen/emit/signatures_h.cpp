// SPDX-License-Identifier: Apache-2.0
// The C header that kernels are written against: typed signatures, schema hashes, boxed wrappers.
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
  return fill(R"(/* @origin@: @schema@
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
              {{"origin", op.where.origin()},
               {"schema", op.schema()},
               {"summary", op.summary()},
               {"lower", lower},
               {"upper", upper},
               {"op", op.name},
               {"typed", typed_parameters(op)},
               {"hash", hex64(fnv1a(op.schema()))},
               {"unboxed", unboxed_arguments(op)},
               {"qualified", op.qualified_name()}});
}

}  // namespace

std::vector<OutputFile> emit_signatures_h(const Package& package, const EmitOptions&) {
  std::string upper = upper_case(package.name_space);
  std::string text = generated_line(package.files, "/*");
  text += fill(R"(/* Kernels of namespace `@ns@`, in C11. For an operator `op`:
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

#include <tenon/unbox.h>

)",
               {{"ns", package.name_space}, {"NS", upper}});
  for (const Operator* op : package.emitted)
    if (op->has_typed_form()) text += entry(*op);
  text += cat("#endif /* ", upper, "_OP_SIGNATURES_H_ */\n");
  return {{cat(package.name_space, "/op_signatures.h"), text}};
}

}  // namespace tenon::codegen
