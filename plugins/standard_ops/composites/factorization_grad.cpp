// SPDX-License-Identifier: Apache-2.0
// Gradients of linear equations and of triangular factorizations. They are made of operators, so that
// they can be differentiated again. `g` is the gradient of a result; gradients of complex tensors are
// those by which a small step changes the loss most.
#include "composites/matrices.hpp"

namespace tenon::standard_ops {
namespace {

Tensor negative_product(Scope& scope, const Tensor& x, const Tensor& y) {
  return ops::negative(scope, product(scope, x, y));
}

// A matrix with more rows and columns: those of the identity.
Tensor extended(Scope& scope, const Tensor& x, int64_t n) {
  if (!scope.ok()) return {};
  const int64_t rows = rows_of(x), columns = columns_of(x);
  Shape shape = sizes_of(x);
  const size_t ndim = shape.size();
  if (columns < n) {
    shape[ndim - 1] = n - columns;
    Tensor more = ops::eye(scope, rows, n - columns, -columns, x->dtype, x->device);
    return extended(scope, ops::concat(scope, {x, ops::expand(scope, more, shape)}, -1), n);
  }
  if (rows < n) {
    shape[ndim - 2] = n - rows;
    Tensor more = ops::eye(scope, n - rows, n, rows, x->dtype, x->device);
    return ops::concat(scope, {x, ops::expand(scope, more, shape)}, -2);
  }
  return x;
}

}  // namespace

// x == l @ l.mH: with p the lower triangle of l.mH @ g, half of its diagonal, the gradient is the
// Hermitian part of l^-H @ p @ l^-1.
TENON_DECOMPOSE(cholesky_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), l = operand(scope, args[1]);
  if (bool_of(args[2])) {
    g = adjoint(scope, g);
    l = adjoint(scope, l);
  }
  Tensor p = ops::tril(scope, product(scope, adjoint(scope, l), g));
  Tensor diagonal = real_part(scope, diagonal_of(scope, p));
  p = ops::add(scope, ops::tril(scope, p, -1),
               diagonal_matrix(scope, ops::multiply(scope, diagonal, 0.5)));
  Tensor half = ops::triangular_solve(scope, adjoint(scope, l), p, true);
  Tensor x = ops::triangular_solve(scope, l, half, false, false);
  return finish(scope, outs, ops::multiply(scope, ops::add(scope, x, adjoint(scope, x)), 0.5));
}

TENON_DECOMPOSE(triangular_solve_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), a = operand(scope, args[1]), x = operand(scope, args[2]);
  const bool upper = bool_of(args[3]), left = bool_of(args[4]), unit = bool_of(args[5]);
  Tensor db = ops::triangular_solve(scope, adjoint(scope, a), g, !upper, left, unit);
  Tensor xh = adjoint(scope, x);
  Tensor da = left ? negative_product(scope, db, xh) : negative_product(scope, xh, db);
  da = upper ? ops::triu(scope, da, unit ? 1 : 0) : ops::tril(scope, da, unit ? -1 : 0);
  return finish(scope, outs, da, db);
}

TENON_DECOMPOSE(solve_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), a = operand(scope, args[1]), x = operand(scope, args[2]);
  const bool vector = int_of(args[3]) == 1;
  if (vector) {
    g = as_column(scope, g);
    x = as_column(scope, x);
  }
  Tensor db = ops::solve(scope, adjoint(scope, a), g);
  Tensor da = negative_product(scope, db, adjoint(scope, x));
  return finish(scope, outs, da, vector ? ops::squeeze(scope, db, {-1}) : db);
}

TENON_DECOMPOSE(inv_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), ih = adjoint(scope, operand(scope, args[1]));
  return finish(scope, outs, ops::negative(scope, product(scope, ih, g, ih)));
}

// With p = pinv(a): dx = -p da x + p p.mH da.mH r + (1 - p a) da.mH p.mH x, where r = b - a @ x.
TENON_DECOMPOSE(lstsq_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), a = operand(scope, args[1]), b = operand(scope, args[2]),
         x = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const double rtol = is_none(args[4]) ? default_rtol(a) : float_of(args[4]);
  Tensor p = ops::pinv(scope, a, rtol), ph = adjoint(scope, p), xh = adjoint(scope, x);
  Tensor db = product(scope, ph, g);
  Tensor r = ops::subtract(scope, b, product(scope, a, x));
  Tensor da = ops::subtract(scope, product(scope, r, adjoint(scope, product(scope, p, db))),
                            product(scope, db, xh));
  Tensor outside = ops::subtract(scope, g, product(scope, p, a, g));
  da = ops::add(scope, da, product(scope, ph, x, adjoint(scope, outside)));
  return finish(scope, outs, da, db);
}

