// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

namespace {

tenon_status infer_product(const char* op, int32_t dtype, const tenon_tensor& x,
                           const tenon_tensor& y, tenon_meta& out, tenon_err* err) {
  if (x.ndim == 0 || y.ndim == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected vectors, matrices or batches of them, got shapes %s and %s; "
                        "multiply takes single numbers",
                        shape_text(x).c_str(), shape_text(y).c_str());
  int64_t inner_x = x.shape[x.ndim - 1], inner_y = y.shape[y.ndim == 1 ? 0 : y.ndim - 2];
  if (inner_x != inner_y)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x.shape[-1] == y.shape[%s], got %lld and %lld from shapes %s and "
                        "%s; transpose one of them",
                        y.ndim == 1 ? "0" : "-2", ll(inner_x), ll(inner_y), shape_text(x).c_str(),
                        shape_text(y).c_str());
  Ints batch_x = shape_of(x).first(static_cast<size_t>(std::max(x.ndim - 2, 0)));
  Ints batch_y = shape_of(y).first(static_cast<size_t>(std::max(y.ndim - 2, 0)));
  set_new(out, dtype, batch_x);
  if (!broadcast_into(out.shape, &out.ndim, batch_y))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected batches that broadcast, got %s and %s from shapes %s and %s",
                        list_text(batch_x).c_str(), list_text(batch_y).c_str(),
                        shape_text(x).c_str(), shape_text(y).c_str());
  if (x.ndim > 1) add_axis(out, x.shape[x.ndim - 2]);
  if (y.ndim > 1) add_axis(out, y.shape[y.ndim - 1]);
  return TENON_OK;
}

}  // namespace

TENON_INFER(matmul) {
  const tenon_tensor &x = tensor_of(args[0]), &y = tensor_of(args[1]);
  return infer_product("matmul", host->dtype_promote(x.dtype, y.dtype), x, y, outs[0], err);
}

TENON_INFER(matmul_integer) {
  return infer_product("matmul_integer", TENON_DTYPE_I32, tensor_of(args[0]), tensor_of(args[1]),
                       outs[0], err);
}

namespace {

tenon_status infer_rows_times_weight(const char* op, const tenon_value* args, tenon_meta* outs,
                                     tenon_err* err) {
  const tenon_tensor &x = tensor_of(args[0]), &weight = tensor_of(args[1]);
  const tenon_tensor* bias = optional_tensor(args[2]);
  TENON_TRY(expect_ndim(op, "weight", weight, 2, "[out, in]", err));
  if (x.ndim == 0 || x.shape[x.ndim - 1] != weight.shape[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x.shape[-1] == weight.shape[1], got shapes %s and %s",
                        shape_text(x).c_str(), shape_text(weight).c_str());
  if (bias && (bias->ndim != 1 || bias->shape[0] != weight.shape[0]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected bias of shape [%lld], got %s",
                        ll(weight.shape[0]), shape_text(*bias).c_str());
  int32_t dtype = host->dtype_promote(x.dtype, weight.dtype);
  if (bias) dtype = host->dtype_promote(dtype, bias->dtype);
  set_new(outs[0], dtype, shape_of(x).first(static_cast<size_t>(x.ndim) - 1));
  add_axis(outs[0], weight.shape[0]);
  return TENON_OK;
}

}  // namespace

TENON_INFER(linear) { return infer_rows_times_weight("linear", args, outs, err); }
TENON_INFER(linear_batch_invariant) {
  return infer_rows_times_weight("linear_batch_invariant", args, outs, err);
}

}  // namespace tenon::standard_ops
