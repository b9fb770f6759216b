// SPDX-License-Identifier: Apache-2.0
#include "composites/neighbours.hpp"

namespace tenon::standard_ops {
namespace {

Tensor multiplied(Scope& scope, const Tensor& a, const Tensor& b) {
  if (!a || !b) return a ? a : b;
  return ops::multiply(scope, a, b);
}

}  // namespace

Neighbour neighbour(Scope& scope, int64_t extent, bool is_bounded, const Tensor& at,
                    Tensor weight) {
  const double last = static_cast<double>(extent - 1);
  Neighbour result;
  Tensor still = ops::stop_gradient(scope, at);
  if (is_bounded)
    result.inside = ops::logical_and(scope, ops::greater_equal(scope, still, 0),
                                     ops::less_equal(scope, still, last));
  result.index = ops::cast(scope, ops::clip(scope, still, 0.0, last), TENON_DTYPE_I64);
  result.weight = std::move(weight);
  return result;
}

std::vector<Neighbour> linear_neighbours(Scope& scope, int64_t extent, bool is_bounded,
                                         const Tensor& at) {
  Tensor low = ops::floor(scope, at), high_weight = ops::subtract(scope, at, low);
  Tensor high = ops::add(scope, low, 1), low_weight = ops::subtract(scope, 1, high_weight);
  return {neighbour(scope, extent, is_bounded, low, low_weight),
          neighbour(scope, extent, is_bounded, high, high_weight)};
}

Tensor add_neighbours(Scope& scope, const Tensor& rows, const Tensor& first,
                      const std::vector<std::vector<Neighbour>>& axes, Ints extents) {
  Tensor total;
  size_t combinations = 1;
  for (const auto& axis : axes) combinations *= axis.size();
  for (size_t i = 0; i < combinations && scope.ok(); ++i) {
    Tensor index, inside, weight;
    size_t rest = i;
    for (size_t k = 0; k < axes.size(); ++k) {
      const Neighbour& one = axes[k][rest % axes[k].size()];
      rest /= axes[k].size();
      index =
          index ? ops::add(scope, ops::multiply(scope, index, extents[k]), one.index) : one.index;
      if (one.inside) inside = inside ? ops::logical_and(scope, inside, one.inside) : one.inside;
      weight = multiplied(scope, weight, one.weight);
    }
    Tensor picked = ops::index_select(scope, rows, ops::add(scope, index, first), 0);
    if (inside) picked = ops::where(scope, ops::unsqueeze(scope, inside, {1}), picked, 0);
    if (weight) picked = ops::multiply(scope, picked, ops::unsqueeze(scope, weight, {1}));
    total = total ? ops::add(scope, total, picked) : picked;
  }
  return total;
}

}  // namespace tenon::standard_ops
