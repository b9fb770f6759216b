// SPDX-License-Identifier: Apache-2.0
// Gather and scatter operators, decomposed into primitive_gather and primitive_scatter on rows.
#include "lowering/lower.hpp"

namespace tenon::standard_ops {
namespace {

// Row indices, computed axis by axis, and a mask of those in range on every axis.
struct RowIndices {
  Tensor rows, inside;
};

// Indices along an axis of `length`; negative ones count from the end.
RowIndices indices_along(Scope& scope, const Tensor& index, int64_t length) {
  Tensor at = primitive::to_dtype(scope, index, TENON_DTYPE_I64);
  at = primitive::select(scope, less(scope, at, 0), add(scope, at, length), at);
  Tensor inside = both(scope, less(scope, -1, at), less(scope, at, length));
  return {at, inside};
}

// One more axis: rows = rows * length + at.
RowIndices with_axis(Scope& scope, const RowIndices& row_indices, const RowIndices& at,
                     int64_t length) {
  if (!row_indices.rows) return at;
  return {add(scope, multiply(scope, row_indices.rows, length), at.rows),
          row_indices.inside ? both(scope, row_indices.inside, at.inside) : at.inside};
}

// 0, 1, ... along one axis of `ndim`.
Tensor coordinates(Scope& scope, int64_t length, size_t axis, size_t ndim, tenon_device_id device) {
  Shape shape(ndim, 1);
  shape[axis] = length;
  return primitive::reshape(scope, primitive::iota(scope, length, 0, 1, TENON_DTYPE_I64, device),
                            shape);
}

// As a vector. A row that is not inside becomes -1, which kernels report.
Tensor vector_of(Scope& scope, const RowIndices& row_indices) {
  Tensor rows = primitive::select(scope, row_indices.inside, row_indices.rows, -1);
  return scope.ok() ? primitive::reshape(scope, rows, {rows->numel}) : rows;
}

// The same row indices in every outer index: rows of [outer * length, inner].
Tensor rows_in(Scope& scope, const RowIndices& row_indices, const Around& around,
               tenon_device_id device) {
  if (around.outer == 1 || !scope.ok()) return vector_of(scope, row_indices);
  const size_t ndim = static_cast<size_t>(row_indices.rows->ndim) + 1;
  Tensor outer = coordinates(scope, around.outer, 0, ndim, device);
  RowIndices all = {add(scope, multiply(scope, outer, around.length), row_indices.rows),
                    row_indices.inside};
  return vector_of(scope, all);
}

// numpy's x[..., i0, i1, ...] as rows: where the index tensors, broadcast together, point.
RowIndices joint_indices(Scope& scope, const tenon_value& indices, const Tensor& x, int64_t axis) {
  RowIndices row_indices;
  for (tenon_tensor* index : tensors_of(indices)) {
    const int64_t length = x->shape[axis++];
    row_indices =
        with_axis(scope, row_indices, indices_along(scope, Tensor::borrow(index), length), length);
  }
  return row_indices;
}

Tensor as_rows(Scope& scope, const Tensor& x, const Around& around) {
  return primitive::reshape(scope, x, {around.outer * around.length, around.inner});
}

// Kernels need not serve narrow floats, not even to move them.
Tensor gathered(Scope& scope, const Tensor& x, const Tensor& rows) {
  if (!scope.ok()) return {};
  Tensor result = primitive::gather(
      scope, primitive::to_dtype(scope, x, primitive::work_dtype(x->dtype)), rows);
  return primitive::to_dtype(scope, result, x->dtype);
}

Tensor picked(Scope& scope, const Tensor& x, const Around& around, const RowIndices& row_indices,
              int64_t axis, int64_t axes) {
  Tensor rows = rows_in(scope, row_indices, around, x->device);
  Tensor result = gathered(scope, as_rows(scope, x, around), rows);
  if (!scope.ok()) return {};
  Shape shape = {x->shape, x->shape + axis};
  for (int64_t extent : shape_of(*row_indices.rows.get())) shape.push_back(extent);
  shape.insert(shape.end(), x->shape + axis + axes, x->shape + x->ndim);
  return primitive::reshape(scope, result, shape);
}

// `source` in the form of one row for each of `rows`; numbers and single elements are repeated.
Tensor placed(Scope& scope, int64_t opcode, const Tensor& x, const Around& around,
              const Tensor& rows, const tenon_value& source, const Shape& source_shape) {
  if (!scope.ok()) return {};
  const int32_t dtype = x->dtype, work = primitive::work_dtype(dtype);
  Tensor from =
      source.tag == TENON_VALUE_TENSOR
          ? Tensor::borrow(&tensor_of(source))
          : primitive::full(scope, {}, lowering::number_for(source, dtype), dtype, x->device);
  from = primitive::to_dtype(scope, from, work);
  from = primitive::reshape(scope, primitive::expand(scope, from, source_shape),
                            {rows->numel, around.inner});
  Tensor to = as_rows(scope, primitive::to_dtype(scope, x, work), around);
  Tensor result = primitive::scatter(scope, opcode, to, rows, from);
  return primitive::reshape(scope, primitive::to_dtype(scope, result, dtype), sizes_of(x));
}

// One element for each of `index`, along `axis`: rows of [numel, 1].
Tensor element_rows(Scope& scope, const Tensor& x, const Tensor& index, int64_t axis) {
  if (!scope.ok()) return {};
  const size_t ndim = static_cast<size_t>(x->ndim);
  if (ndim == 0) return vector_of(scope, indices_along(scope, index, 1));
  RowIndices row_indices;
  for (size_t i = 0; i < ndim; ++i) {
    const bool along = static_cast<int64_t>(i) == axis;
    Tensor at = along ? Tensor() : coordinates(scope, index->shape[i], i, ndim, x->device);
    row_indices = with_axis(
        scope, row_indices,
        along ? indices_along(scope, index, x->shape[i]) : RowIndices{at, less(scope, -1, at)},
        x->shape[i]);
  }
  return vector_of(scope, row_indices);
}

tenon_status scatter_elements(int64_t opcode, const tenon_value* args, tenon_value* outs,
                              tenon_err* err) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Tensor rows = element_rows(scope, x, index, from_front(int_of(args[3]), x));
  Around elements(x, 0, x->ndim);
  return finish(scope, outs, placed(scope, opcode, x, elements, rows, args[2], sizes_of(index)));
}

}  // namespace

