// SPDX-License-Identifier: Apache-2.0
// Attention from matrix products and softmax.
#include <limits>

#include <tenon/ops/interior.hpp>

#include "composites/compose.hpp"
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

// True where position i may see position j.
Tensor causal_mask(Scope& scope, int64_t rows, int64_t columns, tenon_device_id device) {
  Tensor i = ops::unsqueeze(
      scope, ops::arange(scope, rows, std::nullopt, 1, TENON_DTYPE_I64, device), {1});
  return ops::greater_equal(scope, i,
                            ops::arange(scope, columns, std::nullopt, 1, TENON_DTYPE_I64, device));
}

// What attention is made of, apart from the value.
struct Scores {
  Tensor query, key, mask;
  bool causal;
  double scale;
};

struct Weights {
  Tensor weights;
  Tensor scores;  // after scaling and masks
  Tensor blind;   // rows with nothing to see; null: there are none
};

constexpr double kNothing = -std::numeric_limits<double>::infinity();

Weights weights_of(Scope& scope, const Scores& from) {
  const Tensor &query = from.query, &key = from.key, &mask = from.mask;
  if (!scope.ok()) return {};
  const int64_t rows = query->shape[query->ndim - 2], columns = key->shape[key->ndim - 2];
  Weights result;
  Tensor scores =
      ops::matmul(scope, ops::multiply(scope, query, from.scale), ops::transpose(scope, key));
  Tensor visible = from.causal ? causal_mask(scope, rows, columns, query->device) : Tensor();
  if (mask && mask->dtype != TENON_DTYPE_BOOL)
    scores = ops::add(scope, scores, mask);
  else if (mask)
    visible = visible ? ops::logical_and(scope, visible, mask) : mask;
  if (visible) scores = ops::where(scope, visible, scores, kNothing);
  result.scores = scores;
  // A row of -inf has no softmax: with nothing to see, its weights are zeros. `causal` alone leaves
  // every position at least the first.
  const bool blinds = mask && columns > 0;
  if (blinds) {
    result.blind =
        ops::equal(scope, ops::max(scope, ops::stop_gradient(scope, scores), -1, true), kNothing);
    scores = ops::where(scope, result.blind, 0, scores);
  }
  result.weights = ops::softmax(scope, scores, -1);
  if (blinds) result.weights = ops::where(scope, result.blind, 0, result.weights);
  return result;
}

// Gradient of the scores from that of the weights.
Tensor through_softmax(Scope& scope, const Tensor& grad_out, const Tensor& value,
                       const Tensor& weights) {
  Tensor grad = ops::matmul(scope, grad_out, ops::transpose(scope, value));
  return ops::softmax_grad(scope, grad, weights, -1);
}

// Extends `batch` to broadcast with the axes of `tensor` before the last two.
bool broadcast_batch(int64_t* batch, int32_t* ndim, const Tensor& tensor) {
  const Ints shape = shape_of(*tensor.get());
  return shape.size() < 2 || broadcast_into(batch, ndim, shape.first(shape.size() - 2));
}

// Does `attention` take these operands, once they are expanded to `batch`?
bool fits_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                    Shape* batch) {
  const int32_t dtype = query->dtype;
  const int64_t rows = query->shape[query->ndim - 2], columns = key->shape[key->ndim - 2];
  if (!is_real_floating(dtype) || key->dtype != dtype || value->dtype != dtype) return false;
  if (key->shape[key->ndim - 1] != query->shape[query->ndim - 1]) return false;
  if (value->shape[value->ndim - 2] != columns) return false;
  int64_t shape[TENON_MAX_NDIM];
  int32_t ndim = 0;
  for (const Tensor* each : {&query, &key, &value})
    if (!broadcast_batch(shape, &ndim, *each)) return false;
  if (mask) {
    if (mask->dtype != TENON_DTYPE_BOOL && mask->dtype != dtype) return false;
    if (!broadcast_batch(shape, &ndim, mask)) return false;
    const int64_t scores[] = {rows, columns};
    const Ints last = shape_of(*mask.get()).last(std::min(mask->ndim, 2));
    if (!can_expand(last, scores)) return false;
  }
  batch->assign(shape, shape + ndim);
  return true;
}

int64_t heads_of(const Tensor& x) { return x->ndim < 3 ? 1 : x->shape[x->ndim - 3]; }

tenon_status expect_heads(const Tensor& query, const char* name, const Tensor& x, tenon_err* err) {
  const bool fits =
      query->ndim >= 3 && x->ndim >= 3 && heads_of(x) > 0 && heads_of(query) % heads_of(x) == 0;
  if (fits) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, "scaled_dot_product_attention",
                      "expected heads of query, [..., heads, length, features], that are a "
                      "multiple of those of %s, got shapes %s and %s",
                      name, shape_text(*query.get()).c_str(), shape_text(*x.get()).c_str());
}

// [..., heads, a, b] as a view [..., heads / group, group, a, b]. One head serves all groups, and so does a mask without heads.
Tensor split_heads(Scope& scope, const Tensor& x, int64_t group) {
  if (!x || x->ndim < 3) return Tensor::borrow(x.get());
  if (heads_of(x) == 1) return ops::unsqueeze(scope, x, {-3});
  Shape shape = sizes_of(x);
  shape[shape.size() - 3] /= group;
  shape.insert(shape.end() - 2, group);
  return ops::reshape(scope, x, shape);
}

// And back.
Tensor join_heads(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  Shape shape = sizes_of(x);
  const auto group = shape.end() - 3;
  group[-1] *= *group;
  shape.erase(group);
  return ops::reshape(scope, x, shape);
}

