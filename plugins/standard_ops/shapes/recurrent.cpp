// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: sequences [T, N, features] and the state [N, H] between two steps.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_shape(const char* op, const char* name, const tenon_tensor& tensor,
                          const tenon_tensor& like, Ints shape, tenon_err* err) {
  if (!std::ranges::equal(shape_of(tensor), shape))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of shape %s, got %s", name,
                        list_text(shape).c_str(), shape_text(tensor).c_str());
  if (tensor.dtype != like.dtype)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected %s of dtype %s like the rest, got %s; convert it with cast", name,
                        host->dtype_name(like.dtype), host->dtype_name(tensor.dtype));
  return TENON_OK;
}

}  // namespace

TENON_INFER(lstm_recurrence) {
  const char* op = "lstm_recurrence";
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  TENON_TRY(expect_ndim(op, "x", x, 3, "[steps, batch, 4 * features]", err));
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[4 * features, features]", err));
  const int64_t steps = x.shape[0], batch = x.shape[1], features = weight.shape[1];
  const int64_t gates[] = {steps, batch, 4 * features}, sequence[] = {steps, batch, features};
  const int64_t matrix[] = {4 * features, features}, state[] = {batch, features};
  TENON_TRY(expect_shape(op, "weight", weight, x, matrix, err));
  TENON_TRY(expect_shape(op, "x", x, x, gates, err));
  TENON_TRY(expect_shape(op, "h", tensor_of(args[2]), x, state, err));
  TENON_TRY(expect_shape(op, "c", tensor_of(args[3]), x, state, err));
  set_new(outs[0], x.dtype, sequence);
  set_new(outs[1], x.dtype, sequence);
  set_new(outs[2], x.dtype, gates);
  return TENON_OK;
}

TENON_INFER(lstm_recurrence_grad) {
  const char* op = "lstm_recurrence_grad";
  const tenon_tensor &out = tensor_of(args[6]), &gates = tensor_of(args[8]);
  const tenon_tensor &weight = tensor_of(args[3]), &h = tensor_of(args[4]);
  TENON_TRY(expect_shape(op, "grad_out", tensor_of(args[0]), out, shape_of(out), err));
  TENON_TRY(expect_shape(op, "grad_cells", tensor_of(args[1]), out, shape_of(out), err));
  TENON_TRY(expect_shape(op, "grad_gates", tensor_of(args[2]), gates, shape_of(gates), err));
  set_like(outs[0], gates);
  set_like(outs[1], weight);
  set_like(outs[2], h);
  set_like(outs[3], h);
  return TENON_OK;
}

