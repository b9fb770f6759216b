// SPDX-License-Identifier: Apache-2.0
// Shapes of the primitives.
#include <tenon/primitives.h>

#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_index(const char* op, const tenon_tensor& index, tenon_err* err) {
  if (index.ndim == 1 && index.dtype == TENON_DTYPE_I64) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected an index vector of int64, got shape %s of %s",
                      shape_text(index).c_str(), host->dtype_name(index.dtype));
}

tenon_status expect_count(const char* op, int64_t count, tenon_err* err) {
  if (count >= 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a count of at least 0, got %lld",
                      ll(count));
}

}  // namespace

TENON_INFER(primitive_reduce) {
  const tenon_tensor& x = tensor_of(args[0]);
  TENON_TRY(expect_ndim("primitive_reduce", "x", x, 3, "[outer, n, inner]", err));
  if (x.shape[1] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "primitive_reduce",
                        "expected a middle axis of at least 1, got shape %s",
                        shape_text(x).c_str());
  const int64_t shape[] = {x.shape[0], x.shape[2]};
  set_new(outs[0], x.dtype, shape);
  return TENON_OK;
}

TENON_INFER(primitive_contract) {
  const tenon_tensor &x = tensor_of(args[0]), &y = tensor_of(args[1]);
  TENON_TRY(expect_ndim("primitive_contract", "x", x, 3, "[batch, m, k]", err));
  TENON_TRY(expect_ndim("primitive_contract", "y", y, 3, "[batch, k, n]", err));
  if (x.shape[0] != y.shape[0] || x.shape[2] != y.shape[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "primitive_contract",
                        "expected [batch, m, k] and [batch, k, n], got %s and %s",
                        shape_text(x).c_str(), shape_text(y).c_str());
  const int64_t shape[] = {x.shape[0], x.shape[1], y.shape[2]};
  set_new(outs[0], shapes::promoted_dtype(args, {0, 1}), shape);
  return TENON_OK;
}

TENON_INFER(primitive_gather) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]);
  TENON_TRY(expect_ndim("primitive_gather", "x", x, 2, "[n, inner]", err));
  TENON_TRY(expect_index("primitive_gather", index, err));
  const int64_t shape[] = {index.numel, x.shape[1]};
  set_new(outs[0], x.dtype, shape);
  return TENON_OK;
}

TENON_INFER(primitive_scatter) {
  const tenon_tensor &x = tensor_of(args[0]), &index = tensor_of(args[1]),
                     &source = tensor_of(args[2]);
  TENON_TRY(expect_ndim("primitive_scatter", "x", x, 2, "[n, inner]", err));
  TENON_TRY(expect_index("primitive_scatter", index, err));
  if (source.ndim != 2 || source.shape[0] != index.numel || source.shape[1] != x.shape[1] ||
      source.dtype != x.dtype)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "primitive_scatter",
                        "expected a source of shape (%lld, %lld) and dtype %s, got %s of %s",
                        ll(index.numel), ll(x.shape[1]), host->dtype_name(x.dtype),
                        shape_text(source).c_str(), host->dtype_name(source.dtype));
  set_like(outs[0], x);
  return TENON_OK;
}

TENON_INFER(primitive_iota) {
  TENON_TRY(expect_count("primitive_iota", int_of(args[0]), err));
  const int64_t shape[] = {int_of(args[0])};
  set_new(outs[0], static_cast<int32_t>(int_of(args[3])), shape);
  return TENON_OK;
}

TENON_INFER(primitive_random) {
  TENON_TRY(expect_count("primitive_random", int_of(args[0]), err));
  const int64_t shape[] = {int_of(args[0])};
  set_new(outs[0], TENON_DTYPE_I64, shape);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
