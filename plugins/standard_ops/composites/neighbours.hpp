// SPDX-License-Identifier: Apache-2.0
// Elements of images around positions between them, which are gathered with weights.
#pragma once

#include "composites/compose.hpp"

namespace tenon::standard_ops {

// An element along one axis for every point: where, whether that is inside, and its weight. Without
// `inside` all are; without `weight` it is 1.
struct Neighbour {
  Tensor index, inside, weight;
};

// The element at `at`, whole numbers; those outside of `extent` elements count as zeros if
// `is_bounded`, and as the nearest element if not.
Neighbour neighbour(Scope& scope, int64_t extent, bool is_bounded, const Tensor& at, Tensor weight);

// The two elements around `at`.
std::vector<Neighbour> linear_neighbours(Scope& scope, int64_t extent, bool is_bounded,
                                         const Tensor& at);

// The sum of all products of one neighbour per axis, [points, C]. `rows` are the elements of all
// images, [N * elements, C], and the neighbours are [points], in images that begin at row `first`.
Tensor add_neighbours(Scope& scope, const Tensor& rows, const Tensor& first,
                      const std::vector<std::vector<Neighbour>>& axes, Ints extents);

}  // namespace tenon::standard_ops
