// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

// `x` [N, C, ...] holds logarithms of probabilities.
Tensor likelihood_loss(Conversion& c, const Tensor& x, const Tensor& target, const Value& weight) {
  // Without ignore_index every class counts: one that no target has.
  constexpr int64_t kNoClass = int64_t{-1} << 40;
  const int64_t ignored = c.integer("ignore_index", kNoClass);
  return c.call("nll_loss",
                {x, c.cast(target, TENON_DTYPE_I64), weight, ignored, c.text("reduction")});
}

}  // namespace

Values convert_negative_log_likelihood_loss(Conversion& c) {
  return {likelihood_loss(c, c.tensor("input"), c.tensor("target"), c.input("weight"))};
}

Values convert_softmax_cross_entropy_loss(Conversion& c) {
  const Tensor logarithms = c.call("log_softmax", {c.tensor("scores"), 1});
  return {likelihood_loss(c, logarithms, c.tensor("labels"), c.input("weights")), logarithms};
}

}  // namespace tenon::onnx
