// SPDX-License-Identifier: Apache-2.0
// Operators made of factorizations.
#include "composites/matrices.hpp"

namespace tenon::standard_ops {
namespace {

// factor @ factor.mH @ x == b, for a lower triangular factor.
Tensor solve_both(Scope& scope, const Tensor& factor, const Tensor& b, bool upper) {
  Tensor other = adjoint(scope, factor);
  Tensor half = ops::triangular_solve(scope, upper ? other : factor, b, false);
  return ops::triangular_solve(scope, upper ? factor : other, half, true);
}

// The sign of the permutation, in the dtype of `like`.
Tensor parity(Scope& scope, const Tensor& pivots, const Tensor& like) {
  if (!scope.ok()) return {};
  Tensor steps = ops::arange(scope, 0, columns_of(pivots), 1, TENON_DTYPE_I64, pivots->device);
  Tensor signs = ops::where(scope, ops::equal(scope, pivots, steps), 1, -1);
  return ops::cast(scope, ops::prod(scope, signs, {-1}), like->dtype);
}

// Where each row of lu @ ... came from, as a column of indices.
Tensor row_indices(Scope& scope, const Tensor& pivots, int64_t rows) {
  return as_column(scope, ops::lu_permutation(scope, pivots, rows));
}

// As many axes as `ndim`, with leading ones.
Tensor with_axes(Scope& scope, const Tensor& x, int32_t ndim) {
  if (!scope.ok()) return {};
  Shape shape(static_cast<size_t>(ndim - x->ndim), 1);
  for (int64_t extent : shape_of(*x.get())) shape.push_back(extent);
  return ops::reshape(scope, x, shape);
}

Tensor unit_lower(Scope& scope, const Tensor& lu, int64_t k) {
  if (!scope.ok()) return {};
  Tensor below = first_columns(scope, ops::tril(scope, lu, -1), k);
  return ops::add(scope, below, ops::eye(scope, rows_of(lu), k, 0, lu->dtype, lu->device));
}

// What lu() gives, of what lu_factor() gives.
tenon_status unpack_lu(Scope& scope, const Tensor& lu, const Tensor& pivots, tenon_value* outs) {
  if (!scope.ok()) return scope.status();
  const int64_t m = rows_of(lu), k = std::min(m, columns_of(lu));
  Tensor origin = ops::lu_permutation(scope, pivots, m);
  Tensor rows = as_column(scope, ops::arange(scope, 0, m, 1, TENON_DTYPE_I64, lu->device));
  Tensor p = ops::cast(scope, ops::equal(scope, as_row(scope, origin), rows), lu->dtype);
  Tensor u = ops::triu(scope, first_rows(scope, lu, k));
  return finish(scope, outs, p, unit_lower(scope, lu, k), u);
}

}  // namespace

TENON_DECOMPOSE(cholesky_solve) {
  Scope scope(err);
  Tensor b = operand(scope, args[0]), factor = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("cholesky_solve", factor, true, err));
  return finish(scope, outs, solve_both(scope, factor, b, bool_of(args[2])));
}

TENON_DECOMPOSE(cholesky_inverse) {
  Scope scope(err);
  Tensor factor = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("cholesky_inverse", factor, true, err));
  return finish(
      scope, outs,
      solve_both(scope, factor, eye_like(scope, factor, rows_of(factor)), bool_of(args[1])));
}

TENON_DECOMPOSE(lu) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("lu", x, false, err));
  auto factors = ops::lu_factor(scope, x);
  return unpack_lu(scope, factors.lu, factors.pivots, outs);
}

TENON_DECOMPOSE(lu_unpack) {
  Scope scope(err);
  Tensor lu = operand(scope, args[0]), pivots = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("lu_unpack", lu, false, err));
  return unpack_lu(scope, lu, pivots, outs);
}

TENON_DECOMPOSE(ormqr) {
  Scope scope(err);
  Tensor a = operand(scope, args[0]), tau = operand(scope, args[1]), b = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("ormqr", a, false, err));
  TENON_TRY(expect_matrices("ormqr", b, false, err));
  const bool left = bool_of(args[3]);
  const int64_t m = rows_of(a), extent = left ? rows_of(b) : columns_of(b);
  if (extent != m)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "ormqr",
                        "expected b.shape[%s] == a.shape[-2], got %lld and %lld",
                        left ? "-2" : "-1", ll(extent), ll(m));
  if (columns_of(a) < m) {  // columns of zeros are the reflections that change nothing
    Shape shape = sizes_of(a);
    shape.back() = m - columns_of(a);
    a = ops::concat(scope, {a, full_with(scope, a, shape, 0)}, -1);
  }
  Tensor q = ops::householder_product(scope, first_columns(scope, a, m), tau);
  if (bool_of(args[4])) q = adjoint(scope, q);
  return finish(scope, outs, left ? product(scope, q, b) : product(scope, b, q));
}

TENON_DECOMPOSE(lu_solve) {
  Scope scope(err);
  Tensor lu = operand(scope, args[0]), pivots = operand(scope, args[1]),
         b = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("lu_solve", lu, true, err));
  const bool vector = b->ndim == 1;
  if (vector) b = as_column(scope, b);
  const int64_t n = rows_of(lu);
  if (scope.ok() && rows_of(b) != n)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "lu_solve",
                        "expected b to have %lld rows, as lu has, got shapes %s and %s", ll(n),
                        shape_text(*b.get()).c_str(), shape_text(*lu.get()).c_str());
  Tensor rows = row_indices(scope, pivots, n);
  if (!scope.ok()) return scope.status();
  const int32_t ndim = std::max(b->ndim, rows->ndim);
  Tensor moved =
      ops::take_along_axis(scope, with_axes(scope, b, ndim), with_axes(scope, rows, ndim), -2);
  Tensor half = ops::triangular_solve(scope, lu, moved, false, true, true);
  Tensor x = ops::triangular_solve(scope, lu, half, true);
  return finish(scope, outs, vector ? ops::squeeze(scope, x, {-1}) : x);
}

