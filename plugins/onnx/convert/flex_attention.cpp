// SPDX-License-Identifier: Apache-2.0
// FlexAttention: attention whose scores and probabilities graphs of the model change.
#include <cmath>

#include "convert/converters.hpp"
#include "importer.hpp"

namespace tenon::onnx {
namespace {

// What the graph of this attribute makes of x, which keeps its type.
Tensor changed(Conversion& c, const char* name, const Tensor& x) {
  if (!c.has_attribute(name)) return x;
  const Values made = c.importer.run_graph(c.graph(name), c.scope, {x});
  const std::string what = "attribute `" + std::string(name) + "`";
  if (made.size() != 1) c.fail(what + ": expected a graph with one output");
  const Tensor result = made[0].tensor(what);
  if (result->dtype != x->dtype || shape_of(result) != shape_of(x))
    c.fail(what + ": expected a graph that keeps dtype and shape, " + describe(*x.get()) +
           ", got one that makes " + describe(*result.get()));
  return result;
}

}  // namespace

Values convert_flex_attention(Conversion& c) {
  const Tensor &q = c.tensor("Q"), &k = c.tensor("K"), &v = c.tensor("V");
  if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) c.fail("expected Q, K and V of four axes");
  const int64_t heads = q->shape[1], shared = k->shape[1];
  if (shared < 1 || heads % shared != 0 || v->shape[1] != shared)
    c.fail("expected heads of Q that are a multiple of those of K and V, got " +
           std::to_string(heads) + ", " + std::to_string(shared) + " and " +
           std::to_string(v->shape[1]));
  if (q->shape[3] == 0) c.fail("expected heads of at least one element");
  const auto spread = [&](const Tensor& x) {
    return heads == shared ? x : c.call("repeat", {x, heads / shared, int64_t{1}});
  };
  const double scale = c.number("scale", 1 / std::sqrt(static_cast<double>(q->shape[3])));
  if (scale < 0) c.refuse("attribute `scale`: below 0");
  const bool is_double = q->dtype == TENON_DTYPE_F64;
  const int32_t dtype = c.has_attribute("softmax_precision")
                            ? dtype_of(c.integer("softmax_precision"), "softmax_precision")
                            : (is_double ? TENON_DTYPE_F64 : TENON_DTYPE_F32);
  const double root = std::sqrt(scale);
  Tensor scores = c.call(
      "matmul",
      {c.call("multiply", {q, root}),
       c.call("transpose", {c.call("multiply", {spread(k), root}), int64_t{-2}, int64_t{-1}})});
  scores = changed(c, "score_mod", c.cast(scores, dtype));
  const Tensor parts = changed(c, "prob_mod", c.call("softmax", {scores, int64_t{-1}}));
  return {c.cast(c.call("matmul", {parts, c.cast(spread(v), dtype)}), v->dtype)};
}

}  // namespace tenon::onnx
