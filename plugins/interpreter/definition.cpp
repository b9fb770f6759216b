// SPDX-License-Identifier: Apache-2.0
#include "definition.hpp"

#include <emit/definition.hpp>
#include <expression/operator_check.hpp>
#include <support/text.hpp>

namespace tenon::interpreter {
namespace {

using codegen::cat;
using codegen::OperatorKind;

[[noreturn]] void refuse(const codegen::Location& where, const std::string& text) {
  throw codegen::Error(where, cat(text, "; build the package: tenon new-op"));
}

// What takes a compiler, said where it is written.
void check_needs_no_compiler(const codegen::Operator& op) {
  const std::string name = cat("`", op.name, "`");
  if (op.is_view()) refuse(op.where, cat(name, ": a view's shape rule is C++"));
  if (op.shape && op.shape->kind == codegen::ShapeRule::Native)
    refuse(op.shape_where, cat(name, ": `shape: native` is C++"));
  if (op.decompose_native) refuse(op.where, cat(name, ": `decompose: native` is C++"));
  for (const codegen::OutDtype& out : op.dtypes.outs)
    if (out.rule == codegen::OutDtype::Native)
      refuse(op.where, cat(name, ": `dtypes.out: native` is C++"));
  if (!op.kernels.empty()) refuse(op.kernels[0].where, cat(name, ": `kernels` are C++"));
  if (op.kind == OperatorKind::Kernel && op.decompose.empty())
    refuse(op.where, cat(name, ": it has no `decompose`, so its kernel is C++"));
  for (const char* tag : {"convert", "materialize", "primitive", "strided"})
    if (op.has_tag(tag)) refuse(op.where, cat(name, ": the tag `", tag, "` is for kernels"));
  if (op.has_tag("to_primitives") && op.cases.empty())
    refuse(op.where, cat(name, ": the tag `to_primitives` needs a kernel for the host"));
}

tenon_value default_of(const codegen::Param& param) {
  if (!param.default_value) return kNoValue;
  struct Boxer {
    tenon_value operator()(codegen::NoneValue) const { return kNoValue; }
    tenon_value operator()(bool truth) const { return tenon::boxed(truth); }
    tenon_value operator()(int64_t number) const { return tenon::boxed(number); }
    tenon_value operator()(double number) const { return tenon::boxed(number); }
    tenon_value operator()(const std::string& text) const {
      return tenon::boxed(std::string_view(text));
    }
    tenon_value operator()(codegen::DtypeValue dtype) const { return boxed_dtype(dtype.id); }
    tenon_value operator()(const std::vector<int64_t>& list) const { return IntList(list).value(); }
    tenon_value operator()(const std::vector<double>& list) const {
      return FloatList(list).value();
    }
  };
  return std::visit(Boxer{}, *param.default_value);
}

tenon_status run_kernel(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                        uint32_t, tenon_err* err) try {
  const auto* self = static_cast<const Definition*>(host->op_def(host->ctx_op(ctx))->self);
  return run_in_blocks(*self->elementwise, args, tenon_out_tensor(&outs[0]), err);
} catch (const std::exception& error) {
  return fail(err, TENON_OUT_OF_MEMORY, error.what());
}

}  // namespace

Definition::Definition(std::unique_ptr<codegen::Operator> definition,
                       const codegen::Package& package)
    : op(std::move(definition)) {
  check_needs_no_compiler(*op);
  if (!op->decompose.empty()) decompose = compile(codegen::check_decompose(*op, package));
  if (!op->cases.empty()) elementwise = elementwise_of(*op);
  if (op->reduction && !decompose) reduction = reduction_of(*op);
  fill_table();
  fill_rule(codegen::gradient_rule(*op, package));
}

void Definition::fill_table() {
  name_ = op->qualified_name();
  schema_ = op->schema();
  origin_ = op->where.origin();
  traits_ = codegen::traits_text(*op);
  for (const codegen::Param& param : op->signature.params)
    params_.push_back({param.name.c_str(), static_cast<int32_t>(param.kind),
                       codegen::bits_of(codegen::param_flags(*op, param)), default_of(param)});
  for (const codegen::Result& result : op->signature.results)
    out_names_.push_back(result.name.c_str());
  const bool by_rule = op->uses_broadcast_rule();
  const bool infers = !by_rule && op->shape && op->shape->kind != codegen::ShapeRule::DataDependent;
  table_ = {
      .struct_size = sizeof(tenon_op_def),
      .flags = codegen::bits_of(codegen::op_flags(*op, false)),
      .name = name_.c_str(),
      .schema = schema_.c_str(),
      .schema_hash = codegen::fnv1a(schema_),
      .doc = op->doc.c_str(),
      .origin = origin_.c_str(),
      .params = params_.data(),
      .nparams = static_cast<uint32_t>(params_.size()),
      .param_size = sizeof(tenon_param_def),
      .nouts = static_cast<uint32_t>(out_names_.size()),
      .compute = static_cast<uint8_t>(op->dtypes.compute),
      .shape = static_cast<uint8_t>(by_rule ? TENON_SHAPE_BROADCAST : TENON_SHAPE_INFER),
      .out_dtype = static_cast<uint8_t>(codegen::out_rule(*op).bit),
      .reserved = 0,
      .dtype_mask = op->dtypes.allow,
      .out_names = out_names_.data(),
      .infer = nullptr,
      .decompose = nullptr,
      .invoke = nullptr,
      .self = this,
      .infer_self = infers ? infer : nullptr,
      .decompose_self = interpreter::decompose,
      .traits = traits_.empty() ? nullptr : traits_.c_str(),
  };
}

tenon_kernel_def Definition::kernel(const char* device) const {
  return {
      .struct_size = sizeof(tenon_kernel_def),
      .traits = kBlockTraits,
      .op = name_.c_str(),
      .device = device,
      .schema_hash = 0,
      .dtype_mask = op->dtypes.allow,
      .score = 0,
      .reserved = 0,
      .boxed = run_kernel,
      .typed = nullptr,
      .can_run = nullptr,
  };
}

void Definition::fill_rule(const codegen::GradientRule& rule) {
  for (const codegen::CheckedGradient& checked : rule.gradients) {
    GradientCode code;
    for (const std::string& name : checked.gradient->params) {
      code.params.push_back(op->signature.find_param(name));
      const auto index = static_cast<size_t>(code.params.back());
      code.is_list = op->signature.params[index].kind == codegen::ParamKind::Tensors;
    }
    code.mask = codegen::params_mask(*op, *checked.gradient);
    code.reads.assign(checked.usage.gradients.begin(), checked.usage.gradients.end());
    code.program = compile(checked.program);
    gradients.push_back(std::move(code));
  }
  arg_reads_ = rule.arg_reads;
  out_reads_ = rule.out_reads;
  const bool reads = gradients.size() > 1;
  uint32_t complex = 0;
  if (op->complex_gradient == codegen::ComplexGradient::AsWritten)
    complex = TENON_GRAD_RULE_COMPLEX;
  if (op->complex_gradient == codegen::ComplexGradient::Holomorphic)
    complex = TENON_GRAD_RULE_HOLOMORPHIC;
  rule_ = {
      .struct_size = sizeof(tenon_grad_rule),
      .flags = TENON_GRAD_RULE_REPLACE | complex,
      .op = name_.c_str(),
      .diff_args = rule.diff_args,
      .saves_args = rule.saves_args,
      .shapes_args = rule.shapes_args,
      .saves_outs = rule.saves_outs,
      .backward = nullptr,
      .arg_reads = reads ? arg_reads_.data() : nullptr,
      .out_reads = reads ? out_reads_.data() : nullptr,
      .self = this,
      .backward_self = gradients.empty() ? nullptr : interpreter::backward,
  };
}

}  // namespace tenon::interpreter
