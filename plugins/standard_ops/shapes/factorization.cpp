// SPDX-License-Identifier: Apache-2.0
// Factorizations of matrices in the last two axes.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_matrices(const char* op, const char* name, const tenon_tensor& x,
                             tenon_err* err) {
  if (x.ndim >= 2) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected %s to have matrices in its last two axes, got shape %s; add axes "
                      "with reshape",
                      name, shape_text(x).c_str());
}

tenon_status expect_square(const char* op, const char* name, const tenon_tensor& x,
                           tenon_err* err) {
  TENON_TRY(expect_matrices(op, name, x, err));
  if (x.shape[x.ndim - 1] == x.shape[x.ndim - 2]) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected %s to have square matrices in its last two axes, got shape %s",
                      name, shape_text(x).c_str());
}

// The axes before the matrices, then `extents`.
void set_batch(tenon_meta& meta, int32_t dtype, const tenon_tensor& x,
               std::initializer_list<int64_t> extents) {
  set_new(meta, dtype, shape_of(x).first(static_cast<size_t>(x.ndim) - 2));
  for (int64_t extent : extents) add_axis(meta, extent);
}

// The batches of two tensors together.
tenon_status set_broadcast(const char* op, tenon_meta& meta, const tenon_tensor& a,
                           const tenon_tensor& b, tenon_err* err) {
  set_batch(meta, a.dtype, a, {});
  Ints other = shape_of(b).first(static_cast<size_t>(b.ndim) - 2);
  if (broadcast_into(meta.shape, &meta.ndim, other)) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected batches that broadcast, got shapes %s and %s",
                      shape_text(a).c_str(), shape_text(b).c_str());
}

int64_t rows_of(const tenon_tensor& x) { return x.shape[x.ndim - 2]; }
int64_t columns_of(const tenon_tensor& x) { return x.shape[x.ndim - 1]; }
int64_t shorter_of(const tenon_tensor& x) { return std::min(rows_of(x), columns_of(x)); }

tenon_status infer_square(const char* op, const tenon_value* args, tenon_meta* outs,
                          tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_square(op, "x", x, err));
  set_like(outs[0], x);
  return TENON_OK;
}

// One number for each row of a square matrix, and with `vectors` a matrix as well.
tenon_status infer_eigen(const char* op, const tenon_value* args, tenon_meta* outs, bool vectors,
                         tenon_err* err) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_square(op, "x", x, err));
  set_batch(outs[0], x.dtype, x, {rows_of(x)});
  if (vectors) set_like(outs[1], x);
  return TENON_OK;
}

uint8_t complex_dtype(int32_t dtype) {
  const int32_t wide = shapes::float_dtype(dtype);
  return wide == TENON_DTYPE_F64 || wide == TENON_DTYPE_C128 ? TENON_DTYPE_C128 : TENON_DTYPE_C64;
}

tenon_status expect_rows(const char* op, const tenon_tensor& a, const tenon_tensor& b, int64_t has,
                         const char* axis, int64_t expected, tenon_err* err) {
  if (has == expected) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected b.shape[%s] == a.shape[-2], got %lld and %lld from shapes %s and "
                      "%s",
                      axis, ll(has), ll(expected), shape_text(b).c_str(), shape_text(a).c_str());
}

}  // namespace

TENON_INFER(cholesky) { return infer_square("cholesky", args, outs, err); }
TENON_INFER(inv) { return infer_square("inv", args, outs, err); }
TENON_INFER(adjugate) { return infer_square("adjugate", args, outs, err); }
TENON_INFER(matrix_exp) { return infer_square("matrix_exp", args, outs, err); }

TENON_INFER(triangular_solve) {
  const tenon_tensor &a = tensor_of(args[0]), &b = tensor_of(args[1]);
  TENON_TRY(expect_square("triangular_solve", "a", a, err));
  TENON_TRY(expect_matrices("triangular_solve", "b", b, err));
  const bool left = bool_of(args[3]);
  TENON_TRY(expect_rows("triangular_solve", a, b, left ? rows_of(b) : columns_of(b),
                        left ? "-2" : "-1", rows_of(a), err));
  TENON_TRY(set_broadcast("triangular_solve", outs[0], a, b, err));
  add_axis(outs[0], rows_of(b));
  add_axis(outs[0], columns_of(b));
  return TENON_OK;
}

