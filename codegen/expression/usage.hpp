// SPDX-License-Identifier: Apache-2.0
// What a checked operator expression reads, and so what must be kept for a gradient.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "expression/value.hpp"

namespace tenon::codegen {

// Which arguments a program reads, in whole or for shape and dtype only; which outputs; which
// gradients.
struct Usage {
  std::set<int> arguments, shapes, outputs, gradients;
  // For C++: every argument that is named at all.
  std::set<int> named;
};
Usage usage_of(const Program& program);

struct CheckedGradient {
  const Gradient* gradient;
  Program program;
  Usage usage;
};

// The masks of tenon_grad_rule. Of results that feed one gradient together, those that no gradient
// reached count as zeros; `zeroed` has them.
struct GradientRule {
  std::vector<CheckedGradient> gradients;
  uint64_t diff_args = 0, saves_args = 0, shapes_args = 0, saves_outs = 0;
  std::vector<uint64_t> arg_reads, out_reads;  // per parameter
  std::set<int> zeroed;
};
GradientRule gradient_rule(const Operator& op, const Package& package);
// Bit of every parameter that the entry gives a gradient.
uint64_t params_mask(const Operator& op, const Gradient& gradient);

}  // namespace tenon::codegen
