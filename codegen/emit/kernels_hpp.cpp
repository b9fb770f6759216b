// SPDX-License-Identifier: Apache-2.0
// What a package's own kernels are written against: for each operator and device the template to
// define, and the boxed form around it.
#include "emit/cpp_types.hpp"
#include "emit/emit.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

// The element type of a result; "" if it is known at run time only.
std::string result_element(const OutDtype& out) {
  switch (out.rule) {
    case OutDtype::Same:
      return "T";
    case OutDtype::Bool:
      return "bool";
    case OutDtype::Int64:
      return "int64_t";
    case OutDtype::Real:
      return "::tenon::real_t<T>";
    case OutDtype::Accumulate:
      return "::tenon::accumulate_t<T>";
    case OutDtype::Float:
      return "::tenon::inexact_t<T>";
    default:
      return "";
  }
}

int first_tensor(const Operator& op) {
  const std::vector<Param>& params = op.signature.params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].holds_tensors()) return static_cast<int>(i);
  return -1;
}

// Whether this parameter's elements are of the compute dtype, T.
bool is_computed(const Operator& op, size_t index) {
  if (op.dtypes.compute == Compute::First) return static_cast<int>(index) == first_tensor(op);
  return op.dtypes.is_promoted(op.signature.params[index].name);
}

std::string param_element(const Operator& op, size_t index) {
  if (is_computed(op, index)) return "T";
  auto checked = op.dtypes.checked.find(op.signature.params[index].name);
  if (checked == op.dtypes.checked.end()) return "";
  for (size_t id = 0; id < dtypes().size(); ++id)
    if (checked->second == DtypeMask{1} << id) return kernel_element_type(static_cast<int>(id));
  return "";
}

std::string view(const std::string& element, bool is_const) {
  if (element.empty()) return "TensorView";
  return cat("View<", is_const ? "const " : "", element, ">");
}

std::string parameters(const Operator& op) {
  std::string text = "KernelContext&";
  for (size_t i = 0; i < op.signature.params.size(); ++i) {
    const Param& param = op.signature.params[i];
    std::string type = param.is_tensor() ? view(param_element(op, i), true) : kernel_param(param);
    text += cat(", ", type, " ", param.name);
  }
  if (!op.data_dependent())
    for (size_t i = 0; i < op.signature.results.size(); ++i)
      text += cat(", ", view(result_element(op.dtypes.outs[i]), false), " ",
                  op.signature.results[i].name);
  return text;
}

std::string arguments(const Operator& op) {
  std::string text = "context";
  for (size_t i = 0; i < op.signature.params.size(); ++i)
    text += cat(", ", kernel_argument(op.signature.params[i], cat("args[", i, "]")));
  if (!op.data_dependent())
    for (size_t i = 0; i < op.signature.results.size(); ++i)
      text += cat(", argument::tensor(outs[", i, "])");
  return text;
}

// The value whose dtype chooses T.
std::string dtype_source(const Operator& op) {
  const std::vector<Param>& params = op.signature.params;
  for (size_t i = 0; i < params.size() && op.dtypes.compute != Compute::Output; ++i)
    if (params[i].holds_tensors() && !params[i].optional && is_computed(op, i))
      return cat("args[", i, "]");
  return "outs[0]";
}

std::string types(DtypeMask mask) {
  std::vector<std::string> names;
  for (size_t id = 0; id < dtypes().size(); ++id)
    if (mask >> id & 1) names.push_back(kernel_element_type(static_cast<int>(id)));
  return join(names, ", ");
}

std::string header(const Operator& op, const WrittenKernel& kernel) {
  std::string function = cat(op.name, "_", kernel.device);
  return generated_line({op.file}) + fill(R"(// @file@: @schema@
// @summary@
//
// The kernel for device `@device@`, @classes@. Include this in the one file that defines it:
//
//   template <class T>
//   void @ns@::@function@(@parameters@) { ... }
//
// T is the compute dtype. Tensors arrive contiguous@strided@, on the device. What the function
// throws becomes the operator's error (tenon/kernel.hpp).
#pragma once

#include <tenon/kernel.hpp>

namespace @ns@ {
using ::tenon::KernelContext;
using ::tenon::TensorView;
using ::tenon::View;

template <class T>
void @function@(@parameters@);

namespace kernels {

tenon_status @function@(tenon_ctx* ctx, [[maybe_unused]] const tenon_value* args, uint32_t,
    [[maybe_unused]] tenon_value* outs, uint32_t, tenon_err* err) {
  namespace argument = ::tenon::argument;
  return ::tenon::guarded(err, [&] {
    KernelContext context(ctx, err);
    ::tenon::dispatch<@types@>(argument::dtype(@source@), [&]<class T>() {
      ::@ns@::@function@<T>(@arguments@);
    });
  });
}

}  // namespace kernels
}  // namespace @ns@
)",
                                          {{"file", kernel.where.source()},
                                           {"schema", op.schema()},
                                           {"summary", op.summary()},
                                           {"device", kernel.device},
                                           {"classes", describe(kernel.mask)},
                                           {"strided", op.has_tag("strided") ? " or not" : ""},
                                           {"ns", op.name_space},
                                           {"function", function},
                                           {"parameters", parameters(op)},
                                           {"types", types(kernel.mask)},
                                           {"source", dtype_source(op)},
                                           {"arguments", arguments(op)}});
}

}  // namespace

std::vector<OutputFile> emit_kernels_hpp(const Package& package, const EmitOptions&) {
  std::vector<OutputFile> files;
  for (const Operator* op : package.emitted)
    for (const WrittenKernel& kernel : op->kernels)
      files.push_back(
          {cat(op->name_space, "/", op->name, "_", kernel.device, ".hpp"), header(*op, kernel)});
  return files;
}

}  // namespace tenon::codegen
