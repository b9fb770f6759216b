// SPDX-License-Identifier: Apache-2.0
// Running sums and sorting by networks of elementwise steps: log n of them for a scan, about
// (log n)^2 / 2 for a sort. A device for which that is too slow brings kernels for cumsum, cumprod
// and sort_with_indices.
#include "lowering/lower.hpp"

namespace tenon::standard_ops {

// Hillis-Steele scan: after step d every element holds the reduction of the 2 d elements up to it.
Tensor scan(Scope& scope, int64_t opcode, Tensor x, bool reverse) {
  const int64_t n = scope.ok() ? x->shape[1] : 0;
  for (int64_t d = 1; d < n && scope.ok(); d *= 2) {
    Tensor sums = primitive::binary(scope, opcode, part(scope, x, 1, reverse ? 0 : d, n - d),
                                    part(scope, x, 1, reverse ? d : 0, n - d));
    Tensor next = empty(scope, sizes_of(x), x->dtype, x->device);
    write(scope, part(scope, x, 1, reverse ? n - d : 0, d),
          part(scope, next, 1, reverse ? n - d : 0, d));
    write(scope, sums, part(scope, next, 1, reverse ? 0 : d, n - d));
    x = next;
  }
  return x;
}

namespace {

tenon_status scan_along(int64_t opcode, const tenon_value* args, bool reverse, tenon_value* outs,
                        tenon_err* err) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = shapes::accumulate_dtype(x->dtype);
  const Around around(x, from_front(int_of(args[1]), x));
  const bool integer = dtype <= TENON_DTYPE_I64;
  Tensor work = primitive::wrap_to_dtype(
      scope, x, integer ? int32_t{TENON_DTYPE_I64} : primitive::work_dtype(dtype));
  work = primitive::reshape(scope, work, {around.outer, around.length, around.inner});
  Tensor result = primitive::wrap_to_dtype(scope, scan(scope, opcode, work, reverse), dtype);
  return finish(scope, outs, primitive::reshape(scope, result, sizes_of(x)));
}

// -- sorting: Batcher's bitonic network, on pairs (key, index) so that equal keys keep their order
// ----

struct Entries {
  Tensor keys, indices;
};

// True where a key of `x` sorts before that of `y`, without regard to indices. NaN is the largest.
Tensor precedes(Scope& scope, const Tensor& x, const Tensor& y) {
  Tensor below = less(scope, x, y);
  if (!scope.ok() || !is_floating(x->dtype)) return below;
  Tensor is_number = primitive::compare(scope, TENON_COMPARE_EQUAL, x, x);
  return either(scope, below, both(scope, is_number, is_nan(scope, y)));
}

// Blocks of 2 * half entries: the first half against the second, which is taken backwards if
// `mirrored`.
Entries exchange(Scope& scope, const Entries& entries, int64_t half, bool mirrored,
                 bool descending) {
  const int64_t rows = entries.keys->shape[0], n = entries.keys->shape[1];
  const Shape blocks = {rows, n / (2 * half), 2, half};
  auto halves = [&](const Tensor& x, int64_t which) {
    Tensor side = part(scope, primitive::reshape(scope, x, blocks), 2, which, 1);
    return mirrored && which == 1 ? part(scope, side, 3, half - 1, half, -1) : side;
  };
  auto dense = [&](const Tensor& x, int64_t which) {
    return primitive::contiguous(scope, halves(x, which));
  };
  Tensor a = dense(entries.keys, 0), b = dense(entries.keys, 1);
  Tensor index_a = dense(entries.indices, 0), index_b = dense(entries.indices, 1);
  Tensor first = descending ? precedes(scope, a, b) : precedes(scope, b, a);
  Tensor second = descending ? precedes(scope, b, a) : precedes(scope, a, b);
  Tensor tie = primitive::compare(scope, TENON_COMPARE_EQUAL, first, second);
  Tensor swap = either(scope, first, both(scope, tie, less(scope, index_b, index_a)));
  auto exchanged = [&](const Tensor& x, const Tensor& of_a, const Tensor& of_b) {
    if (!scope.ok()) return Tensor();
    Tensor result = empty(scope, sizes_of(x), x->dtype, x->device);
    write(scope, primitive::select(scope, swap, of_b, of_a), halves(result, 0));
    write(scope, primitive::select(scope, swap, of_a, of_b), halves(result, 1));
    return result;
  };
  return {exchanged(entries.keys, a, b), exchanged(entries.indices, index_a, index_b)};
}

// The padding of a row: the key that sorts last; its index is larger than those of all elements.
ScalarArg last_key(int32_t dtype, bool descending) {
  if (!is_floating(dtype) || descending) return lowering::limit(!descending, dtype);
  return std::nan("");
}

// Sorts each row of x [rows, n].
Entries sorted(Scope& scope, const Tensor& x, bool descending) {
  if (!scope.ok()) return {};
  const int64_t rows = x->shape[0], n = x->shape[1];
  int64_t whole = 1;
  while (whole < n) whole *= 2;
  Entries entries = {x, primitive::iota(scope, whole, 0, 1, TENON_DTYPE_I64, x->device)};
  entries.indices =
      primitive::contiguous(scope, primitive::expand(scope, entries.indices, {rows, whole}));
  if (whole > n) {
    entries.keys =
        primitive::full(scope, {rows, whole}, last_key(x->dtype, descending), x->dtype, x->device);
    if (scope.ok()) write(scope, x, part(scope, entries.keys, 1, 0, n));
  }
  for (int64_t block = 2; block <= whole && scope.ok(); block *= 2)
    for (int64_t half = block / 2; half >= 1 && scope.ok(); half /= 2)
      entries = exchange(scope, entries, half, half == block / 2, descending);
  return entries;
}

}  // namespace