TENON_DECOMPOSE(det) {
  Scope scope(err);
  auto factors = ops::lu_factor(scope, args[0]);
  Tensor pivot = ops::prod(scope, diagonal_of(scope, factors.lu), {-1});
  return finish(scope, outs,
                ops::multiply(scope, pivot, parity(scope, factors.pivots, factors.lu)));
}

TENON_DECOMPOSE(slogdet) {
  Scope scope(err);
  auto factors = ops::lu_factor(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Tensor pivots = diagonal_of(scope, factors.lu), magnitudes = ops::abs(scope, pivots);
  Tensor signs = is_complex(pivots)
                     ? ops::multiply(scope, pivots, reciprocal_or_zero(scope, magnitudes))
                     : ops::sign(scope, pivots);
  Tensor sign = ops::multiply(scope, ops::prod(scope, signs, {-1}),
                              parity(scope, factors.pivots, factors.lu));
  return finish(scope, outs, sign, ops::sum(scope, ops::log(scope, magnitudes), {-1}));
}

TENON_DECOMPOSE(lstsq) {
  Scope scope(err);
  Tensor a = operand(scope, args[0]), b = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const bool vector = b->ndim == 1;
  if (vector) b = as_column(scope, b);
  std::optional<double> rcond;
  if (!is_none(args[2])) rcond = float_of(args[2]);
  auto found = ops::lstsq_solve(scope, a, b, rcond);
  Tensor away = ops::subtract(scope, ops::matmul(scope, a, found.solution), b);
  if (!scope.ok()) return scope.status();
  if (is_complex(away)) away = ops::abs(scope, away);
  Tensor residuals = ops::sum(scope, ops::square(scope, away), {-2});
  Tensor solution = found.solution;
  if (vector) {
    solution = ops::squeeze(scope, solution, {-1});
    residuals = ops::squeeze(scope, residuals, {-1});
  }
  return finish(scope, outs, solution, residuals, found.rank, found.singular_values);
}

// By singular values, as LAPACK's gelsd does.
TENON_DECOMPOSE(lstsq_solve) {
  Scope scope(err);
  Tensor a = operand(scope, args[0]), b = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = shapes::float_dtype(host->dtype_promote(a->dtype, b->dtype));
  if (a->dtype != dtype) a = ops::cast(scope, a, dtype);
  if (b->dtype != dtype) b = ops::cast(scope, b, dtype);
  auto factors = ops::svd(scope, a, false);
  if (!scope.ok()) return scope.status();
  Tensor s = factors.s, counts = ops::zeros_like(scope, s, TENON_DTYPE_BOOL), inverse = s;
  if (columns_of(s) > 0) {
    const double rcond = is_none(args[2]) ? default_rtol(a) : float_of(args[2]);
    Tensor cutoff = ops::multiply(scope, ops::max(scope, s, {-1}, true), rcond);
    counts = ops::greater(scope, s, cutoff);
    inverse = ops::where(scope, counts, ops::reciprocal(scope, ops::where(scope, counts, s, 1)), 0);
  }
  Tensor sides = product(scope, adjoint(scope, factors.u), b);
  sides = ops::multiply(scope, sides, as_column(scope, inverse));
  Tensor solution = product(scope, adjoint(scope, factors.vh), sides);
  Tensor rank = ops::count_nonzero(scope, counts, {-1});
  if (!scope.ok()) return scope.status();
  // One rank, and one row of values, for each solution.
  Shape batch = sizes_of(solution);
  batch.resize(batch.size() - 2);
  rank = ops::clone(scope, ops::expand(scope, rank, batch));
  batch.push_back(columns_of(s));
  return finish(scope, outs, solution, rank, ops::clone(scope, ops::expand(scope, s, batch)));
}

// x == u @ diag(s) @ vh gives det(u) * det(vh) * v @ diag(products of all other s) @ u.mH.
TENON_DECOMPOSE(adjugate) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("adjugate", x, true, err));
  auto factors = ops::svd(scope, x, false);
  if (!scope.ok()) return scope.status();
  Tensor own = eye_like(scope, factors.s, columns_of(factors.s), TENON_DTYPE_BOOL);
  Tensor others = ops::prod(scope, ops::where(scope, own, 1, as_row(scope, factors.s)), {-1});
  Tensor scale = ops::multiply(scope, ops::det(scope, factors.u), ops::det(scope, factors.vh));
  Tensor v = ops::multiply(scope, adjoint(scope, factors.vh), as_row(scope, others));
  return finish(
      scope, outs,
      ops::multiply(scope, product(scope, v, adjoint(scope, factors.u)), as_matrix(scope, scale)));
}

TENON_DECOMPOSE(pinv) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_matrices("pinv", x, false, err));
  auto factors = ops::svd(scope, x, false);
  if (!scope.ok()) return scope.status();
  Tensor s = factors.s;
  if (columns_of(s) > 0) {
    const double rtol = is_none(args[1]) ? default_rtol(x) : float_of(args[1]);
    Tensor cutoff = ops::multiply(scope, ops::max(scope, s, {-1}, true), rtol);
    Tensor counts = ops::greater(scope, s, cutoff);
    s = ops::where(scope, counts, ops::reciprocal(scope, ops::where(scope, counts, s, 1)), 0);
  }
  Tensor v = ops::multiply(scope, adjoint(scope, factors.vh), as_row(scope, s));
  return finish(scope, outs, product(scope, v, adjoint(scope, factors.u)));
}

}  // namespace tenon::standard_ops
