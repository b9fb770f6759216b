// SPDX-License-Identifier: Apache-2.0
// Products made of matmul.
#include "composites/compose.hpp"

#include <tenon/ops/host_values.hpp>

namespace tenon::standard_ops {
namespace {

tenon_status expect_vectors(const char* op, const Tensor& x, const Tensor& y, tenon_err* err) {
  TENON_TRY(expect_ndim(op, "x", *x.get(), 1, "a vector", err));
  return expect_ndim(op, "y", *y.get(), 1, "a vector", err);
}

// A factor of a sum of `dtype`. Sums of integers have whole ones, so that results have their dtype.
tenon_status read_factor(const char* op, const char* name, int32_t dtype, tenon_value* factor,
                         tenon_err* err) {
  if (expression::is_floating(dtype) || expression::is_complex(dtype)) return TENON_OK;
  if (factor->tag == TENON_VALUE_INT || factor->tag == TENON_VALUE_BOOL) return TENON_OK;
  constexpr double kLimit = 0x1p63;
  const double number = ScalarArg(*factor).number();  // NaN if it is complex
  if (!(number == std::floor(number) && std::abs(number) < kLimit))
    return shapes::fail(
        err, TENON_TYPE_MISMATCH, op,
        "expected %s to be a whole number beside tensors of %s, got %s; convert "
        "them with .to(dtype), or write the sum with * and @",
        name, host->dtype_name(dtype),
        std::isnan(number) ? "one that is not real" : std::to_string(number).c_str());
  *factor = boxed(static_cast<int64_t>(number));
  return TENON_OK;
}

Tensor scaled(Scope& scope, const Tensor& x, const tenon_value& factor) {
  const bool is_one = factor.tag == TENON_VALUE_INT && factor.v.i == 1;
  if (is_one && x->dtype != TENON_DTYPE_BOOL) return Tensor::borrow(x.get());
  return ops::multiply(scope, x, factor);
}

// `x * beta + product * alpha`, as BLAS has it: with `beta` 0 nothing of x counts but its shape and
// dtype, NaN neither.
tenon_status scaled_sum(const char* op, Scope& scope, const Tensor& x, const Tensor& product,
                        const tenon_value* factors, tenon_value* outs, tenon_err* err) {
  if (!scope.ok()) return scope.status();
  tenon_value beta = factors[0], alpha = factors[1];
  const int32_t dtype = host->dtype_promote(x->dtype, product->dtype);
  TENON_TRY(read_factor(op, "beta", dtype, &beta, err));
  TENON_TRY(read_factor(op, "alpha", dtype, &alpha, err));
  const bool is_dropped = ScalarArg(beta).number() == 0;
  Tensor first = is_dropped ? ops::zeros_like(scope, x) : scaled(scope, x, beta);
  return finish(scope, outs, ops::add(scope, first, scaled(scope, product, alpha)));
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

#define TENON_SCALED_SUM(op, product)                                \
  TENON_DECOMPOSE(op) {                                              \
    Scope scope(err);                                                \
    Tensor x = operand(scope, args[0]), a = operand(scope, args[1]); \
    Tensor b = operand(scope, args[2]);                              \
    if (!scope.ok()) return scope.status();                          \
    return scaled_sum(#op, scope, x, product, args + 3, outs, err);  \
  }
TENON_SCALED_SUM(addmm, ops::matmul(scope, a, b))
TENON_SCALED_SUM(addmv, ops::matmul(scope, a, b))
TENON_SCALED_SUM(baddbmm, ops::matmul(scope, a, b))
TENON_SCALED_SUM(addbmm, ops::sum(scope, ops::matmul(scope, a, b), {0}))
TENON_SCALED_SUM(addr, ops::outer(scope, a, b))
#undef TENON_SCALED_SUM

}  // namespace tenon::standard_ops
