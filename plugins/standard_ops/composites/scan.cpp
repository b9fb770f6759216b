// SPDX-License-Identifier: Apache-2.0
// Scans for devices without kernels for them, by Hillis and Steele's algorithm: after step d every element
// holds what the 2 d elements up to it give together. log n steps of operators that every device has.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// The first d elements as they are, and `later`, which are the others.
Tensor merged(Scope& scope, const Tensor& x, int64_t axis, int64_t d, const Tensor& later) {
  return ops::concat(scope, {ops::narrow(scope, x, axis, 0, d), later}, axis);
}

template <class Combine>
Tensor scan(Scope& scope, Tensor x, int64_t axis, Combine combine) {
  const int64_t n = scope.ok() ? x->shape[axis] : 0;
  for (int64_t d = 1; d < n && scope.ok(); d *= 2)
    x = merged(
        scope, x, axis, d,
        combine(ops::narrow(scope, x, axis, 0, n - d), ops::narrow(scope, x, axis, d, n - d)));
  return x;
}

// A 0-d tensor as a vector of one element.
Tensor with_axis(Scope& scope, const Tensor& x) {
  return scope.ok() && x->ndim == 0 ? ops::reshape(scope, x, {1}) : x;
}

// The running maximum or minimum, and the index of the last element that has it: a running maximum of
// the indices of elements that are the extreme so far.
tenon_status running_extreme(const char* op, const tenon_value* args, bool largest,
                             tenon_value* outs, tenon_err* err) {
  Scope scope(err);
  Tensor given = operand(scope, args[0]), x = with_axis(scope, given);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis_along(op, int_of(args[1]), x->ndim, &axis, err));
  Tensor extreme = scan(scope, x, axis, [&](const Tensor& before, const Tensor& here) {
    return largest ? ops::maximum(scope, before, here) : ops::minimum(scope, before, here);
  });
  Tensor reached = ops::equal(scope, x, extreme);
  if (shapes::bit(x->dtype) & shapes::kFloats)
    reached = ops::logical_or(scope, reached, ops::isnan(scope, x));
  Shape along(static_cast<size_t>(x->ndim), 1);
  along[static_cast<size_t>(axis)] = x->shape[axis];
  Tensor numbers = ops::reshape(
      scope, ops::arange(scope, x->shape[axis], std::nullopt, 1, TENON_DTYPE_I64, x->device),
      along);
  Tensor indices = scan(
      scope, ops::where(scope, reached, numbers, 0), axis,
      [&](const Tensor& before, const Tensor& here) { return ops::maximum(scope, before, here); });
  const Shape shape = sizes_of(given);
  return finish(scope, outs, ops::reshape(scope, ops::clone(scope, extreme), shape),
                ops::reshape(scope, indices, shape));
}

}  // namespace

TENON_DECOMPOSE(cummax) { return running_extreme("cummax", args, true, outs, err); }
TENON_DECOMPOSE(cummin) { return running_extreme("cummin", args, false, outs, err); }

// Step d: out = factor * (out d elements before) + sum.
TENON_DECOMPOSE(linear_scan) {
  Scope scope(err);
  Tensor b = operand(scope, args[1]), sum = with_axis(scope, b);
  Tensor factor = with_axis(scope, operand(scope, args[0]));
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis_along("linear_scan", int_of(args[2]), sum->ndim, &axis, err));
  const bool reverse = bool_of(args[3]);
  if (reverse) {
    sum = ops::flip(scope, sum, {axis});
    factor = ops::flip(scope, factor, {axis});
  }
  const int64_t n = scope.ok() ? sum->shape[axis] : 0;
  for (int64_t d = 1; d < n && scope.ok(); d *= 2) {
    const auto before = [&](const Tensor& x) { return ops::narrow(scope, x, axis, 0, n - d); };
    const auto here = [&](const Tensor& x) { return ops::narrow(scope, x, axis, d, n - d); };
    Tensor added = ops::add(scope, ops::multiply(scope, here(factor), before(sum)), here(sum));
    Tensor product = ops::multiply(scope, here(factor), before(factor));
    sum = merged(scope, sum, axis, d, added);
    factor = merged(scope, factor, axis, d, product);
  }
  if (reverse) sum = ops::flip(scope, sum, {axis});
  return finish(scope, outs, ops::reshape(scope, ops::clone(scope, sum), sizes_of(b)));
}

// For devices without a kernel: a search for each.
TENON_DECOMPOSE(sorted_matches) {
  const char* op = "sorted_matches";
  Scope scope(err);
  Tensor sorted = operand(scope, args[0]), values = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (sorted->ndim != 1 || values->ndim != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected two vectors, got shapes %s and %s",
                        shape_text(*sorted.get()).c_str(), shape_text(*values.get()).c_str());
  if (sorted->numel == 0) {
    Tensor none = full_with(scope, values, Shape{0}, 0);
    return finish(scope, outs, none, ops::clone(scope, none));
  }
  Tensor place =
      ops::clip(scope, ops::searchsorted(scope, sorted, values), nullptr, sorted->numel - 1);
  Tensor found = ops::equal(scope, ops::index_select(scope, sorted, place, 0), values);
  Tensor at = ops::select(scope, ops::nonzero(scope, found), 1, 0);
  at = ops::contiguous(scope, at);
  return finish(scope, outs, at, ops::index_select(scope, place, at, 0));
}

}  // namespace tenon::standard_ops
