// SPDX-License-Identifier: Apache-2.0
#include "elementwise.hpp"

#include <support/text.hpp>

namespace tenon::interpreter {

const Elementwise::Case* Elementwise::case_of(int32_t dtype) const {
  for (const Case& one : cases)
    if (one.dtypes >> dtype & 1) return &one;
  return nullptr;
}

lowering::Out out_of(const codegen::OutDtype& rule) {
  switch (rule.rule) {
    case codegen::OutDtype::Bool:
      return lowering::Out::Bool;
    case codegen::OutDtype::Int64:
      return lowering::Out::Int64;
    case codegen::OutDtype::Real:
      return lowering::Out::Real;
    case codegen::OutDtype::Accumulate:
      return lowering::Out::Accumulate;
    case codegen::OutDtype::Float:
      return lowering::Out::Float;
    default:
      return lowering::Out::Same;
  }
}

Elementwise elementwise_of(const codegen::Operator& op) {
  Elementwise result;
  result.name = op.name;
  result.nparams = static_cast<uint32_t>(op.signature.params.size());
  result.compute = static_cast<int32_t>(op.dtypes.compute);
  result.out = out_of(op.dtypes.outs[0]);
  for (size_t i = 0; i < op.signature.params.size(); ++i) {
    const codegen::Param& param = op.signature.params[i];
    const uint64_t bit = uint64_t{1} << i;
    if (!param.is_tensor()) continue;
    result.tensors |= bit;
    const bool first =
        op.dtypes.compute == codegen::Compute::First && !op.dtypes.checked.count(param.name);
    if (first || op.dtypes.is_promoted(param.name)) result.promoted |= bit;
  }
  for (const codegen::ScalarCase& scalar_case : op.cases) {
    auto program = codegen::scalar_program(op, codegen::check_case(op, scalar_case),
                                           codegen::Vocabulary::Operators);
    if (!program)
      throw codegen::Error(scalar_case.expression.where,
                           codegen::cat("expr: more than ", codegen::kMaxSteps,
                                        " different parts; split the operator"));
    result.cases.push_back({scalar_case.mask, compile(*program)});
  }
  return result;
}

tenon_status run(const Elementwise& op, const tenon_value* args, tenon_value* outs,
                 tenon_err* err) {
  Scope scope(err);
  tenon_meta meta;
  meta.ndim = 0;
  tenon_device_id device = TENON_DEVICE_NONE;
  for (uint32_t i = 0; op.tensors >> i; ++i)
    if (op.tensors >> i & 1 && args[i].tag == TENON_VALUE_TENSOR) {
      const tenon_tensor* tensor = tenon_arg_tensor(&args[i]);
      device = tensor->device;
      TENON_TRY(shapes::broadcast_with(op.name.c_str(), tensor, meta, err));
    }
  const int32_t compute = lowering::compute_dtype(args, op.promoted, op.compute);
  const Elementwise::Case* one = op.case_of(compute);
  if (!one)
    return shapes::fail(err, TENON_UNSUPPORTED, op.name.c_str(), "no expression for %s",
                        host->dtype_name(compute));
  const lowering::Surroundings around{scope, args, op.promoted, primitive::work_dtype(compute),
                                      device};
  return give_result(scope, ScalarRun(one->codes, around).result(),
                     {meta.shape, meta.shape + meta.ndim}, lowering::out_dtype(op.out, compute),
                     device, outs);
}

}  // namespace tenon::interpreter