TENON_INFER(solve) {
  const tenon_tensor &a = tensor_of(args[0]), &b = tensor_of(args[1]);
  TENON_TRY(expect_square("solve", "a", a, err));
  if (b.ndim == 1) {
    TENON_TRY(expect_rows("solve", a, b, b.shape[0], "-1", rows_of(a), err));
    set_batch(outs[0], a.dtype, a, {rows_of(a)});
    return TENON_OK;
  }
  TENON_TRY(expect_matrices("solve", "b", b, err));
  TENON_TRY(expect_rows("solve", a, b, rows_of(b), "-2", rows_of(a), err));
  TENON_TRY(set_broadcast("solve", outs[0], a, b, err));
  add_axis(outs[0], rows_of(b));
  add_axis(outs[0], columns_of(b));
  return TENON_OK;
}

TENON_INFER(lstsq_solve) {
  const tenon_tensor &a = tensor_of(args[0]), &b = tensor_of(args[1]);
  TENON_TRY(expect_matrices("lstsq", "a", a, err));
  TENON_TRY(expect_matrices("lstsq", "b", b, err));
  TENON_TRY(expect_rows("lstsq", a, b, rows_of(b), "-2", rows_of(a), err));
  const int32_t dtype = shapes::float_dtype(host->dtype_promote(a.dtype, b.dtype));
  for (int i = 0; i < 3; ++i) TENON_TRY(set_broadcast("lstsq", outs[i], a, b, err));
  add_axis(outs[0], columns_of(a));
  add_axis(outs[0], columns_of(b));
  add_axis(outs[2], shorter_of(a));
  outs[0].dtype = static_cast<uint8_t>(dtype);
  outs[1].dtype = TENON_DTYPE_I64;
  outs[2].dtype = static_cast<uint8_t>(shapes::real_dtype(dtype));
  return TENON_OK;
}

TENON_INFER(lu_factor) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_matrices("lu_factor", "x", x, err));
  set_like(outs[0], x);
  set_batch(outs[1], TENON_DTYPE_I64, x, {shorter_of(x)});
  return TENON_OK;
}

TENON_INFER(lu_permutation) {
  const tenon_tensor& pivots = tensor_of(args[0]);
  const int64_t rows = int_of(args[1]);
  if (pivots.ndim == 0 || rows < pivots.shape[pivots.ndim - 1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "lu_permutation",
                        "expected at most `rows` pivots in the last axis, got shape %s and %lld "
                        "rows",
                        shape_text(pivots).c_str(), ll(rows));
  set_new(outs[0], TENON_DTYPE_I64, shape_of(pivots).first(static_cast<size_t>(pivots.ndim) - 1));
  add_axis(outs[0], rows);
  return TENON_OK;
}

TENON_INFER(ldl_factor) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_square("ldl_factor", "x", x, err));
  set_like(outs[0], x);
  set_batch(outs[1], TENON_DTYPE_I64, x, {shorter_of(x)});
  return TENON_OK;
}

TENON_INFER(ldl_solve) {
  const tenon_tensor &ld = tensor_of(args[0]), &pivots = tensor_of(args[1]),
                     &b = tensor_of(args[2]);
  TENON_TRY(expect_square("ldl_solve", "ld", ld, err));
  TENON_TRY(expect_matrices("ldl_solve", "b", b, err));
  TENON_TRY(expect_rows("ldl_solve", ld, b, rows_of(b), "-2", rows_of(ld), err));
  const Ints batch = shape_of(ld).first(static_cast<size_t>(ld.ndim) - 1);
  if (!std::ranges::equal(shape_of(pivots), batch))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "ldl_solve",
                        "expected pivots of shape %s, as ldl_factor gives them, got %s",
                        list_text(batch).c_str(), shape_text(pivots).c_str());
  TENON_TRY(set_broadcast("ldl_solve", outs[0], ld, b, err));
  add_axis(outs[0], rows_of(b));
  add_axis(outs[0], columns_of(b));
  outs[0].dtype = static_cast<uint8_t>(shapes::float_dtype(host->dtype_promote(ld.dtype, b.dtype)));
  return TENON_OK;
}