TENON_DECOMPOSE(cumsum) { return scan_along(TENON_BINARY_ADD, args, bool_of(args[2]), outs, err); }
TENON_DECOMPOSE(cumprod) { return scan_along(TENON_BINARY_MULTIPLY, args, false, outs, err); }

TENON_DECOMPOSE(sort_with_indices) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = x->dtype;
  const Around around(x, from_front(int_of(args[1]), x));
  if (x->numel == 0)
    return finish(scope, outs, primitive::full(scope, sizes_of(x), 0, dtype, x->device),
                  primitive::full(scope, sizes_of(x), 0, TENON_DTYPE_I64, x->device));
  // The sorted axis becomes the last one.
  const Shape axes_of_x = {around.outer, around.length, around.inner};
  auto exchange_axes = [&](const Tensor& tensor) {
    if (!scope.ok()) return Tensor();
    return primitive::view(scope, tensor, {tensor->shape[0], tensor->shape[2], tensor->shape[1]},
                           {tensor->strides[0], tensor->strides[2], tensor->strides[1]});
  };
  Tensor values = primitive::to_dtype(scope, x, primitive::work_dtype(dtype));
  values = exchange_axes(primitive::reshape(scope, values, axes_of_x));
  Entries entries =
      sorted(scope, primitive::reshape(scope, values, {around.outer * around.inner, around.length}),
             bool_of(args[2]));
  auto as_x = [&](const Tensor& rows, int32_t wanted) {
    Tensor kept = primitive::contiguous(scope, part(scope, rows, 1, 0, around.length));
    Tensor moved =
        exchange_axes(primitive::reshape(scope, kept, {around.outer, around.inner, around.length}));
    return primitive::reshape(scope, primitive::to_dtype(scope, moved, wanted), sizes_of(x));
  };
  return finish(scope, outs, as_x(entries.keys, dtype), as_x(entries.indices, TENON_DTYPE_I64));
}

}  // namespace tenon::standard_ops
