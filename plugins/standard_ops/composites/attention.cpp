// SPDX-License-Identifier: Apache-2.0
// Attention from matrix products and softmax.
#include <limits>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// True where position i may see position j.
Tensor causal_mask(Scope& scope, int64_t rows, int64_t columns, tenon_device_id device) {
  Tensor i = ops::unsqueeze(
      scope, ops::arange(scope, rows, std::nullopt, 1, TENON_DTYPE_I64, device), {1});
  return ops::greater_equal(scope, i,
                            ops::arange(scope, columns, std::nullopt, 1, TENON_DTYPE_I64, device));
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
  double dropout = float_of(args[4]);
  if (!(dropout >= 0 && dropout <= 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected dropout from 0 to 1, got %g",
                        dropout);
  int64_t rows = query->shape[query->ndim - 2], features = query->shape[query->ndim - 1];
  int64_t columns = key->shape[key->ndim - 2];
  double scale =
      is_none(args[6]) ? 1 / std::sqrt(static_cast<double>(features)) : float_of(args[6]);
  const double nothing = -std::numeric_limits<double>::infinity();

  Tensor scores =
      ops::matmul(scope, ops::multiply(scope, query, scale), ops::transpose(scope, key));
  Tensor visible = bool_of(args[5]) ? causal_mask(scope, rows, columns, query->device) : Tensor();
  if (mask && mask->dtype != TENON_DTYPE_BOOL)
    scores = ops::add(scope, scores, mask);
  else if (mask)
    visible = visible ? ops::logical_and(scope, visible, mask) : mask;
  if (visible) scores = ops::where(scope, visible, scores, nothing);
  Tensor weights = ops::softmax(scope, scores, -1);
  // A row of -inf has no softmax: with nothing to see, its weights are zeros. `causal` alone leaves
  // every position at least the first.
  if (mask) {
    Tensor blind =
        ops::equal(scope, ops::max(scope, ops::stop_gradient(scope, scores), -1, true), nothing);
    weights = ops::where(scope, blind, 0, weights);
  }
  weights = ops::dropout(scope, weights, dropout, true);
  return finish(scope, outs, ops::matmul(scope, weights, value));
}

}  // namespace tenon::standard_ops
