// SPDX-License-Identifier: Apache-2.0
// Operators along one axis: scans, sorting, softmax.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// Same shape, after a look at the axis.
tenon_status infer_along(const char* op, const tenon_value* args, tenon_meta* outs,
                         tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t axis;
  TENON_TRY(resolve_axis_along(op, int_of(args[1]), x.ndim, &axis, err));
  set_like(outs[0], x);
  return TENON_OK;
}

tenon_status infer_scan(const char* op, const tenon_value* args, tenon_meta* outs, tenon_err* err) {
  TENON_TRY(infer_along(op, args, outs, err));
  outs[0].dtype = static_cast<uint8_t>(shapes::accumulate_dtype(outs[0].dtype));
  return TENON_OK;
}

tenon_status infer_softmax(const char* op, const tenon_value* args, tenon_meta* outs,
                           tenon_err* err) {
  TENON_TRY(infer_along(op, args, outs, err));
  outs[0].dtype = static_cast<uint8_t>(shapes::float_dtype(outs[0].dtype));
  return TENON_OK;
}

}  // namespace

TENON_INFER(cumsum) { return infer_scan("cumsum", args, outs, err); }
TENON_INFER(cumprod) { return infer_scan("cumprod", args, outs, err); }
TENON_INFER(softmax) { return infer_softmax("softmax", args, outs, err); }
TENON_INFER(log_softmax) { return infer_softmax("log_softmax", args, outs, err); }
TENON_INFER(logcumsumexp) { return infer_softmax("logcumsumexp", args, outs, err); }

namespace {

// Elements and where they came from.
tenon_status infer_with_indices(const char* op, const tenon_value* args, tenon_meta* outs,
                                tenon_err* err) {
  TENON_TRY(infer_along(op, args, outs, err));
  set_new(outs[1], TENON_DTYPE_I64, shape_of(tensor_of(args[0])));
  return TENON_OK;
}

}  // namespace

TENON_INFER(cummax) { return infer_with_indices("cummax", args, outs, err); }
TENON_INFER(cummin) { return infer_with_indices("cummin", args, outs, err); }
TENON_INFER(sort_with_indices) { return infer_with_indices("sort", args, outs, err); }

TENON_INFER(sort) { return infer_along("sort", args, outs, err); }

TENON_INFER(argsort) {
  TENON_TRY(infer_along("argsort", args, outs, err));
  outs[0].dtype = TENON_DTYPE_I64;
  return TENON_OK;
}

TENON_INFER(linear_scan) {
  const tenon_tensor &a = tensor_of(args[0]), &b = tensor_of(args[1]);
  int32_t axis;
  TENON_TRY(resolve_axis_along("linear_scan", int_of(args[2]), b.ndim, &axis, err));
  if (!std::ranges::equal(shape_of(a), shape_of(b)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "linear_scan",
                        "expected a and b of one shape, got %s and %s", shape_text(a).c_str(),
                        shape_text(b).c_str());
  set_like(outs[0], b);
  return TENON_OK;
}

TENON_INFER(topk) {
  const tenon_tensor& x = tensor_of(args[0]);
  int64_t count = int_of(args[1]);
  int32_t axis;
  TENON_TRY(resolve_axis_along("topk", int_of(args[2]), x.ndim, &axis, err));
  if (x.ndim == 0 && count != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "topk",
                        "expected a count of 1 for a 0-d tensor, got %lld", ll(count));
  if (x.ndim > 0 && (count < 0 || count > x.shape[axis]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "topk",
                        "expected a count from 0 to %lld, the length of axis %d, got %lld",
                        ll(x.shape[axis]), axis, ll(count));
  set_like(outs[0], x);
  if (x.ndim > 0) outs[0].shape[axis] = count;
  set_new(outs[1], TENON_DTYPE_I64, {outs[0].shape, static_cast<size_t>(x.ndim)});
  return TENON_OK;
}

TENON_INFER(searchsorted) {
  const tenon_tensor &sorted = tensor_of(args[0]), &values = tensor_of(args[1]);
  TENON_TRY(expect_ndim("searchsorted", "sorted", sorted, 1, "in ascending order", err));
  set_new(outs[0], TENON_DTYPE_I64, shape_of(values));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
