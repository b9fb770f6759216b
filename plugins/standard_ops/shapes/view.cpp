// SPDX-License-Identifier: Apache-2.0
// Views: shape, strides and offset over the memory of the first argument.
#include "shapes/view_strides.hpp"

namespace tenon::standard_ops {

TENON_INFER(stop_gradient) {
  const tenon_tensor& x = tensor_of(args[0]);
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis) add_axis_of(outs[0], x, axis);
  return TENON_OK;
}

namespace {

// The shape has been set. A view, or false and a new tensor where memory cannot be described so.
bool set_reshaped(tenon_meta& meta, const tenon_tensor& x, size_t ndim) {
  begin_view(meta, x);
  meta.ndim = static_cast<int32_t>(ndim);
  bool is_view = view_strides(x, {meta.shape, ndim}, meta.strides);
  if (!is_view) meta.kind = TENON_META_NEW;
  return is_view;
}

}  // namespace

TENON_INFER(view) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints wanted = ints_of(args[1]);
  TENON_TRY(resolve_shape("view", x, wanted, outs[0].shape, err));
  if (!set_reshaped(outs[0], x, wanted.size()))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "view",
                        "expected memory that shape %s can describe, got shape %s with strides %s; "
                        "use reshape, which copies if it must",
                        list_text({outs[0].shape, wanted.size()}).c_str(), shape_text(x).c_str(),
                        list_text({x.strides, static_cast<size_t>(x.ndim)}).c_str());
  return TENON_OK;
}

TENON_INFER(bitcast) {
  const tenon_tensor& x = tensor_of(args[0]);
  const int32_t dtype = static_cast<int32_t>(int_of(args[1]));
  if (host->dtype_size(dtype) != host->dtype_size(x.dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "bitcast",
                        "expected a dtype of %u bytes, as %s has, got %s of %u",
                        host->dtype_size(x.dtype), host->dtype_name(x.dtype),
                        host->dtype_name(dtype), host->dtype_size(dtype));
  if (dtype == TENON_DTYPE_BOOL && x.dtype != TENON_DTYPE_BOOL)
    return shapes::fail(err, TENON_TYPE_MISMATCH, "bitcast",
                        "expected a dtype that every pattern of bits is a number of, got bool; "
                        "compare with 0");
  begin_view(outs[0], x);
  outs[0].dtype = static_cast<uint8_t>(dtype);
  for (int32_t axis = 0; axis < x.ndim; ++axis) add_axis_of(outs[0], x, axis);
  return TENON_OK;
}

TENON_INFER(reshape) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints wanted = ints_of(args[1]);
  TENON_TRY(resolve_shape("reshape", x, wanted, outs[0].shape, err));
  set_reshaped(outs[0], x, wanted.size());
  return TENON_OK;
}

TENON_INFER(flatten) {
  const tenon_tensor& x = tensor_of(args[0]);
  size_t ndim;
  TENON_TRY(flat_shape(x, int_of(args[1]), int_of(args[2]), outs[0].shape, &ndim, err));
  set_reshaped(outs[0], x, ndim);
  return TENON_OK;
}

TENON_INFER(transpose) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t first, second;
  TENON_TRY(resolve_axis("transpose", int_of(args[1]), x.ndim, &first, err));
  TENON_TRY(resolve_axis("transpose", int_of(args[2]), x.ndim, &second, err));
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis)
    add_axis_of(outs[0], x, axis == first ? second : axis == second ? first : axis);
  return TENON_OK;
}

namespace {

tenon_status set_order(const char* op, const tenon_value* args, bool inverse, tenon_meta* outs,
                       tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints axes = ints_of(args[1]);
  bool reversed = is_none(args[1]);
  if (!reversed && axes.size() != static_cast<size_t>(x.ndim))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected all %d axes of shape %s in some order, got %s", x.ndim,
                        shape_text(x).c_str(), list_text(axes).c_str());
  begin_view(outs[0], x).ndim = x.ndim;
  uint32_t seen = 0;
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    int64_t other = reversed ? x.ndim - 1 - axis : axes[static_cast<size_t>(axis)];
    if (other < 0) other += x.ndim;
    if (other < 0 || other >= x.ndim || seen >> other & 1)  // this says which
      return resolve_axes(op, args[1], x.ndim, &seen, err);
    seen |= uint32_t{1} << other;
    int64_t from = inverse ? axis : other, to = inverse ? other : axis;
    outs[0].shape[to] = x.shape[from];
    outs[0].strides[to] = x.strides[from];
  }
  return TENON_OK;
}

}  // namespace

TENON_INFER(permute) { return set_order("permute", args, false, outs, err); }
TENON_INFER(unpermute) { return set_order("unpermute", args, true, outs, err); }

