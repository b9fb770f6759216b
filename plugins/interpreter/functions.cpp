// SPDX-License-Identifier: Apache-2.0
// The functions behind a definition's tables: shape rule, decomposition, gradients.
#include <algorithm>
#include <new>
#include <tenon/ops/expression.hpp>
#include <tenon/ops/interior.hpp>

#include <support/text.hpp>

#include "definition.hpp"
#include "evaluate.hpp"

namespace tenon::interpreter {
namespace {

using codegen::Compute;
using codegen::OutDtype;
using codegen::ShapeRule;

// Nothing that C++ throws may reach the host.
template <class Function>
tenon_status guarded(const Definition& self, tenon_err* err, Function&& function) try {
  return function();
} catch (const std::bad_alloc&) {
  return shapes::fail(err, TENON_OUT_OF_MEMORY, self.op->name.c_str(), "out of host memory");
} catch (const std::exception& error) {
  return shapes::fail(err, TENON_INTERNAL, self.op->name.c_str(), "%s", error.what());
}

const tenon_value& argument(const codegen::Operator& op, const tenon_value* args,
                            const std::string& param) {
  return args[op.signature.find_param(param)];
}

int32_t compute_dtype(const codegen::Operator& op, const tenon_value* args, uint32_t nargs) {
  const Compute compute = op.dtypes.compute;
  if (compute != Compute::Promote && compute != Compute::PromoteFloat)
    return shapes::first_dtype(args, nargs);
  int32_t dtype = -1;
  for (const std::string& name : op.dtypes.promoted) {
    const tenon_value& value = argument(op, args, name);
    if (value.tag != TENON_VALUE_TENSOR && (value.tag != TENON_VALUE_TENSORS || value.aux == 0))
      continue;
    const int32_t other = shapes::first_dtype(&value, 1);
    dtype = dtype < 0 ? other : host->dtype_promote(dtype, other);
    for (uint32_t i = 1; value.tag == TENON_VALUE_TENSORS && i < value.aux; ++i)
      if (const tenon_tensor* t = tenon_arg_tensors(&value)[i])
        dtype = host->dtype_promote(dtype, t->dtype);
  }
  if (dtype < 0) dtype = TENON_DTYPE_F32;
  return compute == Compute::PromoteFloat ? shapes::float_dtype(dtype) : dtype;
}

int32_t out_dtype(const codegen::Operator& op, const OutDtype& out, const tenon_value* args,
                  int32_t compute) {
  switch (out.rule) {
    case OutDtype::Bool:
      return TENON_DTYPE_BOOL;
    case OutDtype::Int64:
      return TENON_DTYPE_I64;
    case OutDtype::Real:
      return shapes::real_dtype(compute);
    case OutDtype::Accumulate:
      return shapes::accumulate_dtype(compute);
    case OutDtype::Float:
      return shapes::float_dtype(compute);
    case OutDtype::Param:
      return shapes::dtype_or(argument(op, args, out.param), compute);
    default:
      return compute;
  }
}

tenon_status set_shape(const codegen::Operator& op, const tenon_value* args, tenon_meta& out,
                       tenon_err* err) {
  const ShapeRule& rule = *op.shape;
  const char* name = op.name.c_str();
  switch (rule.kind) {
    case ShapeRule::Broadcast:
      out.ndim = 0;
      for (const std::string& param : rule.params)
        TENON_TRY(
            shapes::broadcast_with(name, tenon_arg_tensor(&argument(op, args, param)), out, err));
      return TENON_OK;
    case ShapeRule::Same:
      shapes::same(argument(op, args, rule.params[0]), out);
      return TENON_OK;
    case ShapeRule::Reduce: {
      const bool has_axis = rule.params.size() > 1, has_keepdim = rule.params.size() > 2;
      const tenon_value axes = has_axis ? argument(op, args, rule.params[1]) : kNoValue;
      const bool keepdim =
          has_keepdim ? tenon_arg_bool(&argument(op, args, rule.params[2])) != 0 : rule.keepdim;
      return shapes::reduce(name, argument(op, args, rule.params[0]),
                            has_axis ? rule.params[1].c_str() : "axis", axes, keepdim, out, err);
    }
    case ShapeRule::Of:
      return shapes::of(name, rule.params[0].c_str(), argument(op, args, rule.params[0]), out, err);
    default:
      return shapes::fail(err, TENON_INTERNAL, name, "its shape rule is C++");
  }
}

tenon_value owned(Tensor tensor) { return TensorArg(tensor.release()).value(); }

}  // namespace

tenon_status infer(const tenon_value* args, uint32_t nargs, tenon_meta* outs, uint32_t nouts,
                   tenon_err* err, void* self) {
  const auto& definition = *static_cast<const Definition*>(self);
  return guarded(definition, err, [&] {
    const codegen::Operator& op = *definition.op;
    for (const auto& [param, mask] : op.dtypes.checked)
      TENON_TRY(shapes::check_dtype(op.name.c_str(), param.c_str(), argument(op, args, param), mask,
                                    codegen::describe(mask).c_str(), err));
    const int32_t compute = compute_dtype(op, args, nargs);
    for (uint32_t i = 0; i < nouts; ++i) {
      shapes::set_new(outs[i], out_dtype(op, op.dtypes.outs[i], args, compute));
      TENON_TRY(set_shape(op, args, outs[i], err));
    }
    return tenon_status{TENON_OK};
  });
}

// By the expression of `decompose`.
static tenon_status run_steps(const Definition& definition, const tenon_value* args,
                              tenon_value* outs, uint32_t nouts, tenon_err* err) {
  Scope scope(err);
  const Surroundings around{args};
  Evaluation evaluation(scope, around);
  evaluation.run_steps(*definition.decompose);
  const Item result = evaluation.evaluate(definition.decompose->result);
  const bool is_list = definition.op->signature.list_result();
  if (nouts == 1 && !is_list) {
    Tensor tensor = evaluation.tensor(result);
    if (scope.ok()) outs[0] = owned(std::move(tensor));
    return scope.status();
  }
  std::vector<Tensor> tensors = evaluation.tensors(result);
  if (!scope.ok()) return scope.status();
  if (is_list) expression::give_list(outs[0], tensors);
  for (uint32_t i = 0; !is_list && i < nouts; ++i) outs[i] = owned(std::move(tensors[i]));
  return scope.status();
}

tenon_status decompose(const tenon_value* args, uint32_t nargs, tenon_value* outs, uint32_t nouts,
                       tenon_err* err, void* self) {
  const auto& definition = *static_cast<const Definition*>(self);
  return guarded(definition, err, [&]() -> tenon_status {
    Scope scope(err);
    Depth depth(scope, 1);
    if (!depth) return scope.status();
    const auto run_parts = [&](const tenon_value* values) {
      if (definition.decompose) return run_steps(definition, values, outs, nouts, err);
      return definition.elementwise ? run(*definition.elementwise, values, outs, err)
                                    : run(*definition.reduction, values, outs, err);
    };
    if (!definition.op->dtypes.float32_interior) return run_parts(args);
    const codegen::InteriorRule rule = definition.op->interior_rule();
    return interior::in_float32(
        {rule.tensors, rule.rounded, rule.first, rule.stays_wide, rule.takes_floats}, args, nargs,
        outs, nouts, err, run_parts);
  });
}

tenon_status backward(const tenon_host*, const tenon_value* args, uint32_t,
                      tenon_tensor* const* outs, tenon_tensor* const* grad_outs, uint32_t nouts,
                      uint64_t needs, tenon_value* grad_args, tenon_err* err, void* self) {
  const auto& definition = *static_cast<const Definition*>(self);
  return guarded(definition, err, [&]() -> tenon_status {
    Scope scope(err);
    const Surroundings around{args, outs, grad_outs, nouts};
    std::vector<std::pair<int, std::vector<Tensor>>> results;
    for (const GradientCode& gradient : definition.gradients) {
      if (!(needs & gradient.mask)) continue;
      const bool arrived = nouts == 1 || gradient.reads.empty() ||
                           std::any_of(gradient.reads.begin(), gradient.reads.end(),
                                       [&](int index) { return grad_outs[index] != nullptr; });
      if (!arrived) continue;
      Evaluation evaluation(scope, around);
      const Code& result = gradient.program.result;
      evaluation.run_steps(gradient.program);
      if (gradient.params.size() == 1) {
        const Item item = evaluation.evaluate(result);
        results.emplace_back(gradient.params[0], gradient.is_list
                                                     ? evaluation.tensors(item)
                                                     : std::vector{evaluation.tensor(item)});
        continue;
      }
      const bool each = result.form == codegen::Value::List;
      std::vector<Tensor> all;
      if (!each) all = evaluation.tensors(evaluation.evaluate(result));
      for (size_t i = 0; i < gradient.params.size() && scope.ok(); ++i)
        if (needs >> gradient.params[i] & 1)
          results.emplace_back(
              gradient.params[i],
              std::vector{each ? evaluation.tensor(evaluation.evaluate(result.children[i]))
                               : all[i]});
    }
    if (!scope.ok()) return scope.status();
    for (auto& [param, tensors] : results) {
      const auto kind = definition.op->signature.params[static_cast<size_t>(param)].kind;
      if (kind == codegen::ParamKind::Tensors) {
        if (!tensors.empty()) expression::give_list(grad_args[param], tensors);
      } else {
        expression::give_gradient(grad_args[param], tensors[0]);
      }
    }
    return TENON_OK;
  });
}

}  // namespace tenon::interpreter
