// SPDX-License-Identifier: Apache-2.0
// Optimiser steps from arithmetic, for devices without fused kernels.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// gradient + decay * param
Tensor decayed(Scope& scope, const Tensor& gradient, const Tensor& param, double decay) {
  return decay == 0 ? gradient : ops::add(scope, gradient, ops::multiply(scope, param, decay));
}

// fraction * average + (1 - fraction) * fresh
Tensor blended(Scope& scope, const Tensor& average, const Tensor& fresh, double fraction) {
  return ops::add(scope, ops::multiply(scope, average, fraction),
                  ops::multiply(scope, fresh, 1 - fraction));
}

// param - lr * direction / (sqrt(square) + eps)
Tensor stepped(Scope& scope, const Tensor& param, const Tensor& direction, const Tensor& square,
               double lr, double eps) {
  Tensor size = ops::add(scope, ops::sqrt(scope, square), eps);
  return ops::subtract(scope, param, ops::divide(scope, ops::multiply(scope, direction, lr), size));
}

}  // namespace

TENON_DECOMPOSE(momentum_update) {
  Scope scope(err);
  Tensor param = operand(scope, args[0]), gradient = operand(scope, args[1]),
         velocity = operand(scope, args[2]);
  double lr = float_of(args[3]), momentum = float_of(args[4]), dampening = float_of(args[5]);
  Tensor g = decayed(scope, gradient, param, float_of(args[6]));
  Tensor next = ops::multiply(scope, velocity, momentum);
  next = ops::add(scope, next, dampening == 0 ? g : ops::multiply(scope, g, 1 - dampening));
  Tensor direction =
      bool_of(args[7]) ? ops::add(scope, g, ops::multiply(scope, next, momentum)) : next;
  return finish(scope, outs, ops::subtract(scope, param, ops::multiply(scope, direction, lr)),
                next);
}

namespace {

tenon_status adam(const tenon_value* args, bool decoupled, tenon_value* outs, tenon_err* err) {
  Scope scope(err);
  Tensor param = operand(scope, args[0]), gradient = operand(scope, args[1]);
  int64_t step = int_of(args[4]);
  double lr = float_of(args[5]), beta1 = float_of(args[6]), beta2 = float_of(args[7]),
         decay = float_of(args[9]);
  if (step < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, decoupled ? "adamw_update" : "adam_update",
                        "expected step to count from 1, got %lld", ll(step));
  Tensor g = decoupled ? gradient : decayed(scope, gradient, param, decay);
  if (decoupled && decay != 0) param = ops::multiply(scope, param, 1 - lr * decay);
  Tensor m = blended(scope, operand(scope, args[2]), g, beta1);
  Tensor v = blended(scope, operand(scope, args[3]), ops::square(scope, g), beta2);
  Tensor mean = ops::divide(scope, m, 1 - std::pow(beta1, static_cast<double>(step)));
  Tensor square = ops::divide(scope, v, 1 - std::pow(beta2, static_cast<double>(step)));
  return finish(scope, outs, stepped(scope, param, mean, square, lr, float_of(args[8])), m, v);
}

}  // namespace

TENON_DECOMPOSE(adam_update) { return adam(args, false, outs, err); }
TENON_DECOMPOSE(adamw_update) { return adam(args, true, outs, err); }

TENON_DECOMPOSE(rmsprop_update) {
  Scope scope(err);
  Tensor param = operand(scope, args[0]);
  Tensor g = decayed(scope, operand(scope, args[1]), param, float_of(args[6]));
  Tensor v = blended(scope, operand(scope, args[2]), ops::square(scope, g), float_of(args[4]));
  return finish(scope, outs, stepped(scope, param, g, v, float_of(args[3]), float_of(args[5])), v);
}

TENON_DECOMPOSE(adagrad_update) {
  Scope scope(err);
  Tensor param = operand(scope, args[0]);
  Tensor g = decayed(scope, operand(scope, args[1]), param, float_of(args[5]));
  Tensor v = ops::add(scope, operand(scope, args[2]), ops::square(scope, g));
  return finish(scope, outs, stepped(scope, param, g, v, float_of(args[3]), float_of(args[4])), v);
}

}  // namespace tenon::standard_ops