// x[perm] == l @ u with square l and u, which the identity extends where x is not square:
// l^-1 @ dx[perm] @ u^-1 == l^-1 @ dl + du @ u^-1, a strictly lower and an upper triangular matrix.
TENON_DECOMPOSE(lu_factor_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), lu = operand(scope, args[1]),
         pivots = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t m = rows_of(lu), n = columns_of(lu), k = std::min(m, n);
  Tensor below = first_columns(scope, ops::tril(scope, lu, -1), k);
  below = ops::add(scope, below, ops::eye(scope, m, k, 0, lu->dtype, lu->device));
  Tensor lh = adjoint(scope, extended(scope, below, m));
  Tensor uh = adjoint(scope, extended(scope, ops::triu(scope, first_rows(scope, lu, k)), n));
  Tensor gl = first_columns(scope, ops::tril(scope, g, -1), k);
  Tensor gu = ops::triu(scope, first_rows(scope, g, k));
  // lh @ gl has k columns and gu @ uh has k rows: both get zeros to m rows and n columns.
  Tensor lower = ops::tril(scope, product(scope, lh, gl), -1);
  Tensor upper = ops::triu(scope, product(scope, gu, uh));
  if (!scope.ok()) return scope.status();
  Shape shape = sizes_of(lower);
  if (n > k) {
    shape.back() = n - k;
    lower = ops::concat(scope, {lower, full_with(scope, lower, shape, 0)}, -1);
  }
  if (m > k) {
    shape = sizes_of(upper);
    shape[shape.size() - 2] = m - k;
    upper = ops::concat(scope, {upper, full_with(scope, upper, shape, 0)}, -2);
  }
  Tensor middle = ops::add(scope, lower, upper);
  Tensor rows = ops::triangular_solve(scope, lh, middle, true, true, true);
  Tensor moved = ops::triangular_solve(scope, uh, rows, false, false);
  Tensor back = ops::argsort(scope, ops::lu_permutation(scope, pivots, m), -1);
  return finish(scope, outs, ops::take_along_axis(scope, moved, as_column(scope, back), -2));
}

// The derivative of det is the trace of adjugate @ dx.
TENON_DECOMPOSE(det_grad) {
  Scope scope(err);
  Tensor g = as_matrix(scope, operand(scope, args[0]));
  return finish(scope, outs,
                ops::multiply(scope, g, adjoint(scope, ops::adjugate(scope, args[1]))));
}

// d adj == (trace(x^-1 dx) - x^-1 dx) @ adj.
TENON_DECOMPOSE(adjugate_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), x = operand(scope, args[1]),
         adjugate = operand(scope, args[2]);
  Tensor ih = adjoint(scope, ops::inv(scope, x));
  Tensor gh = product(scope, g, adjoint(scope, adjugate));
  Tensor trace = as_matrix(scope, ops::sum(scope, diagonal_of(scope, gh), {-1}));
  return finish(scope, outs,
                ops::subtract(scope, ops::multiply(scope, trace, ih), product(scope, ih, gh)));
}

// log(det) has the derivative trace(x^-1 dx): its real part is that of logabsdet, and the imaginary
// part is that of the angle of the sign.
TENON_DECOMPOSE(slogdet_grad) {
  Scope scope(err);
  Tensor g_sign = operand(scope, args[0]), g = operand(scope, args[1]), x = operand(scope, args[2]),
         sign = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  if (is_complex(sign)) {
    Tensor turned = ops::multiply(scope, g_sign, ops::conj(scope, sign));
    g = ops::add(scope, g, ops::subtract(scope, turned, ops::real(scope, turned)));
  }
  Tensor ih = adjoint(scope, ops::inv(scope, x));
  return finish(scope, outs, ops::multiply(scope, as_matrix(scope, g), ih));
}

namespace {

// The gradient of square or tall x == q @ r by q and r: with m = r @ gr.mH - gq.mH @ q and the
// Hermitian matrix s that has the lower triangle of m, (gq + q @ s) @ r^-H.
Tensor tall_qr_grad(Scope& scope, const Tensor& gq, const Tensor& gr, const Tensor& q,
                    const Tensor& r) {
  Tensor m = ops::subtract(scope, product(scope, r, adjoint(scope, gr)),
                           product(scope, adjoint(scope, gq), q));
  Tensor below = ops::tril(scope, m, -1);
  Tensor s = ops::add(scope, ops::add(scope, below, adjoint(scope, below)),
                      diagonal_matrix(scope, real_part(scope, diagonal_of(scope, m))));
  Tensor y = ops::add(scope, gq, product(scope, q, s));
  return ops::triangular_solve(scope, adjoint(scope, r), y, false, false);
}

}  // namespace

