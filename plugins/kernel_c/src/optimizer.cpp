// SPDX-License-Identifier: Apache-2.0
// Optimiser updates in one pass over memory. Called with the results in place of the arguments.
#include "elementwise.hpp"
#include "kernel.hpp"

#include <cmath>
#include <initializer_list>

namespace tenon::kernel_c {
namespace {

constexpr ElementwiseInput kInputs[] = {{"param", 0}, {"grad", 0}, {"first", 0}, {"second", 0}};
constexpr const char* kTypes[] = {"T", "T", "T", "T", "T", "T", "T", "T", "T"};

struct Update {
  const char* name;
  uint32_t ninputs, nouts;
  const char* statements;  // r0 is the new parameter
};

tenon_status run(const Update& update, tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                 std::initializer_list<double> numbers, tenon_err* err) {
  const tenon_tensor* inputs[kMostInputs];
  tenon_tensor* results[kMostOutputs];
  tenon_value values[std::size(kTypes)];
  for (uint32_t i = 0; i < update.ninputs; ++i) inputs[i] = tenon_arg_tensor(&args[i]);
  for (uint32_t i = 0; i < update.nouts; ++i) results[i] = tenon_out_tensor(&outs[i]);
  uint32_t count = 0;
  for (double value : numbers) values[count++] = number(value);
  return run_elementwise_program({.family = &update,
                                  .name = update.name,
                                  .inputs = kInputs,
                                  .ninputs = update.ninputs,
                                  .nouts = update.nouts,
                                  .nvalues = count,
                                  .types = kTypes,
                                  .statements = update.statements},
                                 inputs[0]->dtype, ctx, inputs, results, values, err);
}

double at(const tenon_value* args, int i) { return tenon_arg_float(&args[i]); }

// v: lr, weight_decay
constexpr Update kSgd = {"sgd_update", 2, 1, "r0 = e_param - (e_grad + e_param * v1) * v0;"};
tenon_status sgd(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) {
  return run(kSgd, ctx, args, outs, {at(args, 2), at(args, 3)}, err);
}

// v: lr, momentum, 1 - dampening, weight_decay, nesterov
constexpr Update kMomentum = {"momentum_update", 3, 2,
                              "T slope = e_grad + e_param * v3; r1 = e_first * v1 + slope * v2; "
                              "r0 = e_param - (v4 != 0 ? slope + r1 * v1 : r1) * v0;"};
tenon_status momentum(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) {
  return run(kMomentum, ctx, args, outs,
             {at(args, 3), at(args, 4), 1 - at(args, 5), at(args, 6), args[7].v.i ? 1.0 : 0.0},
             err);
}

// v: beta1, 1 - beta1, beta2, 1 - beta2, rate, scale, eps, weight_decay, shrink
constexpr Update kAdam = {"adam_update", 4, 3,
                          "T slope = e_grad + e_param * v7; r1 = e_first * v0 + slope * v1; "
                          "r2 = e_second * v2 + slope * slope * v3; "
                          "r0 = e_param * v8 - v4 * r1 / (sqrt(r2) * v5 + v6);"};
template <bool kDecoupled>
tenon_status adam(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                  tenon_err* err) {
  const int64_t step = args[4].v.i;
  if (step < 1)
    return fail(err, TENON_INVALID_ARGUMENT,
                "[adam_update] expected step of at least 1, got " + std::to_string(step));
  const double lr = at(args, 5), beta1 = at(args, 6), beta2 = at(args, 7), decay = at(args, 9);
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(beta2, static_cast<double>(step));
  return run(kAdam, ctx, args, outs,
             {beta1, 1 - beta1, beta2, 1 - beta2, lr / correction1, 1 / std::sqrt(correction2),
              at(args, 8), kDecoupled ? 0.0 : decay, kDecoupled ? 1 - lr * decay : 1.0},
             err);
}

// v: lr, alpha, 1 - alpha, eps, weight_decay
constexpr Update kRmsprop = {
    "rmsprop_update", 3, 2,
    "T slope = e_grad + e_param * v4; r1 = e_first * v1 + slope * slope * v2; "
    "r0 = e_param - v0 * slope / (sqrt(r1) + v3);"};
tenon_status rmsprop(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  return run(kRmsprop, ctx, args, outs,
             {at(args, 3), at(args, 4), 1 - at(args, 4), at(args, 5), at(args, 6)}, err);
}

tenon_status adagrad(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                     tenon_err* err) {
  return run(kRmsprop, ctx, args, outs, {at(args, 3), 1.0, 1.0, at(args, 4), at(args, 5)}, err);
}

const tenon_kernel_def kKernels[] = {
    kernel("tenon::sgd_update", kFloats, kAnyStrides, sgd),
    kernel("tenon::momentum_update", kFloats, kAnyStrides, momentum),
    kernel("tenon::adam_update", kFloats, kAnyStrides, adam<false>),
    kernel("tenon::adamw_update", kFloats, kAnyStrides, adam<true>),
    kernel("tenon::rmsprop_update", kFloats, kAnyStrides, rmsprop),
    kernel("tenon::adagrad_update", kFloats, kAnyStrides, adagrad)};

}  // namespace

KernelList optimizer_kernels() { return kKernels; }

}  // namespace tenon::kernel_c
