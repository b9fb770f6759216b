// SPDX-License-Identifier: Apache-2.0
// Views of some of the elements: slices, single positions, diagonals, windows.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// Python's slice.indices(): bounds inside the axis, and how many elements they hold.
int64_t clamp_bounds(int64_t extent, int64_t start, int64_t stop, int64_t step, int64_t* first) {
  int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? extent : extent - 1;
  auto clamp = [&](int64_t bound) {
    if (bound < 0) bound = bound < -extent ? lowest : bound + extent;
    return std::clamp(bound, lowest, highest);
  };
  *first = clamp(start);
  int64_t last = clamp(stop);
  if (step > 0) return last > *first ? (last - *first - 1) / step + 1 : 0;
  // The smallest int64 has no negative; any step that large takes one element.
  int64_t pace = step == INT64_MIN ? INT64_MAX : -step;
  return *first > last ? (*first - last - 1) / pace + 1 : 0;
}

}  // namespace

TENON_INFER(slice) {
  const tenon_tensor& x = tensor_of(args[0]);
  Ints axes = ints_of(args[1]), starts = ints_of(args[2]), stops = ints_of(args[3]),
       steps = ints_of(args[4]);
  if (starts.size() != axes.size() || stops.size() != axes.size() ||
      (!is_none(args[4]) && steps.size() != axes.size()))
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "slice",
        "expected as many starts, stops and steps as axes, got %s, %s and %s for %s",
        list_text(starts).c_str(), list_text(stops).c_str(), list_text(steps).c_str(),
        list_text(axes).c_str());
  uint32_t mask;
  TENON_TRY(resolve_axes("slice", args[1], x.ndim, &mask, err));
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis) add_axis_of(outs[0], x, axis);
  for (size_t i = 0; i < axes.size(); ++i) {
    int32_t axis;
    TENON_TRY(resolve_axis("slice", axes[i], x.ndim, &axis, err));
    int64_t step = steps.empty() ? 1 : steps[i], first;
    if (step == 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "slice",
                          "expected a step other than 0 along axis %d", axis);
    int64_t count = clamp_bounds(x.shape[axis], starts[i], stops[i], step, &first);
    outs[0].shape[axis] = count;
    if (count > 0) outs[0].offset += first * x.strides[axis];
    outs[0].strides[axis] = count > 1 ? x.strides[axis] * step : x.strides[axis];
  }
  return TENON_OK;
}

TENON_INFER(narrow) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t axis;
  TENON_TRY(resolve_axis("narrow", int_of(args[1]), x.ndim, &axis, err));
  int64_t extent = x.shape[axis], start = int_of(args[2]), length = int_of(args[3]);
  int64_t first = start < 0 ? start + extent : start;
  if (first < 0 || first > extent || length < 0 || length > extent - first)
    return shapes::fail(
        err, TENON_OUT_OF_RANGE, "narrow",
        "expected start and length inside axis %d of length %lld, got %lld and %lld", axis,
        ll(extent), ll(start), ll(length));
  begin_view(outs[0], x);
  for (int32_t i = 0; i < x.ndim; ++i) add_axis_of(outs[0], x, i);
  outs[0].shape[axis] = length;
  if (length > 0) outs[0].offset = first * x.strides[axis];
  return TENON_OK;
}

TENON_INFER(select) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t axis;
  TENON_TRY(resolve_axis("select", int_of(args[1]), x.ndim, &axis, err));
  int64_t extent = x.shape[axis], index = int_of(args[2]);
  if (index < -extent || index >= extent)
    return shapes::fail(err, TENON_OUT_OF_RANGE, "select",
                        "expected an index from %lld to %lld along axis %d, got %lld", ll(-extent),
                        ll(extent - 1), axis, ll(index));
  begin_view(outs[0], x);
  for (int32_t i = 0; i < x.ndim; ++i)
    if (i != axis) add_axis_of(outs[0], x, i);
  outs[0].offset = (index < 0 ? index + extent : index) * x.strides[axis];
  return TENON_OK;
}

TENON_INFER(diagonal) {
  const tenon_tensor& x = tensor_of(args[0]);
  int64_t offset = int_of(args[1]);
  int32_t row, column;
  TENON_TRY(resolve_axis("diagonal", int_of(args[2]), x.ndim, &row, err));
  TENON_TRY(resolve_axis("diagonal", int_of(args[3]), x.ndim, &column, err));
  if (row == column)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "diagonal",
                        "expected two different axes, got %d twice", row);
  int64_t rows = x.shape[row], columns = x.shape[column];
  int64_t count = offset >= 0 ? std::min(rows, offset < columns ? columns - offset : 0)
                              : std::min(columns, offset > -rows ? rows + offset : 0);
  begin_view(outs[0], x);
  for (int32_t axis = 0; axis < x.ndim; ++axis)
    if (axis != row && axis != column) add_axis_of(outs[0], x, axis);
  add_axis(outs[0], count, x.strides[row] + x.strides[column]);
  if (count > 0)
    outs[0].offset = offset >= 0 ? offset * x.strides[column] : -offset * x.strides[row];
  return TENON_OK;
}

TENON_INFER(sliding_window) {
  const tenon_tensor& x = tensor_of(args[0]);
  int32_t axis;
  TENON_TRY(resolve_axis("sliding_window", int_of(args[1]), x.ndim, &axis, err));
  TENON_TRY(expect_room("sliding_window", x.ndim + 1, err));
  int64_t size = int_of(args[2]), step = int_of(args[3]), dilation = int_of(args[4]),
          extent = x.shape[axis];
  if (size < 1 || step < 1 || dilation < 1 || size > extent || dilation > extent ||
      (size - 1) * dilation >= extent)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "sliding_window",
        "expected windows that fit into %lld elements, got size %lld, step %lld and dilation %lld",
        ll(extent), ll(size), ll(step), ll(dilation));
  begin_view(outs[0], x);
  for (int32_t i = 0; i < x.ndim; ++i) add_axis_of(outs[0], x, i);
  outs[0].shape[axis] = (extent - (size - 1) * dilation - 1) / step + 1;
  outs[0].strides[axis] = outs[0].shape[axis] > 1 ? x.strides[axis] * step : x.strides[axis];
  add_axis(outs[0], size, x.strides[axis] * dilation);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
