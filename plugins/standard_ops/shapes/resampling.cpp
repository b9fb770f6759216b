// SPDX-License-Identifier: Apache-2.0
// Resampling by tables of indices and weights.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status check_tables(const char* op, const tenon_tensor& x, const tenon_tensor& index,
                          const tenon_tensor& weight, tenon_err* err) {
  if (index.ndim != 2 || !std::ranges::equal(shape_of(index), shape_of(weight)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected index and weight of one shape [count, taps], got %s and %s",
                        shape_text(index).c_str(), shape_text(weight).c_str());
  const bool fits =
      weight.dtype == x.dtype || (weight.dtype == TENON_DTYPE_F32 && x.dtype < TENON_DTYPE_F32);
  if (fits) return TENON_OK;
  return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                      "expected weight of dtype %s, got %s; convert it with .to(dtype)",
                      host->dtype_name(x.dtype), host->dtype_name(weight.dtype));
}

tenon_status infer_along(const char* op, const tenon_value* args, int64_t axis, int64_t extent,
                         tenon_meta& out, tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(check_tables(op, x, tensor_of(args[1]), tensor_of(args[2]), err));
  int32_t along;
  TENON_TRY(resolve_axis(op, axis, x.ndim, &along, err));
  set_like(out, x);
  out.shape[along] = extent;
  return TENON_OK;
}

}  // namespace

TENON_INFER(resample) {
  const tenon_tensor& index = tensor_of(args[1]);
  const int64_t count = index.ndim > 0 ? index.shape[0] : 0;
  return infer_along("resample", args, int_of(args[3]), count, outs[0], err);
}

TENON_INFER(resample_grad) {
  const char* op = "resample_grad";
  TENON_TRY(infer_along(op, args, int_of(args[4]), int_of(args[3]), outs[0], err));
  const tenon_tensor &grad_out = tensor_of(args[0]), &index = tensor_of(args[1]);
  int32_t axis;
  TENON_TRY(resolve_axis(op, int_of(args[4]), grad_out.ndim, &axis, err));
  if (grad_out.shape[axis] == index.shape[0]) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %lld slices along axis %d, got %s",
                      ll(index.shape[0]), axis, shape_text(grad_out).c_str());
}

}  // namespace tenon::standard_ops
