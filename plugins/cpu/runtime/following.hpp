// SPDX-License-Identifier: Apache-2.0
// Finds the elementwise steps that can run on pieces of the results of a step before them.
#pragma once

#include "conv/following_steps.hpp"

#include <tenon/subgraph.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace tenon::cpu {

// Tensors that the steps behind one step may read from outside.
inline constexpr size_t kMaxOthers = 4;

// Steps from some step of a sub-graph on. `result` is their last value; no other value that they
// make, nor the one that they begin with, is read elsewhere.
struct Following {
  uint32_t count = 0;
  const tenon_tensor* result = nullptr;
  std::vector<const tenon_tensor*> others;  // What they read from outside, results' shape.
  std::vector<FollowingStep> steps;
};

inline bool have_one_shape(const tenon_tensor* a, const tenon_tensor* b) {
  return a->ndim == b->ndim && std::equal(a->shape, a->shape + a->ndim, b->shape);
}

// Kernels that may be joined, of which the elementwise ones of float32 are; they stay where they
// are.
void set_elementwise_kernels(const std::vector<tenon_kernel_def>& kernels);

// The kernel of a step that computes each element of its result, of float32, from the same elements;
// NULL for other steps.
tenon_boxed_fn elementwise_kernel(const tenon_subgraph_step& step);

// The number that a kernel of float32 would see as one element: of a constant of float32, or of a
// number that was given for a tensor, which alone changes its dtype.
std::optional<float> number_in(const tenon_tensor& tensor);

// Whether an argument that is no tensor is none for its parameter, either, but a plain number.
bool is_plain_attribute(const tenon_subgraph_step& step, uint32_t index);

// The steps from `first` on, whose values begin with `last` of float32.
Following find_following(SubgraphValues& values, uint32_t first, const tenon_tensor* last);

}  // namespace tenon::cpu
