// SPDX-License-Identifier: Apache-2.0
// Shapes that may need a copy, lists of views, and the gradients of partial views.
#include "composites/compose.hpp"

#include <tenon/ops/host_values.hpp>
#include "shapes/view_strides.hpp"

namespace tenon::standard_ops {

namespace {

// `x` in a shape of as many elements, for layers that see the parts: over the same memory if
// strides can say so.
tenon_status give_reshaped(Scope& scope, tenon_tensor* x, Ints shape, tenon_value* outs) {
  int64_t strides[TENON_MAX_NDIM];
  if (view_strides(*x, shape, strides))
    return finish(scope, outs, ops::view(scope, x, list_of(shape)));
  return finish(scope, outs, ops::view(scope, ops::clone(scope, x), list_of(shape)));
}

}  // namespace

TENON_DECOMPOSE(reshape) {
  Scope scope(err);
  Tensor made;  // of a number
  tenon_tensor* x = optional_tensor(args[0]);
  if (!x) {
    made = operand(scope, args[0]);
    x = made.get();
  }
  if (!scope.ok()) return scope.status();
  Ints wanted = ints_of(args[1]);
  int64_t shape[TENON_MAX_NDIM];
  TENON_TRY(resolve_shape("reshape", *x, wanted, shape, err));
  return give_reshaped(scope, x, {shape, wanted.size()}, outs);
}

TENON_DECOMPOSE(flatten) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int64_t shape[TENON_MAX_NDIM];
  size_t ndim;
  TENON_TRY(flat_shape(*x.get(), int_of(args[1]), int_of(args[2]), shape, &ndim, err));
  return give_reshaped(scope, x.get(), {shape, ndim}, outs);
}

TENON_DECOMPOSE(split) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Ints sizes = ints_of(args[1]);
  int32_t axis;
  TENON_TRY(resolve_axis("split", int_of(args[2]), x->ndim, &axis, err));
  int64_t extent = x->shape[axis];
  Shape lengths = to_vector(sizes);
  // A list of one is also what a lone number looks like: equal pieces then.
  if (sizes.size() == 1 && sizes[0] > 0) {
    lengths.assign(static_cast<size_t>((extent + sizes[0] - 1) / sizes[0]), sizes[0]);
    if (extent % sizes[0]) lengths.back() = extent % sizes[0];
    if (lengths.empty()) lengths = {0};
  }
  int64_t total = 0;
  for (int64_t length : lengths) total = length < 0 ? -1 : total < 0 ? total : total + length;
  if (total != extent)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "split",
                        "expected lengths that add up to %lld along axis %d, got %s", ll(extent),
                        axis, list_text(sizes).c_str());
  std::vector<Tensor> pieces;
  int64_t start = 0;
  for (int64_t length : lengths) {
    pieces.push_back(ops::narrow(scope, x, axis, start, length));
    start += length;
  }
  return finish_list(scope, outs, std::move(pieces));
}

TENON_DECOMPOSE(unbind) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("unbind", int_of(args[1]), x->ndim, &axis, err));
  std::vector<Tensor> elements;
  for (int64_t i = 0; i < x->shape[axis] && scope.ok(); ++i)
    elements.push_back(ops::select(scope, x, axis, i));
  return finish_list(scope, outs, std::move(elements));
}

// Gradients of partial views: zeros, and the gradient written through the same view of them. These
// run below the layers, where writing in place needs no history.

TENON_DECOMPOSE(slice_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), base = full_with(scope, grad_out, ints_of(args[1]), 0);
  Tensor place = ops::slice(scope, base, list_of(ints_of(args[2])), list_of(ints_of(args[3])),
                            list_of(ints_of(args[4])), optional_ints(args[5]));
  ops::clone_out(scope, place, grad_out);
  return finish(scope, outs, base);
}

TENON_DECOMPOSE(select_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), base = full_with(scope, grad_out, ints_of(args[1]), 0);
  ops::clone_out(scope, ops::select(scope, base, int_of(args[2]), int_of(args[3])), grad_out);
  return finish(scope, outs, base);
}

TENON_DECOMPOSE(diagonal_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), base = full_with(scope, grad_out, ints_of(args[1]), 0);
  Tensor place = ops::diagonal(scope, base, int_of(args[2]), int_of(args[3]), int_of(args[4]));
  ops::clone_out(scope, place, grad_out);
  return finish(scope, outs, base);
}

TENON_DECOMPOSE(diag_embed) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "diag_embed",
                        "expected at least one axis, got a tensor of shape []");
  const int64_t offset = int_of(args[1]);
  int32_t axis0, axis1;
  TENON_TRY(resolve_axis("diag_embed", int_of(args[2]), x->ndim + 1, &axis0, err));
  TENON_TRY(resolve_axis("diag_embed", int_of(args[3]), x->ndim + 1, &axis1, err));
  if (axis0 == axis1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "diag_embed",
                        "expected two different axes, got %d twice", axis0);
  const int64_t distance = offset < 0 ? expression::minus(0, offset) : offset;
  Shape shape = sizes_of(x);
  const int64_t extent = expression::plus(shape.back(), distance);
  shape.pop_back();
  shape.insert(shape.begin() + std::min(axis0, axis1), extent);
  shape.insert(shape.begin() + std::max(axis0, axis1), extent);
  return finish(scope, outs, ops::diagonal_grad(scope, x, shape, offset, axis0, axis1));
}

TENON_DECOMPOSE(sliding_window_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), base = full_with(scope, grad_out, ints_of(args[1]), 0);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("sliding_window", int_of(args[2]), base->ndim, &axis, err));
  int64_t size = int_of(args[3]), step = int_of(args[4]), dilation = int_of(args[5]);
  int64_t reach = (grad_out->shape[axis] - 1) * step + 1;
  // Element k of all windows at once: no two of these elements share memory.
  for (int64_t k = 0; k < size && scope.ok() && grad_out->shape[axis] > 0; ++k) {
    Tensor place = ops::slice(scope, base, {axis}, {k * dilation}, {k * dilation + reach}, {step});
    ops::add_(scope, place, ops::select(scope, grad_out, -1, k));
  }
  return finish(scope, outs, base);
}

}  // namespace tenon::standard_ops