// [..., kv_heads, length, features] with every head repeated, as many as there are of the query.
Tensor repeat_heads(Scope& scope, const Tensor& x, int64_t heads) {
  if (heads_of(x) == heads) return Tensor::borrow(x.get());
  Shape shape = sizes_of(x);
  shape.insert(shape.end() - 2, heads / heads_of(x));
  return join_heads(scope, ops::expand(scope, ops::unsqueeze(scope, x, {-3}), shape));
}

Tensor with_batch(Scope& scope, const Tensor& tensor, const Shape& batch) {
  Shape shape = batch;
  shape.insert(shape.end(), tensor->shape + tensor->ndim - 2, tensor->shape + tensor->ndim);
  if (shape == sizes_of(tensor)) return Tensor::borrow(tensor.get());
  return ops::expand(scope, tensor, shape);
}

}  // namespace

TENON_DECOMPOSE(scaled_dot_product_attention) {
  const char* op = "scaled_dot_product_attention";
  Scope scope(err);
  Tensor query = operand(scope, args[0]), key = operand(scope, args[1]),
         value = operand(scope, args[2]);
  Tensor mask = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected query, key and value [..., length, features], got shapes %s, %s and %s",
        shape_text(*query.get()).c_str(), shape_text(*key.get()).c_str(),
        shape_text(*value.get()).c_str());
  bool is_grouped = false;
  if (bool_of(args[7])) {
    TENON_TRY(expect_heads(query, "key", key, err));
    TENON_TRY(expect_heads(query, "value", value, err));
    const int64_t heads = heads_of(query), own = heads_of(key);
    const bool fits_mask = !mask || heads_of(mask) == 1 || heads_of(mask) == heads;
    if (own == heads_of(value) && own < heads && fits_mask) {
      // The groups are an axis that the key and value broadcast along, so that nothing is copied.
      is_grouped = true;
      query = split_heads(scope, query, heads / own);
      mask = split_heads(scope, mask, heads / own);
      key = ops::unsqueeze(scope, key, {-3});
      value = ops::unsqueeze(scope, value, {-3});
    } else {
      key = repeat_heads(scope, key, heads);
      value = repeat_heads(scope, value, heads);
    }
    if (!scope.ok()) return scope.status();
  }
  const auto finish_heads = [&](Tensor result) {
    return finish(scope, outs, is_grouped ? join_heads(scope, result) : std::move(result));
  };
  double dropout = float_of(args[4]);
  if (!(dropout >= 0 && dropout <= 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected dropout from 0 to 1, got %g",
                        dropout);
  const bool causal = bool_of(args[5]);
  const int64_t features = std::max<int64_t>(query->shape[query->ndim - 1], 1);
  const double scale =
      is_none(args[6]) ? 1 / std::sqrt(static_cast<double>(features)) : float_of(args[6]);
  Shape batch;
  if (dropout == 0 && fits_attention(query, key, value, mask, &batch)) {
    auto result =
        ops::attention(scope, with_batch(scope, query, batch), with_batch(scope, key, batch),
                       with_batch(scope, value, batch), mask, causal, scale);
    return finish_heads(std::move(result.out));
  }
  // Scores of smaller floats are kept in float32, as the kernels of attention keep them.
  const int32_t dtype = query->dtype;
  query = interior::widened(scope, query);
  Tensor weights = weights_of(scope, {query, interior::widened(scope, key),
                                      interior::widened(scope, mask), causal, scale})
                       .weights;
  weights = ops::dropout(scope, weights, dropout, true);
  Tensor result = ops::matmul(scope, weights, interior::widened(scope, value));
  if (scope.ok() && result->dtype == TENON_DTYPE_F32 && interior::is_narrow_float(dtype))
    result = ops::cast(scope, result, dtype);
  return finish_heads(std::move(result));
}

TENON_DECOMPOSE(attention) {
  Scope scope(err);
  Tensor query = operand(scope, args[0]), key = operand(scope, args[1]),
         value = operand(scope, args[2]);
  const Scores from = {query, key, operand(scope, args[3]), bool_of(args[4]), float_of(args[5])};
  const Weights weights = weights_of(scope, from);
  if (!scope.ok()) return scope.status();
  const bool exact = query->dtype == TENON_DTYPE_F64;
  Tensor logsumexp = ops::logsumexp(
      scope, ops::cast(scope, weights.scores, exact ? TENON_DTYPE_F64 : TENON_DTYPE_F32), {-1});
  return finish(scope, outs, ops::matmul(scope, weights.weights, value), logsumexp);
}

TENON_DECOMPOSE(attention_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), query = operand(scope, args[1]),
         key = operand(scope, args[2]), value = operand(scope, args[3]);
  const double scale = float_of(args[8]);
  const Scores from = {query, key, operand(scope, args[4]), bool_of(args[7]), scale};
  Tensor weights = weights_of(scope, from).weights;
  Tensor dscores = ops::multiply(scope, through_softmax(scope, grad_out, value, weights), scale);
  Tensor dvalue = ops::matmul(scope, ops::transpose(scope, weights), grad_out);
  Tensor dkey = ops::matmul(scope, ops::transpose(scope, dscores), query);
  return finish(scope, outs, ops::matmul(scope, dscores, key), dkey, dvalue);
}

TENON_DECOMPOSE(attention_mask_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), query = operand(scope, args[1]),
         key = operand(scope, args[2]), value = operand(scope, args[3]);
  const Scores from = {query, key, operand(scope, args[4]), bool_of(args[5]), float_of(args[6])};
  Tensor weights = weights_of(scope, from).weights;
  return finish(scope, outs, through_softmax(scope, grad_out, value, weights));
}

}  // namespace tenon::standard_ops
