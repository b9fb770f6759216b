// SPDX-License-Identifier: Apache-2.0
// Updates of weights, by the page aclnnApplyAdamWV2.md of hicann/ops-nn. Options are floats, and so are the powers of them.
#include <cmath>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

ACLNN_EXPORT int aclnnApplyAdamWV2GetWorkspaceSize(aclTensor* var, aclTensor* m, aclTensor* v,
                                                   aclTensor* max_grad_norm, const aclTensor* grad,
                                                   const aclTensor* step, float lr, float beta1,
                                                   float beta2, float weight_decay, float eps,
                                                   bool amsgrad, bool maximize, uint64_t* bytes,
                                                   aclOpExecutor** executor) {
  NEEDS(var, m, v, grad, step);
  REQUIRE(!max_grad_norm && !amsgrad, "the largest moments are not simulated");
  REQUIRE(is_one_of(var->dtype, {kF32, kF16, kBf16}), "a dtype is not served");
  for (const aclTensor* one :
       {static_cast<const aclTensor*>(m), static_cast<const aclTensor*>(v), grad})
    REQUIRE(one->dtype == var->dtype && one->shape == var->shape && !one->shape.empty(),
            "expected one dtype and shape, with one axis or more");
  REQUIRE(is_one_of(step->dtype, {kI64, kF32}), "the step is int64 or float32");
  int64_t steps = 1;
  for (int64_t extent : step->shape) steps *= extent;
  REQUIRE(steps == 1, "expected one step");
  for (const aclTensor* one :
       {static_cast<const aclTensor*>(m), static_cast<const aclTensor*>(v), grad})
    REQUIRE(one->address != var->address, "the weights lie where another operand does");
  return plan(
      "aclnnApplyAdamWV2", {var, m, v, grad, step},
      [=](std::vector<View>& views) {
        View &weights = views[0], &first = views[1], &second = views[2];
        const View &gradient = views[3], &count = views[4];
        const auto t = static_cast<float>(count.number(count.of.offset));
        const float left1 = 1 - std::pow(beta1, t), left2 = 1 - std::pow(beta2, t);
        for (int64_t i = 0, n = weights.count(); i < n; ++i) {
          const auto at = [&](const View& view) { return view.offset(i, view.of.shape); };
          const double g = gradient.number(at(gradient)) * (maximize ? -1 : 1);
          const double theta = weights.number(at(weights));
          const double moment = beta1 * first.number(at(first)) + (1 - beta1) * g;
          const double square = beta2 * second.number(at(second)) + (1 - beta2) * g * g;
          first.store(at(first), moment);
          second.store(at(second), square);
          weights.store(at(weights), theta -
                                         lr / (std::sqrt(square / left2) + eps) * (moment / left1) -
                                         double{lr} * weight_decay * theta);
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnApplyAdamWV2)

}  // namespace
}  // namespace simulated::aclnn