TENON_DECOMPOSE(index_select) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t axis = from_front(int_of(args[2]), x);
  Around around(x, axis);
  return finish(scope, outs,
                picked(scope, x, around, indices_along(scope, index, around.length), axis, 1));
}

TENON_DECOMPOSE(index) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t axis = from_front(int_of(args[2]), x), axes = args[1].aux;
  return finish(
      scope, outs,
      picked(scope, x, Around(x, axis, axes), joint_indices(scope, args[1], x, axis), axis, axes));
}

TENON_DECOMPOSE(index_add) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]),
         source = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t axis = from_front(int_of(args[3]), x);
  Around around(x, axis);
  Tensor rows = rows_in(scope, indices_along(scope, index, around.length), around, x->device);
  return finish(scope, outs,
                placed(scope, TENON_SCATTER_ADD, x, around, rows, args[2], sizes_of(source)));
}

TENON_DECOMPOSE(index_put) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t axis = from_front(int_of(args[3]), x), axes = args[1].aux;
  Around around(x, axis, axes);
  RowIndices row_indices = joint_indices(scope, args[1], x, axis);
  Tensor rows = rows_in(scope, row_indices, around, x->device);
  if (!scope.ok()) return scope.status();
  Shape shape = {x->shape, x->shape + axis};
  for (int64_t extent : shape_of(*row_indices.rows.get())) shape.push_back(extent);
  shape.insert(shape.end(), x->shape + axis + axes, x->shape + x->ndim);
  return finish(scope, outs,
                placed(scope, bool_of(args[4]) ? TENON_SCATTER_ADD : TENON_SCATTER_ASSIGN, x,
                       around, rows, args[2], shape));
}

TENON_DECOMPOSE(gather) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Tensor rows = element_rows(scope, x, index, from_front(int_of(args[2]), x));
  Tensor result = gathered(scope, primitive::reshape(scope, x, {x->numel, 1}), rows);
  return finish(scope, outs, primitive::reshape(scope, result, sizes_of(index)));
}

TENON_DECOMPOSE(scatter) { return scatter_elements(TENON_SCATTER_ASSIGN, args, outs, err); }
TENON_DECOMPOSE(scatter_add) { return scatter_elements(TENON_SCATTER_ADD, args, outs, err); }

// How many there are is read from the device; then each one is written to the place that the
// running count gives it. Zeros go to a row behind the others.
TENON_DECOMPOSE(nonzero) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t ndim = x->ndim, count = x->numel;
  if (count == 0)
    return finish(scope, outs, primitive::full(scope, {0, ndim}, 0, TENON_DTYPE_I64, x->device));
  Tensor values = primitive::to_dtype(scope, x, primitive::work_dtype(x->dtype));
  Tensor mask = primitive::compare(scope, TENON_COMPARE_NOT_EQUAL, values,
                                   lowering::number_for(ScalarArg(0).value(), x->dtype).value());
  mask = primitive::reshape(scope, mask, {count});
  Tensor ranks =
      primitive::reshape(scope, primitive::to_dtype(scope, mask, TENON_DTYPE_I64), {1, count, 1});
  ranks = primitive::reshape(scope, scan(scope, TENON_BINARY_ADD, ranks, false), {count});
  Tensor last = ops::to_device(scope, part(scope, ranks, 0, count - 1, 1), host->device_host());
  if (!scope.ok()) return scope.status();
  const int64_t total = *static_cast<const int64_t*>(last->data);
  Tensor destinations = primitive::select(scope, mask, add(scope, ranks, -1), total);
  Tensor numbers = primitive::iota(scope, count, 0, 1, TENON_DTYPE_I64, x->device);
  Tensor found =
      primitive::scatter(scope, TENON_SCATTER_ASSIGN,
                         primitive::full(scope, {total + 1, 1}, 0, TENON_DTYPE_I64, x->device),
                         destinations, primitive::reshape(scope, numbers, {count, 1}));
  found = primitive::contiguous(scope, part(scope, found, 0, 0, total));
  Tensor result = empty(scope, {total, ndim}, TENON_DTYPE_I64, x->device);
  for (int64_t axis = ndim - 1; axis >= 0 && total > 0; --axis) {
    Tensor at = primitive::binary(scope, TENON_BINARY_REMAINDER, found, x->shape[axis]);
    write(scope, at, part(scope, result, 1, axis, 1));
    found = primitive::binary(scope, TENON_BINARY_FLOOR_DIVIDE, found, x->shape[axis]);
  }
  return finish(scope, outs, result);
}

}  // namespace tenon::standard_ops
