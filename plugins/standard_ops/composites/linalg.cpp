// SPDX-License-Identifier: Apache-2.0
// Products made of matmul.
#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_vectors(const char* op, const Tensor& x, const Tensor& y, tenon_err* err) {
  TENON_TRY(expect_ndim(op, "x", *x.get(), 1, "a vector", err));
  return expect_ndim(op, "y", *y.get(), 1, "a vector", err);
}

}  // namespace

TENON_DECOMPOSE(dot) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_vectors("dot", x, y, err));
  return finish(scope, outs, ops::matmul(scope, x, y));
}

// The first operand is conjugated, as the standard says. Integers keep their dtype, as products of
// matrices do, although `sum` widens them.
TENON_DECOMPOSE(vecdot) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  // The axis counts after broadcasting; an operand without it has one element there.
  const int32_t ndim = std::max(x->ndim, y->ndim);
  int32_t axis;
  TENON_TRY(resolve_axis("vecdot", int_of(args[2]), ndim, &axis, err));
  const auto extent = [&](const Tensor& v) {
    const int32_t own = axis - (ndim - v->ndim);
    return own < 0 ? int64_t{1} : v->shape[own];
  };
  if (extent(x) != extent(y))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "vecdot",
                        "expected as many elements of x along axis %lld as of y, got shapes %s and "
                        "%s",
                        ll(int_of(args[2])), shape_text(*x.get()).c_str(),
                        shape_text(*y.get()).c_str());
  const int32_t dtype = host->dtype_promote(x->dtype, y->dtype);
  if (dtype == TENON_DTYPE_BOOL)
    return shapes::fail(err, TENON_TYPE_MISMATCH, "vecdot",
                        "expected numbers, got bool; convert with .to(dtype)");
  if (shapes::bit(x->dtype) & shapes::kComplex) x = ops::conj(scope, x);
  Tensor total = ops::sum(scope, ops::multiply(scope, x, y), {int_of(args[2])});
  return finish(scope, outs,
                scope.ok() && total->dtype != dtype ? ops::cast(scope, total, dtype) : total);
}

TENON_DECOMPOSE(outer) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_vectors("outer", x, y, err));
  return finish(scope, outs, ops::multiply(scope, ops::unsqueeze(scope, x, {1}), y));
}

// Both operands as matrices: kept axes against summed ones.
TENON_DECOMPOSE(tensordot) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Ints axes_x = ints_of(args[2]), axes_y = ints_of(args[3]);
  uint32_t summed_x, summed_y;
  TENON_TRY(resolve_axes("tensordot", args[2], x->ndim, &summed_x, err));
  TENON_TRY(resolve_axes("tensordot", args[3], y->ndim, &summed_y, err));
  Shape order_x, order_y, inner, shape;
  for (int32_t axis = 0; axis < x->ndim; ++axis)
    if (!(summed_x >> axis & 1)) order_x.push_back(axis), shape.push_back(x->shape[axis]);
  bool fits = axes_x.size() == axes_y.size();
  for (size_t i = 0; fits && i < axes_x.size(); ++i) {
    int64_t from_x = axes_x[i] < 0 ? axes_x[i] + x->ndim : axes_x[i];
    int64_t from_y = axes_y[i] < 0 ? axes_y[i] + y->ndim : axes_y[i];
    order_x.push_back(from_x);
    order_y.push_back(from_y);
    inner.push_back(x->shape[from_x]);
    fits = x->shape[from_x] == y->shape[from_y];
  }
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "tensordot",
                        "expected pairs of axes of equal length, got axes %s of %s and %s of %s",
                        list_text(axes_x).c_str(), shape_text(*x.get()).c_str(),
                        list_text(axes_y).c_str(), shape_text(*y.get()).c_str());
  for (int32_t axis = 0; axis < y->ndim; ++axis)
    if (!(summed_y >> axis & 1)) order_y.push_back(axis), shape.push_back(y->shape[axis]);
  int64_t depth = product(inner);
  int64_t rows = product(Ints(shape).first(static_cast<size_t>(x->ndim) - inner.size()));
  int64_t columns = product(Ints(shape).subspan(static_cast<size_t>(x->ndim) - inner.size()));
  Tensor left = ops::reshape(scope, ops::permute(scope, x, order_x), {rows, depth});
  Tensor right = ops::reshape(scope, ops::permute(scope, y, order_y), {depth, columns});
  return finish(scope, outs, ops::reshape(scope, ops::matmul(scope, left, right), shape));
}

}  // namespace tenon::standard_ops