TENON_DECOMPOSE(qr_grad) {
  Scope scope(err);
  Tensor gq = operand(scope, args[0]), gr = operand(scope, args[1]), q = operand(scope, args[2]),
         r = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const std::string_view mode = text_of(args[4]);
  if (mode == "r")
    return shapes::fail(err, TENON_UNSUPPORTED, "qr",
                        "mode 'r' has no gradient, as it needs q; use mode 'reduced'");
  const int64_t m = rows_of(q), n = columns_of(r);
  if (columns_of(q) > n)
    return shapes::fail(err, TENON_UNSUPPORTED, "qr",
                        "mode 'complete' has no gradient for more rows than columns, as the last "
                        "columns of q are arbitrary; use mode 'reduced'");
  if (m >= n) return finish(scope, outs, tall_qr_grad(scope, gq, gr, q, r));
  // x = [x1, x2] with square x1: q and r1 are its factors, and r2 = q.mH @ x2.
  Tensor gr2 = ops::narrow(scope, gr, -1, m, n - m);
  Tensor x2 = product(scope, q, ops::narrow(scope, r, -1, m, n - m));
  Tensor gq1 = ops::add(scope, gq, product(scope, x2, adjoint(scope, gr2)));
  Tensor dx1 = tall_qr_grad(scope, gq1, first_columns(scope, gr, m), q, first_columns(scope, r, m));
  return finish(scope, outs, ops::concat(scope, {dx1, product(scope, q, gr2)}, -1));
}

// q == h[0] @ h[1] @ ... @ h[k - 1] @ e with h = 1 - tau v v.mH: the products from each h to the end are
// computed first, then the gradient passes through one h after the other.
TENON_DECOMPOSE(householder_product_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), a = operand(scope, args[1]), tau = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t m = rows_of(a), n = columns_of(a), k = columns_of(tau);
  if (k == 0) return finish(scope, outs, ops::zeros_like(scope, a), ops::zeros_like(scope, tau));
  Tensor vectors =
      ops::add(scope, ops::tril(scope, a, -1), ops::eye(scope, m, n, 0, a->dtype, a->device));
  std::vector<Tensor> v, scale, after(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i) {
    v.push_back(ops::narrow(scope, vectors, -1, i, 1));
    scale.push_back(as_column(scope, ops::narrow(scope, tau, -1, i, 1)));
  }
  Tensor product_from =
      ops::add(scope, ops::zeros_like(scope, a), ops::eye(scope, m, n, 0, a->dtype, a->device));
  for (int64_t k_left = k; k_left-- > 0;) {
    const auto i = static_cast<size_t>(k_left);
    after[i] = product_from;
    Tensor row = product(scope, adjoint(scope, v[i]), product_from);
    product_from = ops::subtract(scope, product_from,
                                 product(scope, ops::multiply(scope, scale[i], v[i]), row));
  }
  std::vector<Tensor> columns, scales;
  for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
    Tensor conjugate = conjugated(scope, scale[i]);
    Tensor rv = product(scope, adjoint(scope, after[i]), v[i]);  // n rows
    Tensor gv = product(scope, adjoint(scope, g), v[i]);
    Tensor change = product(scope, adjoint(scope, gv), rv);
    scales.push_back(ops::negative(scope, ops::squeeze(scope, change, {-1})));
    Tensor column = ops::add(scope, ops::multiply(scope, conjugate, product(scope, g, rv)),
                             ops::multiply(scope, scale[i], product(scope, after[i], gv)));
    columns.push_back(ops::negative(scope, column));
    g = ops::subtract(scope, g,
                      product(scope, ops::multiply(scope, conjugate, v[i]), adjoint(scope, gv)));
  }
  if (!scope.ok()) return scope.status();
  if (n > k) {
    Shape shape = sizes_of(a);
    shape.back() = n - k;
    columns.push_back(full_with(scope, a, shape, 0));
  }
  Tensor da = ops::concat(scope, columns, -1);
  Tensor dtau = ops::concat(scope, scales, -1);
  return finish(scope, outs, ops::tril(scope, da, -1), dtau);
}

}  // namespace tenon::standard_ops
