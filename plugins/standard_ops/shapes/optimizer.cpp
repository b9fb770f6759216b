// SPDX-License-Identifier: Apache-2.0
// Optimiser steps: every tensor has the shape and dtype of the parameter.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status infer_update(const char* op, const tenon_value* args, uint32_t tensors,
                          tenon_meta* outs, uint32_t nouts, tenon_err* err) {
  const tenon_tensor& param = tensor_of(args[0]);
  for (uint32_t i = 1; i < tensors; ++i) {
    const tenon_tensor& other = tensor_of(args[i]);
    if (!std::ranges::equal(shape_of(other), shape_of(param)))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected argument %u to have param's shape %s, got %s", i,
                          shape_text(param).c_str(), shape_text(other).c_str());
    if (other.dtype != param.dtype)
      return shapes::fail(
          err, TENON_TYPE_MISMATCH, op,
          "expected argument %u to have param's dtype %s, got %s; convert it with cast", i,
          host->dtype_name(param.dtype), host->dtype_name(other.dtype));
  }
  for (uint32_t i = 0; i < nouts; ++i) set_like(outs[i], param);
  return TENON_OK;
}

// Steps count from 1: the correction of Adam's averages divides by zero at 0.
tenon_status infer_adam(const char* op, const tenon_value* args, tenon_meta* outs, uint32_t nouts,
                        tenon_err* err) {
  constexpr uint32_t kTensors = 4;
  if (args[kTensors].v.i < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected step of at least 1, got %lld; count steps from 1",
                        ll(args[kTensors].v.i));
  return infer_update(op, args, kTensors, outs, nouts, err);
}

}  // namespace

TENON_INFER(sgd_update) { return infer_update("sgd_update", args, 2, outs, nouts, err); }
TENON_INFER(momentum_update) { return infer_update("momentum_update", args, 3, outs, nouts, err); }
TENON_INFER(adam_update) { return infer_adam("adam_update", args, outs, nouts, err); }
TENON_INFER(adamw_update) { return infer_adam("adamw_update", args, outs, nouts, err); }
TENON_INFER(adam_update_counted) {
  constexpr uint32_t kTensors = 4;
  if (const tenon_tensor& step = tensor_of(args[kTensors]); step.numel != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "adam_update_counted",
                        "expected step to be one number, got shape %s", shape_text(step).c_str());
  return infer_update("adam_update_counted", args, kTensors, outs, nouts, err);
}
TENON_INFER(rmsprop_update) { return infer_update("rmsprop_update", args, 3, outs, nouts, err); }
TENON_INFER(adagrad_update) { return infer_update("adagrad_update", args, 3, outs, nouts, err); }
TENON_INFER(decayed_adagrad_update) {
  return infer_update("decayed_adagrad_update", args, 3, outs, nouts, err);
}

}  // namespace tenon::standard_ops
