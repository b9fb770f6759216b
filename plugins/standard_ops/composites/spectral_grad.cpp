// SPDX-License-Identifier: Apache-2.0
// Gradients of singular values, eigenvalues, and functions by them. Vectors of equal values are
// arbitrary within their space, and so is the gradient of a loss that depends on the choice: such terms,
// which divide by the difference of the values, count as zero.
#include "composites/matrices.hpp"

namespace tenon::standard_ops {
namespace {

// 1 / (s[j] - s[i]) in row i and column j; 0 for equal values.
Tensor inverse_gaps(Scope& scope, const Tensor& s) {
  return reciprocal_or_zero(scope, ops::subtract(scope, as_row(scope, s), as_column(scope, s)));
}

Tensor skew(Scope& scope, const Tensor& x) { return ops::subtract(scope, x, adjoint(scope, x)); }

// x - y @ y.mH @ x, the part of the columns of x outside of the space of y.
Tensor outside(Scope& scope, const Tensor& y, const Tensor& x) {
  return ops::subtract(scope, x, product(scope, y, product(scope, adjoint(scope, y), x)));
}

}  // namespace

// x == u @ diag(s) @ v.mH: u @ (k s + s l + diag(gs)) @ v.mH for the spaces of u and v, where k and l are
// the skew parts of u.mH @ gu and v.mH @ gv over s[j]^2 - s[i]^2, and terms for what is outside of them.
TENON_DECOMPOSE(svd_grad) {
  Scope scope(err);
  Tensor gu = operand(scope, args[0]), gs = operand(scope, args[1]), gvh = operand(scope, args[2]);
  Tensor u = operand(scope, args[3]), s = operand(scope, args[4]), vh = operand(scope, args[5]);
  if (!scope.ok()) return scope.status();
  const int64_t m = rows_of(u), n = columns_of(vh), k = columns_of(s);
  u = first_columns(scope, u, k);
  gu = first_columns(scope, gu, k);
  Tensor v = adjoint(scope, first_rows(scope, vh, k));
  Tensor gv = adjoint(scope, first_rows(scope, gvh, k));
  if (!scope.ok()) return scope.status();
  Tensor gaps = inverse_gaps(scope, ops::square(scope, s));
  Tensor of_u = skew(scope, product(scope, adjoint(scope, u), gu));
  Tensor of_v = skew(scope, product(scope, adjoint(scope, v), gv));
  Tensor inverse = reciprocal_or_zero(scope, s);
  Tensor middle =
      ops::add(scope, ops::multiply(scope, ops::multiply(scope, of_u, gaps), as_row(scope, s)),
               ops::multiply(scope, ops::multiply(scope, of_v, gaps), as_column(scope, s)));
  Tensor diagonal = gs;
  if (is_complex(u))  // the common angle of a pair of vectors is arbitrary, and either may turn
    diagonal = ops::add(
        scope, gs,
        ops::multiply(scope, diagonal_of(scope, of_u), ops::multiply(scope, inverse, 0.5)));
  middle = ops::add(scope, middle, diagonal_matrix(scope, diagonal));
  Tensor v_adjoint = adjoint(scope, v);
  Tensor dx = product(scope, u, middle, v_adjoint);
  if (m > k) {
    Tensor columns = ops::multiply(scope, outside(scope, u, gu), as_row(scope, inverse));
    dx = ops::add(scope, dx, product(scope, columns, v_adjoint));
  }
  if (n > k) {
    Tensor columns = ops::multiply(scope, outside(scope, v, gv), as_row(scope, inverse));
    dx = ops::add(scope, dx, product(scope, u, adjoint(scope, columns)));
  }
  return finish(scope, outs, dx);
}

TENON_DECOMPOSE(svdvals_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]);
  auto factors = ops::svd(scope, args[1], false);
  Tensor columns = ops::multiply(scope, factors.u, as_row(scope, g));
  return finish(scope, outs, product(scope, columns, factors.vh));
}

