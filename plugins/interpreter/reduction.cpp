// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <support/text.hpp>

#include <tenon/ops/interior.hpp>

#include "elementwise.hpp"

namespace tenon::interpreter {
namespace {

using lowering::Value;

ScalarCodes codes_of(const codegen::Operator& op, const codegen::ScalarValue& value) {
  auto program = codegen::scalar_program(op, value, codegen::Vocabulary::Operators);
  if (!program)
    throw codegen::Error(op.where, codegen::cat("reduce: more than ", codegen::kMaxSteps,
                                                " different parts; split the operator"));
  return compile(*program);
}

}  // namespace

Reduction reduction_of(const codegen::Operator& op) {
  const codegen::CheckedReduction checked = codegen::check_reduction(op);
  const auto combine = codegen::reducing_operator(checked);
  if (!combine)
    throw codegen::Error(
        op.reduction->combine.where,
        codegen::cat(
            "reduce: without a compiler `combine` is a + b, a * b, max(a, b), min(a, b), a "
            "|| b or a && b, got `",
            codegen::text_of(op.reduction->combine),
            "`; write a `decompose`, or build the package: tenon new-op"));
  Reduction result;
  result.name = op.name;
  const auto& params = op.shape->params;
  if (params.size() > 1) result.axis = op.signature.find_param(params[1]);
  if (params.size() > 2) result.keepdim = op.signature.find_param(params[2]);
  result.keeps = op.shape->keepdim;
  result.compute = static_cast<int32_t>(op.dtypes.compute);
  result.out = out_of(op.dtypes.outs[0]);
  result.truth = checked.truth;
  result.plain_sum = *combine == "sum" && checked.map.form == codegen::ScalarValue::Variable;
  result.combine = std::make_shared<Callee>("tenon::" + *combine, 0);
  if (checked.init) result.init = codes_of(op, *checked.init);
  result.map = codes_of(op, checked.map);
  result.finish = codes_of(op, checked.finish);
  return result;
}

tenon_status run(const Reduction& op, const tenon_value* args, tenon_value* outs, tenon_err* err) {
  Scope scope(err);
  const char* name = op.name.c_str();
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (!x) return shapes::fail(err, TENON_TYPE_MISMATCH, name, "expected a tensor, got a number");
  const int32_t compute = lowering::compute_dtype(args, 1, op.compute);
  // Elements are widened before they are mapped, unless the map asks about them (x != 0).
  const int32_t work = lowering::partial_dtype(op.out, op.truth, op.plain_sum, compute);
  const tenon_value axes = op.axis < 0 ? kNoValue : args[op.axis];
  const bool keepdim = op.keepdim < 0 ? op.keeps : tenon_arg_bool(&args[op.keepdim]) != 0;
  uint32_t mask = 0;
  TENON_TRY(shapes::reduction_mask(name, "axis", axes, x->ndim, &mask, err));
  int64_t n = 1;
  std::vector<int64_t> shape;
  for (int32_t i = 0; i < x->ndim; ++i) {
    if (mask >> i & 1) n *= x->shape[i];
    if (!(mask >> i & 1) || keepdim) shape.push_back(mask >> i & 1 ? 1 : x->shape[i]);
  }
  lowering::Surroundings around{scope, args, 1, work, x->device};
  around.count = n;
  if (n == 0) {
    if (!op.init && primitive::count_of(shape) > 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, name, "expected elements to reduce");
    const int32_t partial = op.truth ? int32_t{TENON_DTYPE_BOOL} : work;
    const Value init = op.init ? ScalarRun(*op.init, around).result() : Value(ScalarArg(0));
    around.partial = filled(scope, shape, init.number, partial, x->device);
  } else {
    Value mapped = ScalarRun(op.map, around).result();
    if (!scope.ok()) return scope.status();
    if (mapped.is_number())
      mapped = filled(scope, {x->shape, x->shape + x->ndim}, mapped.number, work, x->device);
    tenon_value values[3] = {TensorArg(mapped.tensor).value(), axes, tenon::boxed(keepdim)};
    tenon_value reduced = kNoValue;
    if (!op.combine->run(scope, values, 3, &reduced, 1)) return scope.status();
    around.partial = Tensor::adopt(static_cast<tenon_tensor*>(reduced.v.p));
  }
  if (op.out == lowering::Out::Float) {
    around.work = primitive::work_dtype(lowering::out_dtype(op.out, compute));
    if (around.partial.tensor->dtype != around.work)
      around.partial.tensor = interior::cast(scope, around.partial.tensor, around.work);
  }
  return give_result(scope, ScalarRun(op.finish, around).result(), shape,
                     lowering::out_dtype(op.out, compute), x->device, outs);
}

}  // namespace tenon::interpreter
