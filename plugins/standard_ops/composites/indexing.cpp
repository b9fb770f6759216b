// SPDX-License-Identifier: Apache-2.0
// Indexing operators made of index_select, index_put and gather.
#include "composites/domain.hpp"

#include <algorithm>

namespace tenon::standard_ops {

TENON_DECOMPOSE(one_hot) {
  Scope scope(err);
  Tensor indices = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[1]);
  if (count < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "one_hot",
                        "expected a count of at least 0, got %lld", ll(count));
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, "one_hot", "indices", indices, 0,
                           static_cast<double>(count - 1), err));
  Tensor numbers = ops::arange(scope, count, std::nullopt, 1, TENON_DTYPE_I64, indices->device);
  Tensor hit = ops::equal(scope, ops::unsqueeze(scope, indices, {-1}), numbers);
  return finish(scope, outs, ops::cast(scope, hit, TENON_DTYPE_I64));
}

TENON_DECOMPOSE(take_along_axis) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis_along("take_along_axis", int_of(args[2]), x->ndim, &axis, err));
  if (index->ndim != x->ndim)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "take_along_axis",
                        "expected an index with the %d axes of x, got shape %s", x->ndim,
                        shape_text(*index.get()).c_str());
  Shape of_x = sizes_of(x), of_index = sizes_of(index);
  for (int32_t i = 0; i < x->ndim; ++i) {
    size_t k = static_cast<size_t>(i);
    if (i == axis || of_x[k] == of_index[k]) continue;
    if (of_x[k] != 1 && of_index[k] != 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "take_along_axis",
                          "expected shapes that broadcast outside axis %d, got %s and %s", axis,
                          shape_text(*x.get()).c_str(), shape_text(*index.get()).c_str());
    of_x[k] = of_index[k] = of_x[k] == 1 ? of_index[k] : of_x[k];
  }
  x = ops::expand(scope, x, of_x);
  return finish(scope, outs, ops::gather(scope, x, ops::expand(scope, index, of_index), axis));
}

namespace {

// The flat indices at which a mask is true.
Tensor flat_indices(Scope& scope, const Tensor& mask) {
  return ops::select(scope, ops::nonzero(scope, ops::reshape(scope, mask, {-1})), 1, 0);
}

}  // namespace

TENON_DECOMPOSE(masked_select) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), mask = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (mask->dtype != TENON_DTYPE_BOOL)
    return shapes::fail(err, TENON_TYPE_MISMATCH, "masked_select",
                        "expected mask of dtype bool, got %s; compare it, as by mask != 0",
                        host->dtype_name(mask->dtype));
  if (sizes_of(x) != sizes_of(mask)) {
    std::vector<Tensor> both = ops::broadcast_tensors(scope, {x, mask});
    if (!scope.ok()) return scope.status();
    x = both[0];
    mask = both[1];
  }
  return finish(scope, outs, ops::compress(scope, x, mask));
}

TENON_DECOMPOSE(compress) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), mask = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Tensor flat = ops::reshape(scope, x, {-1});
  return finish(scope, outs, ops::index_select(scope, flat, flat_indices(scope, mask), 0));
}

TENON_DECOMPOSE(masked_scatter) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), mask = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  // A number is written in the dtype of x: on the way through float32 it would lose digits.
  Tensor source = args[2].tag == TENON_VALUE_TENSOR
                      ? operand(scope, args[2])
                      : ops::full(scope, IntList(), ScalarArg(args[2]), x->dtype, x->device);
  if (!scope.ok()) return scope.status();
  Shape shape = sizes_of(x);
  Tensor where = flat_indices(scope, ops::expand(scope, mask, shape));
  if (!scope.ok()) return scope.status();
  int64_t count = where->shape[0];
  if (source->numel < count)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "masked_scatter",
        "expected at least %lld elements in source, one for each true in mask, got %lld", ll(count),
        ll(source->numel));
  Tensor values = ops::narrow(scope, ops::reshape(scope, source, {-1}), 0, 0, count);
  if (scope.ok() && values->dtype != x->dtype) values = ops::cast(scope, values, x->dtype);
  return put_flat(scope, x, where, values, false, outs);
}

// Of the values that are written to one position the last one stays, and it alone has a gradient. The
// positions are numbered, the numbers written in the same way, and those that are read back are of values
// that stayed.
TENON_DECOMPOSE(index_put_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const auto indices = tensors_of(args[1]);
  const TensorList list(indices.data(), indices.size());
  int32_t axis;
  TENON_TRY(resolve_axis("index_put", int_of(args[2]), grad_out->ndim, &axis, err));
  Tensor taken = ops::index(scope, grad_out, list, axis);
  if (!scope.ok()) return scope.status();
  const int64_t indexed = static_cast<int64_t>(indices.size());
  const int64_t rest = grad_out->ndim - axis - indexed, shared = taken->ndim - axis - rest;
  const Shape grid(grad_out->shape + axis, grad_out->shape + axis + indexed);
  Shape positions(taken->shape + axis, taken->shape + axis + shared);
  int64_t count = 1;
  for (int64_t extent : positions) count *= extent;
  if (count <= 1) return finish(scope, outs, taken);
  Tensor numbers = ops::reshape(
      scope, ops::arange(scope, count, std::nullopt, 1, TENON_DTYPE_I64, grad_out->device),
      positions);
  Tensor written = ops::index_put(scope, full_with(scope, numbers, grid, 0), list, numbers);
  Tensor stayed = ops::equal(scope, ops::index(scope, written, list), numbers);
  positions.insert(positions.end(), static_cast<size_t>(rest), 1);
  return finish(scope, outs, ops::where(scope, ops::reshape(scope, stayed, positions), taken, 0));
}

TENON_DECOMPOSE(embedding_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), indices = operand(scope, args[1]);
  Ints shape = ints_of(args[2]);
  if (!scope.ok()) return scope.status();
  if (!is_none(args[3])) {
    int64_t padding = int_of(args[3]) < 0 ? int_of(args[3]) + shape[0] : int_of(args[3]);
    Shape beside_rows = sizes_of(indices);
    beside_rows.insert(beside_rows.end(), shape.size() - 1, 1);
    // Negative indices count from the end.
    Tensor row = ops::remainder(scope, indices, std::max<int64_t>(shape[0], 1));
    Tensor padded = ops::reshape(scope, ops::equal(scope, row, padding), beside_rows);
    grad_out = ops::where(scope, padded, 0, grad_out);
  }
  if (!scope.ok()) return scope.status();
  const int64_t columns = product(shape.subspan(1));
  Tensor rows = ops::reshape(scope, grad_out, {indices->numel, columns});
  Tensor sums =
      ops::segment_add(scope, rows, ops::reshape(scope, indices, {indices->numel}), shape[0]);
  return finish(scope, outs, ops::reshape(scope, sums, list_of(shape)));
}

}  // namespace tenon::standard_ops
