// SPDX-License-Identifier: Apache-2.0
// Reductions that nothing can be put through: they refuse empty axes.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_elements(const char* op, const tenon_tensor& x, uint32_t mask,
                             const tenon_meta& result, tenon_err* err) {
  if (product({result.shape, static_cast<size_t>(result.ndim)}) == 0) return TENON_OK;
  for (int32_t axis = 0; axis < x.ndim; ++axis)
    if (mask >> axis & 1 && x.shape[axis] == 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected elements to choose from, got shape %s with axis %d empty",
                          shape_text(x).c_str(), axis);
  return TENON_OK;
}

tenon_status infer_extreme(const char* op, const tenon_value* args, tenon_meta* outs,
                           tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  uint32_t mask;
  TENON_TRY(resolve_reduced(op, args[1], x.ndim, &mask, err));
  set_reduced(outs[0], x, mask, bool_of(args[2]), x.dtype);
  return expect_elements(op, x, mask, outs[0], err);
}

// One axis, or none for the flattened tensor.
tenon_status infer_position(const char* op, const tenon_value* args, tenon_meta* outs,
                            tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  uint32_t mask;
  if (is_none(args[1])) {
    TENON_TRY(resolve_axes(op, args[1], x.ndim, &mask, err));
  } else {
    int32_t axis;
    TENON_TRY(resolve_axis_along(op, int_of(args[1]), x.ndim, &axis, err));
    mask = 1u << axis;
  }
  set_reduced(outs[0], x, mask, bool_of(args[2]), TENON_DTYPE_I64);
  return expect_elements(op, x, mask, outs[0], err);
}

}  // namespace

TENON_INFER(max) { return infer_extreme("max", args, outs, err); }
TENON_INFER(min) { return infer_extreme("min", args, outs, err); }
TENON_INFER(argmax) { return infer_position("argmax", args, outs, err); }
TENON_INFER(argmin) { return infer_position("argmin", args, outs, err); }

}  // namespace tenon::standard_ops
