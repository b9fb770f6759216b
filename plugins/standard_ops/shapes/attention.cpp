// SPDX-License-Identifier: Apache-2.0
// Attention: [..., length, features], with the same axes before the last two.
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

tenon_status expect_operands(const char* op, const tenon_tensor& query, const tenon_tensor& key,
                             const tenon_tensor& value, tenon_err* err) {
  const int32_t ndim = query.ndim;
  bool fits = ndim >= 2 && key.ndim == ndim && value.ndim == ndim;
  if (fits) {
    const auto outer = shape_of(query).first(static_cast<size_t>(ndim - 2));
    fits = std::ranges::equal(outer, shape_of(key).first(outer.size())) &&
           std::ranges::equal(outer, shape_of(value).first(outer.size())) &&
           key.shape[ndim - 1] == query.shape[ndim - 1] &&
           value.shape[ndim - 2] == key.shape[ndim - 2];
  }
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected query [..., rows, features], key [..., columns, features] and "
                        "value [..., columns, "
                        "any], got shapes %s, %s and %s",
                        shape_text(query).c_str(), shape_text(key).c_str(),
                        shape_text(value).c_str());
  if (key.dtype != query.dtype || value.dtype != query.dtype)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected query, key and value of one dtype, got %s, %s and %s; convert "
                        "them with cast",
                        host->dtype_name(query.dtype), host->dtype_name(key.dtype),
                        host->dtype_name(value.dtype));
  return TENON_OK;
}

tenon_status expect_mask(const char* op, const tenon_tensor& query, const tenon_tensor& key,
                         const tenon_tensor& mask, tenon_err* err) {
  int64_t scores[TENON_MAX_NDIM];
  std::copy_n(query.shape, query.ndim, scores);
  scores[query.ndim - 1] = key.shape[key.ndim - 2];
  const Ints wanted = {scores, static_cast<size_t>(query.ndim)};
  if (!can_expand(shape_of(mask), wanted))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a mask that broadcasts to %s, got shape %s",
                        list_text(wanted).c_str(), shape_text(mask).c_str());
  if (mask.dtype != TENON_DTYPE_BOOL && mask.dtype != query.dtype)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected a mask of dtype bool or %s like the query, got %s; convert it "
                        "with cast",
                        host->dtype_name(query.dtype), host->dtype_name(mask.dtype));
  return TENON_OK;
}

void set_results(tenon_meta* outs, const tenon_tensor& query, const tenon_tensor& value) {
  const auto last = static_cast<size_t>(query.ndim - 1);
  set_like(outs[0], query);
  outs[0].shape[last] = value.shape[last];
  const bool wide = query.dtype == TENON_DTYPE_F64;
  set_new(outs[1], wide ? TENON_DTYPE_F64 : TENON_DTYPE_F32, shape_of(query).first(last));
}

tenon_status expect_like(const char* op, const char* name, const tenon_tensor& tensor,
                         const tenon_meta& like, tenon_err* err) {
  const Ints wanted = {like.shape, static_cast<size_t>(like.ndim)};
  if (std::ranges::equal(shape_of(tensor), wanted) && tensor.dtype == like.dtype) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected %s of shape %s and dtype %s, got %s, %s", name,
                      list_text(wanted).c_str(), host->dtype_name(like.dtype),
                      shape_text(tensor).c_str(), host->dtype_name(tensor.dtype));
}

}  // namespace

TENON_INFER(attention) {
  const char* op = "scaled_dot_product_attention";
  const tenon_tensor &query = tensor_of(args[0]), &key = tensor_of(args[1]),
                     &value = tensor_of(args[2]);
  TENON_TRY(expect_operands(op, query, key, value, err));
  if (const tenon_tensor* mask = optional_tensor(args[3]))
    TENON_TRY(expect_mask(op, query, key, *mask, err));
  set_results(outs, query, value);
  return TENON_OK;
}

TENON_INFER(attention_grad) {
  const char* op = "attention_grad";
  const tenon_tensor &grad_out = tensor_of(args[0]), &query = tensor_of(args[1]);
  const tenon_tensor &key = tensor_of(args[2]), &value = tensor_of(args[3]);
  TENON_TRY(expect_operands(op, query, key, value, err));
  if (const tenon_tensor* mask = optional_tensor(args[4]))
    TENON_TRY(expect_mask(op, query, key, *mask, err));
  tenon_meta results[2];
  set_results(results, query, value);
  TENON_TRY(expect_like(op, "grad_out", grad_out, results[0], err));
  TENON_TRY(expect_like(op, "out", tensor_of(args[5]), results[0], err));
  TENON_TRY(expect_like(op, "logsumexp", tensor_of(args[6]), results[1], err));
  set_like(outs[0], query);
  set_like(outs[1], key);
  set_like(outs[2], value);
  return TENON_OK;
}

}  // namespace tenon::standard_ops
