// SPDX-License-Identifier: Apache-2.0
// adam_update, adamw_update and adam_update_counted by aclnnApplyAdamWV2 (ops-nn/optim/apply_adam_w_v2/docs/aclnnApplyAdamWV2.md),
// which decays the parameter itself and updates in place, and whose step is a tensor.
#include <algorithm>

#include "handwritten.hpp"

namespace ascend {
namespace {

Function update_function{.name = "aclnnApplyAdamWV2"};
Function fill_function{.name = "aclnnInplaceFillScalar"};
Function copy_function{.name = "aclnnInplaceCopy", .is_reusable = false};  // as in indices.cpp

// The parameters of the three operators.
enum Parameter { kParam, kGrad, kM, kV, kStep, kRate, kBeta1, kBeta2, kEps, kDecay, kDecoupled };
constexpr Parameter kUpdated[] = {kParam, kM, kV};  // by which result

tenon_status copy(tenon_ctx* ctx, const char* op, const Tensor& from, const Tensor& to,
                  tenon_err* err) {
  return Call(ctx, op, copy_function, err).run(to, from);
}

// A result may lie where any operand does, as the operators are elementwise.
bool is_elsewhere(const tenon_value& result, const tenon_value* args, Parameter own) {
  return std::any_of(args + kParam, args + kStep, [&](const tenon_value& arg) {
    return &arg != args + own && tenon_arg_tensor(&arg)->data == tenon_arg_tensor(&result)->data;
  });
}

tenon_status update(tenon_ctx* ctx, const char* op, const tenon_value* args, tenon_value* outs,
                    const Tensor& step, tenon_err* err) {
  Call call(ctx, op, update_function, err);
  std::array<Tensor, 3> updated, results;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor given = call.vector(args[kUpdated[i]]);
    results[i] = call.vector(outs[i]);
    updated[i] = is_elsewhere(outs[i], args, kUpdated[i])
                     ? call.scratch_of(results[i].shape, results[i].dtype)
                     : results[i];
    if (given.data == updated[i].data) continue;
    if (const tenon_status status = copy(ctx, op, given, updated[i], err)) return status;
  }
  const auto number = [&](Parameter one) {
    return static_cast<float>(tenon_arg_float(&args[one]));
  };
  tenon_status status =
      call.run(updated[0], updated[1], updated[2], call.no_tensor(), call.vector(args[kGrad]), step,
               number(kRate), number(kBeta1), number(kBeta2), number(kDecay), number(kEps),
               /*amsgrad=*/false, /*maximize=*/false);
  for (size_t i = 0; i < 3 && !status; ++i)
    if (updated[i].data != results[i].data) status = copy(ctx, op, updated[i], results[i], err);
  return status;
}

template <const char* kOp>
tenon_status run_update(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                        uint32_t, tenon_err* err) try {
  Call fill(ctx, kOp, fill_function, err);
  const Tensor step = fill.scratch_of({1}, TENON_DTYPE_I64);
  if (const tenon_status status = fill.run(step, fill.scalar(args[kStep].v.i))) return status;
  return update(ctx, kOp, args, outs, step, err);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

constexpr char kAdamName[] = "tenon::adam_update", kAdamWName[] = "tenon::adamw_update",
               kCountedName[] = "tenon::adam_update_counted";

tenon_status run_counted(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                         uint32_t, tenon_err* err) try {
  return update(ctx, kCountedName, args, outs,
                Call(ctx, kCountedName, update_function, err).vector(args[kStep]), err);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

bool has_no_decay(const tenon_value* args) { return tenon_arg_float(&args[kDecay]) == 0; }

int32_t can_run_adam(const tenon_value* args, uint32_t nargs) {
  return takes_shapes(args, nargs) && has_no_decay(args);
}
int32_t can_run_counted(const tenon_value* args, uint32_t nargs) {
  return takes_shapes(args, nargs) && tenon_arg_tensor(&args[kStep])->dtype == TENON_DTYPE_F32 &&
         (has_no_decay(args) || tenon_arg_bool(&args[kDecoupled]));
}

constexpr uint64_t kDtypes = bit(TENON_DTYPE_F32);

}  // namespace

const HandwrittenKernel kAdam = {
    .op = kAdamName,
    .traits = 0,
    .dtype_mask = kDtypes,
    .run = run_update<kAdamName>,
    .can_run = can_run_adam,
    .functions = {&update_function, &fill_function, &copy_function},
};

const HandwrittenKernel kAdamW = {
    .op = kAdamWName,
    .traits = 0,
    .dtype_mask = kDtypes,
    .run = run_update<kAdamWName>,
    .functions = {&update_function, &fill_function, &copy_function},
};

const HandwrittenKernel kAdamCounted = {
    .op = kCountedName,
    .traits = 0,
    .dtype_mask = kDtypes,
    .run = run_counted,
    .can_run = can_run_counted,
    .functions = {&update_function, &copy_function},
};

}  // namespace ascend