TENON_INFER(det) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_square("det", "x", x, err));
  set_batch(outs[0], x.dtype, x, {});
  return TENON_OK;
}

TENON_INFER(slogdet) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_square("slogdet", "x", x, err));
  for (int i = 0; i < 2; ++i) set_batch(outs[i], x.dtype, x, {});
  return TENON_OK;
}

TENON_INFER(qr) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_matrices("qr", "x", x, err));
  const std::string_view mode = text_of(args[1]);
  const int64_t m = rows_of(x), n = columns_of(x), k = shorter_of(x);
  if (mode != "reduced" && mode != "complete" && mode != "r")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "qr",
                        "expected mode 'reduced', 'complete' or 'r', got '%.*s'",
                        static_cast<int>(mode.size()), mode.data());
  const int64_t columns = mode == "complete" ? m : k;
  if (mode == "r")
    set_batch(outs[0], x.dtype, x, {0, 0});
  else
    set_batch(outs[0], x.dtype, x, {m, columns});
  set_batch(outs[1], x.dtype, x, {columns, n});
  return TENON_OK;
}

TENON_INFER(geqrf) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_matrices("geqrf", "x", x, err));
  set_like(outs[0], x);
  set_batch(outs[1], x.dtype, x, {shorter_of(x)});
  return TENON_OK;
}

TENON_INFER(householder_product) {
  const tenon_tensor &a = tensor_of(args[0]), &tau = tensor_of(args[1]);
  TENON_TRY(expect_matrices("householder_product", "a", a, err));
  const bool fits = tau.ndim == a.ndim - 1 && columns_of(a) <= rows_of(a) &&
                    tau.shape[tau.ndim - 1] <= columns_of(a) &&
                    std::equal(tau.shape, tau.shape + tau.ndim - 1, a.shape);
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "householder_product",
                        "expected a of shape [..., m, n] and tau [..., k] with m >= n >= k, got "
                        "shapes %s and %s",
                        shape_text(a).c_str(), shape_text(tau).c_str());
  set_like(outs[0], a);
  return TENON_OK;
}

TENON_INFER(svd) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_matrices("svd", "x", x, err));
  const int64_t m = rows_of(x), n = columns_of(x), k = shorter_of(x);
  const bool full = bool_of(args[1]);
  set_batch(outs[0], x.dtype, x, {m, full ? m : k});
  set_batch(outs[1], x.dtype, x, {k});
  set_batch(outs[2], x.dtype, x, {full ? n : k, n});
  return TENON_OK;
}

TENON_INFER(svdvals) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_matrices("svdvals", "x", x, err));
  set_batch(outs[0], x.dtype, x, {shorter_of(x)});
  return TENON_OK;
}

TENON_INFER(pinv) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_matrices("pinv", "x", x, err));
  set_batch(outs[0], x.dtype, x, {columns_of(x), rows_of(x)});
  return TENON_OK;
}

TENON_INFER(eigh) { return infer_eigen("eigh", args, outs, true, err); }
TENON_INFER(eigvalsh) { return infer_eigen("eigvalsh", args, outs, false, err); }
TENON_INFER(eig) {
  TENON_TRY(infer_eigen("eig", args, outs, true, err));
  outs[0].dtype = outs[1].dtype = complex_dtype(tensor_of(args[0]).dtype);
  return TENON_OK;
}
TENON_INFER(eigvals) {
  TENON_TRY(infer_eigen("eigvals", args, outs, false, err));
  outs[0].dtype = complex_dtype(tensor_of(args[0]).dtype);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
