// SPDX-License-Identifier: Apache-2.0
// Short names for what operators of matrices, and their gradients, are written in. Matrices are in
// the last two axes.
#pragma once

#include <limits>

#include "composites/compose.hpp"

namespace tenon::standard_ops {

inline bool is_complex(const Tensor& x) { return (shapes::bit(x->dtype) & shapes::kComplex) != 0; }
inline int64_t rows_of(const Tensor& x) { return x->ndim < 2 ? 1 : x->shape[x->ndim - 2]; }
inline int64_t columns_of(const Tensor& x) { return x->ndim < 1 ? 1 : x->shape[x->ndim - 1]; }

// A call that failed has empty results, which these pass on.
inline Tensor conjugated(Scope& scope, const Tensor& x) {
  return scope.ok() && is_complex(x) ? ops::conj(scope, x) : x;
}
inline Tensor adjoint(Scope& scope, const Tensor& x) {
  return conjugated(scope, ops::transpose(scope, x));
}
inline Tensor real_part(Scope& scope, const Tensor& x) {
  return scope.ok() && is_complex(x) ? ops::real(scope, x) : x;
}
template <class... Others>
Tensor product(Scope& scope, const Tensor& x, const Tensor& y, const Others&... others) {
  Tensor result = ops::matmul(scope, x, y);
  if constexpr (sizeof...(others) > 0)
    return product(scope, result, others...);
  else
    return result;
}

inline Tensor eye_like(Scope& scope, const Tensor& x, int64_t n, int32_t dtype) {
  return scope.ok() ? ops::eye(scope, n, std::nullopt, 0, dtype, x->device) : Tensor();
}
inline Tensor eye_like(Scope& scope, const Tensor& x, int64_t n) {
  return eye_like(scope, x, n, x->dtype);
}
inline Tensor as_column(Scope& scope, const Tensor& x) { return ops::unsqueeze(scope, x, {-1}); }
inline Tensor as_row(Scope& scope, const Tensor& x) { return ops::unsqueeze(scope, x, {-2}); }
inline Tensor diagonal_of(Scope& scope, const Tensor& x) {
  return ops::diagonal(scope, x, 0, -2, -1);
}
// Vectors as diagonals of matrices; zeros elsewhere, also beside infinities.
inline Tensor diagonal_matrix(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  return ops::where(scope, eye_like(scope, x, columns_of(x), TENON_DTYPE_BOOL), as_column(scope, x),
                    0);
}
// Tensor of one number for each matrix, to multiply matrices with.
inline Tensor as_matrix(Scope& scope, const Tensor& x) {
  return ops::unsqueeze(scope, x, {-2, -1});
}
inline Tensor first_columns(Scope& scope, const Tensor& x, int64_t n) {
  return scope.ok() && columns_of(x) != n ? ops::narrow(scope, x, -1, 0, n) : x;
}
inline Tensor first_rows(Scope& scope, const Tensor& x, int64_t n) {
  return scope.ok() && rows_of(x) != n ? ops::narrow(scope, x, -2, 0, n) : x;
}
// 1 / x, and 0 where x is 0.
inline Tensor reciprocal_or_zero(Scope& scope, const Tensor& x) {
  Tensor is_zero = ops::equal(scope, x, 0);
  return ops::where(scope, is_zero, 0, ops::reciprocal(scope, ops::where(scope, is_zero, 1, x)));
}
// Singular values at most this large, times the largest, count as zero by default.
inline double default_rtol(const Tensor& x) {
  const int32_t real = shapes::real_dtype(shapes::float_dtype(x->dtype));
  const double epsilon = real == TENON_DTYPE_F64 ? std::numeric_limits<double>::epsilon()
                                                 : double{std::numeric_limits<float>::epsilon()};
  return epsilon * static_cast<double>(std::max(rows_of(x), columns_of(x)));
}
inline tenon_status expect_matrices(const char* op, const Tensor& x, bool square, tenon_err* err) {
  if (x->ndim >= 2 && (!square || rows_of(x) == columns_of(x))) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected %smatrices in the last two axes, got shape %s",
                      square ? "square " : "", shape_text(*x.get()).c_str());
}

}  // namespace tenon::standard_ops
