// SPDX-License-Identifier: Apache-2.0
// Normalisation: statistics over channels or over trailing axes.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// An optional parameter of the layer, which must have this shape and the dtype of `x`.
tenon_status expect_parameter(const char* op, const char* name, const tenon_value& value,
                              Ints shape, int32_t dtype, tenon_err* err) {
  const tenon_tensor* parameter = optional_tensor(value);
  if (!parameter) return TENON_OK;
  if (!std::ranges::equal(shape_of(*parameter), shape))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of shape %s, got %s", name,
                        list_text(shape).c_str(), shape_text(*parameter).c_str());
  if (parameter->dtype != dtype)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected %s of dtype %s like x, got %s; convert it with cast", name,
                        host->dtype_name(dtype), host->dtype_name(parameter->dtype));
  return TENON_OK;
}

tenon_status expect_channels(const char* op, const tenon_tensor& x, Ints* channels,
                             tenon_err* err) {
  if (x.ndim < 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x of shape [batch, channels, ...], got %s",
                        shape_text(x).c_str());
  *channels = shape_of(x).subspan(1, 1);
  return TENON_OK;
}

tenon_status expect_trailing(const char* op, const tenon_tensor& x, int64_t count, Ints* trailing,
                             tenon_err* err) {
  if (count < 1 || count > x.ndim)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected normalized_ndim from 1 to %d, got %lld", x.ndim, ll(count));
  *trailing = shape_of(x).last(static_cast<size_t>(count));
  return TENON_OK;
}

tenon_status expect_like(const char* op, const tenon_tensor& grad_out, const tenon_tensor& x,
                         tenon_err* err) {
  if (std::ranges::equal(shape_of(grad_out), shape_of(x))) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected grad_out of shape %s, got %s",
                      shape_text(x).c_str(), shape_text(grad_out).c_str());
}

}  // namespace

namespace {

// Statistics of smaller floats are float32: the variance of numbers around 300 leaves float16.
int32_t statistics_dtype(int32_t dtype) {
  return dtype < TENON_DTYPE_F32 ? int32_t{TENON_DTYPE_F32} : dtype;
}

}  // namespace

TENON_INFER(batch_norm) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints channels;
  TENON_TRY(expect_channels("batch_norm", x, &channels, err));
  TENON_TRY(expect_parameter("batch_norm", "weight", args[1], channels, x.dtype, err));
  TENON_TRY(expect_parameter("batch_norm", "bias", args[2], channels, x.dtype, err));
  set_like(outs[0], x);
  set_new(outs[1], statistics_dtype(x.dtype), channels);
  set_new(outs[2], statistics_dtype(x.dtype), channels);
  return TENON_OK;
}

TENON_INFER(batch_norm_grad) {
  const char* op = "batch_norm_grad";
  const tenon_tensor& x = tensor_of(args[1]);
  Ints channels;
  TENON_TRY(expect_channels(op, x, &channels, err));
  TENON_TRY(expect_like(op, tensor_of(args[0]), x, err));
  TENON_TRY(expect_parameter(op, "weight", args[2], channels, x.dtype, err));
  const int32_t statistics = statistics_dtype(x.dtype);
  TENON_TRY(expect_parameter(op, "mean", args[3], channels, statistics, err));
  TENON_TRY(expect_parameter(op, "var", args[4], channels, statistics, err));
  set_like(outs[0], x);
  set_new(outs[1], x.dtype, channels);
  set_new(outs[2], x.dtype, channels);
  return TENON_OK;
}

TENON_INFER(layer_norm) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints trailing;
  TENON_TRY(expect_trailing("layer_norm", x, int_of(args[3]), &trailing, err));
  TENON_TRY(expect_parameter("layer_norm", "weight", args[1], trailing, x.dtype, err));
  TENON_TRY(expect_parameter("layer_norm", "bias", args[2], trailing, x.dtype, err));
  set_like(outs[0], x);
  return TENON_OK;
}

TENON_INFER(layer_norm_grad) {
  const char* op = "layer_norm_grad";
  const tenon_tensor& x = tensor_of(args[1]);
  Ints trailing;
  TENON_TRY(expect_trailing(op, x, int_of(args[3]), &trailing, err));
  TENON_TRY(expect_like(op, tensor_of(args[0]), x, err));
  TENON_TRY(expect_parameter(op, "weight", args[2], trailing, x.dtype, err));
  set_like(outs[0], x);
  set_new(outs[1], x.dtype, trailing);
  set_new(outs[2], x.dtype, trailing);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
