// SPDX-License-Identifier: Apache-2.0
// Operators on the three parts of a CSR matrix.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {

namespace {

// A vector that says where each row begins and the last one ends.
tenon_status expect_indptr(const char* op, const tenon_tensor& indptr, tenon_err* err) {
  TENON_TRY(expect_ndim(op, "indptr", indptr, 1, "[rows + 1]", err));
  if (indptr.shape[0] > 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected an indptr of one number more than there are rows, got none");
}

// The structure, and for each stored element one of `values` if it is given.
tenon_status expect_csr(const char* op, const tenon_value* args, const tenon_tensor* values,
                        tenon_err* err) {
  const tenon_tensor& indices = tensor_of(args[1]);
  TENON_TRY(expect_indptr(op, tensor_of(args[0]), err));
  TENON_TRY(expect_ndim(op, "indices", indices, 1, "[stored elements]", err));
  if (!values || std::ranges::equal(shape_of(*values), shape_of(indices))) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected as many values as indices, of shape %s, got %s",
                      shape_text(indices).c_str(), shape_text(*values).c_str());
}

int64_t rows_of(const tenon_value* args) { return tensor_of(args[0]).shape[0] - 1; }

tenon_status expect_rows(const char* op, const char* name, const tenon_tensor& tensor, int64_t rows,
                         tenon_err* err) {
  if (tensor.shape[0] == rows) return TENON_OK;
  return shapes::fail(
      err, TENON_INVALID_ARGUMENT, op,
      "expected `%s` with a row for each of the %lld rows of the matrix, got shape %s", name,
      ll(rows), shape_text(tensor).c_str());
}

}  // namespace

TENON_INFER(csr_rows) {
  TENON_TRY(expect_indptr("csr_rows", tensor_of(args[0]), err));
  const int64_t shape[] = {int_of(args[1])};
  if (shape[0] < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "csr_rows",
                        "expected a count of at least 0, got %lld", ll(shape[0]));
  set_new(outs[0], TENON_DTYPE_I64, shape);
  return TENON_OK;
}

TENON_INFER(csr_matmul) {
  const tenon_tensor &values = tensor_of(args[2]), &y = tensor_of(args[3]);
  TENON_TRY(expect_csr("csr_matmul", args, &values, err));
  TENON_TRY(expect_ndim("csr_matmul", "y", y, 2, "[columns, features]", err));
  const int64_t shape[] = {rows_of(args), y.shape[1]};
  set_new(outs[0], host->dtype_promote(values.dtype, y.dtype), shape);
  return TENON_OK;
}

TENON_INFER(csr_matmul_transposed) {
  const tenon_tensor &values = tensor_of(args[2]), &y = tensor_of(args[3]);
  TENON_TRY(expect_csr("csr_matmul_transposed", args, &values, err));
  TENON_TRY(expect_ndim("csr_matmul_transposed", "y", y, 2, "[rows, features]", err));
  TENON_TRY(expect_rows("csr_matmul_transposed", "y", y, rows_of(args), err));
  if (int_of(args[4]) < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "csr_matmul_transposed",
                        "expected a count of at least 0, got %lld", ll(int_of(args[4])));
  const int64_t shape[] = {int_of(args[4]), y.shape[1]};
  set_new(outs[0], host->dtype_promote(values.dtype, y.dtype), shape);
  return TENON_OK;
}

TENON_INFER(csr_sddmm) {
  const tenon_tensor &x = tensor_of(args[2]), &y = tensor_of(args[3]);
  TENON_TRY(expect_csr("csr_sddmm", args, nullptr, err));
  TENON_TRY(expect_ndim("csr_sddmm", "x", x, 2, "[rows, features]", err));
  TENON_TRY(expect_ndim("csr_sddmm", "y", y, 2, "[columns, features]", err));
  TENON_TRY(expect_rows("csr_sddmm", "x", x, rows_of(args), err));
  if (x.shape[1] != y.shape[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "csr_sddmm",
                        "expected x and y with as many features, got shapes %s and %s",
                        shape_text(x).c_str(), shape_text(y).c_str());
  set_new(outs[0], host->dtype_promote(x.dtype, y.dtype), shape_of(tensor_of(args[1])));
  return TENON_OK;
}

TENON_INFER(csr_is_sorted) {
  TENON_TRY(expect_csr("csr_is_sorted", args, nullptr, err));
  set_new(outs[0], TENON_DTYPE_BOOL, {});
  return TENON_OK;
}

TENON_INFER(csr_softmax) {
  const tenon_tensor& values = tensor_of(args[1]);
  TENON_TRY(expect_indptr("csr_softmax", tensor_of(args[0]), err));
  if (values.ndim < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "csr_softmax",
                        "expected `values` of shape [stored elements, ...], got a number");
  set_new(outs[0], values.dtype, shape_of(values));
  return TENON_OK;
}

TENON_INFER(csr_order) {
  const tenon_tensor& indices = tensor_of(args[0]);
  TENON_TRY(expect_ndim("csr_order", "indices", indices, 1, "[stored elements]", err));
  if (int_of(args[1]) < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "csr_order",
                        "expected a count of at least 0, got %lld", ll(int_of(args[1])));
  set_new(outs[0], TENON_DTYPE_I64, shape_of(indices));
  return TENON_OK;
}

TENON_INFER(csr_transpose) {
  constexpr const char* kOp = "csr_transpose";
  constexpr int64_t kMax = int64_t{1} << 40;
  TENON_TRY(expect_csr(kOp, args, nullptr, err));
  const int64_t count = int_of(args[2]);
  if (count < 0 || count > kMax)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp,
                        "expected a count from 0 to 2^40, got %lld", ll(count));
  const tenon_tensor& indices = tensor_of(args[1]);
  const bool narrow =
      indices.dtype == TENON_DTYPE_I32 && indices.numel <= INT32_MAX && rows_of(args) <= INT32_MAX;
  const int32_t dtype = narrow ? TENON_DTYPE_I32 : TENON_DTYPE_I64;
  const int64_t begins[] = {count + 1};
  set_new(outs[0], TENON_DTYPE_I64, begins);
  set_new(outs[1], dtype, shape_of(indices));
  set_new(outs[2], dtype, shape_of(indices));
  return TENON_OK;
}

TENON_INFER(csr_masked_product) {
  constexpr const char* kOp = "csr_masked_product";
  const tenon_tensor &x = tensor_of(args[4]), &y = tensor_of(args[7]);
  TENON_TRY(expect_csr(kOp, args, nullptr, err));
  TENON_TRY(expect_csr(kOp, args + 2, &x, err));
  TENON_TRY(expect_csr(kOp, args + 5, &y, err));
  if (rows_of(args) != rows_of(args + 2))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp,
                        "expected a pattern with as many rows as x, got %lld and %lld",
                        ll(rows_of(args)), ll(rows_of(args + 2)));
  if (int_of(args[8]) < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp,
                        "expected a count of at least 0, got %lld", ll(int_of(args[8])));
  set_new(outs[0], host->dtype_promote(x.dtype, y.dtype), shape_of(tensor_of(args[1])));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