TENON_INFER(lstm_recurrence_input_grad) {
  const char* op = "lstm_recurrence_input_grad";
  const tenon_tensor &weight = tensor_of(args[3]), &gates = tensor_of(args[6]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[4 * features, features]", err));
  TENON_TRY(expect_ndim(op, "gates", gates, 3, "[steps, batch, 4 * features]", err));
  const int64_t steps = gates.shape[0], batch = gates.shape[1], features = weight.shape[1];
  const int64_t quarters[] = {steps, batch, 4 * features}, sequence[] = {steps, batch, features};
  const int64_t matrix[] = {4 * features, features}, state[] = {batch, features};
  TENON_TRY(expect_shape(op, "weight", weight, gates, matrix, err));
  TENON_TRY(expect_shape(op, "gates", gates, gates, quarters, err));
  TENON_TRY(expect_shape(op, "grad_out", tensor_of(args[0]), gates, sequence, err));
  TENON_TRY(expect_shape(op, "grad_cells", tensor_of(args[1]), gates, sequence, err));
  TENON_TRY(expect_shape(op, "grad_gates", tensor_of(args[2]), gates, quarters, err));
  TENON_TRY(expect_shape(op, "c", tensor_of(args[4]), gates, state, err));
  TENON_TRY(expect_shape(op, "cells", tensor_of(args[5]), gates, sequence, err));
  set_like(outs[0], gates);
  set_like(outs[1], tensor_of(args[4]));
  set_like(outs[2], tensor_of(args[4]));
  return TENON_OK;
}

namespace {

// The arguments that the three operators of the gated unit share, by the weight's extent.
struct GatedShapes {
  int64_t sums[3], sequence[3], gates[3], matrix[2], bias[1], state[2];
  GatedShapes(int64_t steps, int64_t batch, int64_t features)
      : sums{steps, batch, 3 * features},
        sequence{steps, batch, features},
        gates{steps, batch, 4 * features},
        matrix{3 * features, features},
        bias{3 * features},
        state{batch, features} {}
};

tenon_status expect_gated_gradients(const char* op, const tenon_value* args,
                                    const GatedShapes& shape, tenon_err* err) {
  const tenon_tensor& gates = tensor_of(args[5]);
  TENON_TRY(expect_shape(op, "grad_out", tensor_of(args[0]), gates, shape.sequence, err));
  TENON_TRY(expect_shape(op, "grad_gates", tensor_of(args[1]), gates, shape.gates, err));
  TENON_TRY(expect_shape(op, "weight", tensor_of(args[2]), gates, shape.matrix, err));
  TENON_TRY(expect_shape(op, "h", tensor_of(args[3]), gates, shape.state, err));
  TENON_TRY(expect_shape(op, "out", tensor_of(args[4]), gates, shape.sequence, err));
  return expect_shape(op, "gates", gates, gates, shape.gates, err);
}

}  // namespace

TENON_INFER(gru_recurrence) {
  const char* op = "gru_recurrence";
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  TENON_TRY(expect_ndim(op, "x", x, 3, "[steps, batch, 3 * features]", err));
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[3 * features, features]", err));
  const GatedShapes shape(x.shape[0], x.shape[1], weight.shape[1]);
  TENON_TRY(expect_shape(op, "weight", weight, x, shape.matrix, err));
  TENON_TRY(expect_shape(op, "x", x, x, shape.sums, err));
  TENON_TRY(expect_shape(op, "bias", tensor_of(args[2]), x, shape.bias, err));
  TENON_TRY(expect_shape(op, "h", tensor_of(args[3]), x, shape.state, err));
  set_new(outs[0], x.dtype, shape.sequence);
  set_new(outs[1], x.dtype, shape.gates);
  return TENON_OK;
}

TENON_INFER(gru_recurrence_grad) {
  const char* op = "gru_recurrence_grad";
  const tenon_tensor &weight = tensor_of(args[2]), &gates = tensor_of(args[5]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[3 * features, features]", err));
  TENON_TRY(expect_ndim(op, "gates", gates, 3, "[steps, batch, 4 * features]", err));
  const GatedShapes shape(gates.shape[0], gates.shape[1], weight.shape[1]);
  TENON_TRY(expect_gated_gradients(op, args, shape, err));
  set_new(outs[0], gates.dtype, shape.sums);
  set_like(outs[1], weight);
  set_new(outs[2], gates.dtype, shape.bias);
  set_like(outs[3], tensor_of(args[3]));
  return TENON_OK;
}

TENON_INFER(gru_recurrence_input_grad) {
  const char* op = "gru_recurrence_input_grad";
  const tenon_tensor &weight = tensor_of(args[2]), &gates = tensor_of(args[5]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[3 * features, features]", err));
  TENON_TRY(expect_ndim(op, "gates", gates, 3, "[steps, batch, 4 * features]", err));
  const GatedShapes shape(gates.shape[0], gates.shape[1], weight.shape[1]);
  TENON_TRY(expect_gated_gradients(op, args, shape, err));
  set_new(outs[0], gates.dtype, shape.sums);
  set_new(outs[1], gates.dtype, shape.sums);
  set_like(outs[2], tensor_of(args[3]));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