TENON_INFER(movedim) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints source = ints_of(args[1]), destination = ints_of(args[2]);
  if (source.size() != destination.size())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "movedim",
                        "expected as many destinations as sources, got %s to %s",
                        list_text(source).c_str(), list_text(destination).c_str());
  uint32_t moved, taken;
  TENON_TRY(resolve_axes("movedim", args[1], x.ndim, &moved, err));
  TENON_TRY(resolve_axes("movedim", args[2], x.ndim, &taken, err));
  int32_t order[TENON_MAX_NDIM];
  for (size_t i = 0; i < source.size(); ++i) {
    int64_t to = destination[i] < 0 ? destination[i] + x.ndim : destination[i];
    order[to] = static_cast<int32_t>(source[i] < 0 ? source[i] + x.ndim : source[i]);
  }
  int32_t next = 0;
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    if (taken >> axis & 1) continue;
    while (moved >> next & 1) ++next;
    order[axis] = next++;
  }
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis) add_axis_of(outs[0], x, order[axis]);
  return TENON_OK;
}

TENON_INFER(squeeze) {
  const tenon_tensor& x = tensor_of(args[0]);
  uint32_t mask;
  TENON_TRY(resolve_reduced("squeeze", args[1], x.ndim, &mask, err));
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    bool named = mask >> axis & 1;
    if (named && x.shape[axis] == 1) continue;
    if (named && !is_none(args[1]))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "squeeze",
                          "expected length 1 along axis %d, got shape %s", axis,
                          shape_text(x).c_str());
    add_axis_of(outs[0], x, axis);
  }
  return TENON_OK;
}

TENON_INFER(unsqueeze) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t ndim = x.ndim + static_cast<int32_t>(ints_of(args[1]).size());
  TENON_TRY(expect_room("unsqueeze", ndim, err));
  uint32_t mask;
  TENON_TRY(resolve_axes("unsqueeze", args[1], ndim, &mask, err));
  begin_view(outs[0], x);
  for (int32_t axis = 0, next = 0; axis < ndim; ++axis) {
    if (mask >> axis & 1)
      add_axis(outs[0], 1, next < x.ndim ? x.shape[next] * x.strides[next] : 1);
    else
      add_axis_of(outs[0], x, next++);
  }
  return TENON_OK;
}

TENON_INFER(expand) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints shape = ints_of(args[1]);
  TENON_TRY(expect_room("expand", static_cast<int64_t>(shape.size()), err));
  int32_t added = static_cast<int32_t>(shape.size()) - x.ndim;
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < static_cast<int32_t>(shape.size()); ++axis) {
    int64_t wanted = shape[static_cast<size_t>(axis)],
            have = axis < added ? 1 : x.shape[axis - added];
    if (added < 0 || (wanted < 0 && (wanted != -1 || axis < added)) ||
        (wanted >= 0 && have != wanted && have != 1))
      return shapes::fail(
          err, TENON_INVALID_ARGUMENT, "expand",
          "expected a shape that %s broadcasts to, got %s: only axes of length 1 repeat",
          shape_text(x).c_str(), list_text(shape).c_str());
    if (wanted < 0) wanted = have;
    bool repeats = axis < added || (have == 1 && wanted != 1);
    add_axis(outs[0], wanted, repeats ? 0 : x.strides[axis - added]);
  }
  if (added < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "expand", "expected at least %d axes, got %s",
                        x.ndim, list_text(shape).c_str());
  return TENON_OK;
}

TENON_INFER(expand_reduced) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints shape = ints_of(args[1]);
  bool keepdim = bool_of(args[3]);
  uint32_t mask;
  TENON_TRY(
      resolve_reduced("expand_reduced", args[2], static_cast<int32_t>(shape.size()), &mask, err));
  begin_view(outs[0], x);
  int32_t next = 0;
  for (int32_t axis = 0; axis < static_cast<int32_t>(shape.size()); ++axis) {
    int64_t extent = shape[static_cast<size_t>(axis)];
    bool reduced = mask >> axis & 1;
    bool fits =
        reduced && !keepdim ? true : next < x.ndim && x.shape[next] == (reduced ? 1 : extent);
    if (!fits)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "expand_reduced",
                          "expected a reduction of shape %s, got %s", list_text(shape).c_str(),
                          shape_text(x).c_str());
    add_axis(outs[0], extent, reduced ? 0 : x.strides[next]);
    if (!reduced || keepdim) ++next;
  }
  if (next != x.ndim)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "expand_reduced",
                        "expected a reduction of shape %s, got %s", list_text(shape).c_str(),
                        shape_text(x).c_str());
  return TENON_OK;
}

TENON_INFER(channel_view) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_ndim("channel_view", "x", x, 1, "one per channel", err));
  begin_view(outs[0], x);
  for (int64_t axis = 0; axis < int_of(args[1]); ++axis)
    add_axis(outs[0], axis == 1 ? x.shape[0] : 1, axis == 1 ? x.strides[0] : 0);
  return TENON_OK;
}

TENON_INFER(flip) {
  const tenon_tensor& x = tensor_of(args[0]);
  uint32_t mask;
  TENON_TRY(resolve_reduced("flip", args[1], x.ndim, &mask, err));
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis) {
    bool reversed = (mask >> axis & 1) && x.shape[axis] > 0;
    if (reversed) outs[0].offset += (x.shape[axis] - 1) * x.strides[axis];
    add_axis(outs[0], x.shape[axis], reversed ? -x.strides[axis] : x.strides[axis]);
  }
  return TENON_OK;
}

}  // namespace tenon::standard_ops