// dp == -p dx p + p p.mH dx.mH (1 - x p) + (1 - p x) dx.mH p.mH p.
TENON_DECOMPOSE(pinv_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), x = operand(scope, args[1]), p = operand(scope, args[2]);
  Tensor ph = adjoint(scope, p), gh = adjoint(scope, g);
  Tensor dx = ops::negative(scope, product(scope, ph, g, ph));
  Tensor first = product(scope, gh, p, ph);
  dx =
      ops::add(scope, dx, ops::subtract(scope, first, product(scope, x, product(scope, p, first))));
  Tensor second = product(scope, ph, p, gh);
  dx = ops::add(scope, dx, ops::subtract(scope, second, product(scope, second, p, x)));
  return finish(scope, outs, dx);
}

// v @ (diag(gw) + (v.mH @ gv) / (w[j] - w[i])) @ v.mH; its Hermitian part, as x is Hermitian.
TENON_DECOMPOSE(eigh_grad) {
  Scope scope(err);
  Tensor gw = operand(scope, args[0]), gv = operand(scope, args[1]), w = operand(scope, args[2]),
         v = operand(scope, args[3]);
  Tensor vh = adjoint(scope, v);
  Tensor middle = ops::multiply(scope, product(scope, vh, gv), inverse_gaps(scope, w));
  middle = ops::add(scope, middle, diagonal_matrix(scope, gw));
  Tensor dx = product(scope, v, middle, vh);
  return finish(scope, outs, ops::multiply(scope, ops::add(scope, dx, adjoint(scope, dx)), 0.5));
}

TENON_DECOMPOSE(eigvalsh_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]);
  auto factors = ops::eigh(scope, args[1], bool_of(args[2]));
  Tensor columns = ops::multiply(scope, factors.eigenvectors, as_row(scope, g));
  return finish(scope, outs, product(scope, columns, adjoint(scope, factors.eigenvectors)));
}

// v^-H @ (diag(gw) + (v.mH @ gv - v.mH @ v * real(diag(v.mH @ gv))) / conj(w[j] - w[i])) @ v.mH; the
// second term keeps the length of the vectors.
TENON_DECOMPOSE(eig_grad) {
  Scope scope(err);
  Tensor gw = operand(scope, args[0]), gv = operand(scope, args[1]), x = operand(scope, args[2]),
         w = operand(scope, args[3]), v = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  Tensor vh = adjoint(scope, v);
  Tensor change = product(scope, vh, gv);
  Tensor lengths = ops::real(scope, diagonal_of(scope, change));
  Tensor kept = ops::subtract(scope, change,
                              ops::multiply(scope, product(scope, vh, v), as_row(scope, lengths)));
  Tensor middle = ops::multiply(scope, kept, ops::conj(scope, inverse_gaps(scope, w)));
  middle = ops::add(scope, middle, diagonal_matrix(scope, gw));
  Tensor dx = ops::solve(scope, vh, product(scope, middle, vh));
  return finish(scope, outs, is_complex(x) ? dx : real_part(scope, dx));
}

TENON_DECOMPOSE(eigvals_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), x = operand(scope, args[1]);
  auto factors = ops::eig(scope, x);
  Tensor vh = adjoint(scope, factors.eigenvectors);
  Tensor dx = ops::solve(scope, vh, ops::multiply(scope, as_column(scope, g), vh));
  if (!scope.ok()) return scope.status();
  return finish(scope, outs, is_complex(x) ? dx : real_part(scope, dx));
}

// exp([[x.mH, g], [0, x.mH]]) has the gradient in its upper right block.
TENON_DECOMPOSE(matrix_exp_grad) {
  Scope scope(err);
  Tensor g = operand(scope, args[0]), xh = adjoint(scope, operand(scope, args[1]));
  if (!scope.ok()) return scope.status();
  const int64_t n = rows_of(g);
  Tensor above = ops::concat(scope, {xh, g}, -1);
  Tensor below = ops::concat(scope, {ops::zeros_like(scope, xh), xh}, -1);
  Tensor result = ops::matrix_exp(scope, ops::concat(scope, {above, below}, -2));
  return finish(scope, outs, ops::narrow(scope, first_rows(scope, result, n), -1, n, n));
}

}  // namespace tenon::standard_ops
