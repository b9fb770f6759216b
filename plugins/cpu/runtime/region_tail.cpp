// SPDX-License-Identifier: Apache-2.0
#include "region_tail.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::cpu {
namespace {

std::vector<float> padded_copy(const float* from, int64_t count, int64_t padded) {
  std::vector<float> copy(static_cast<size_t>(padded), 0.0f);
  if (from) std::copy_n(from, count, copy.begin());
  return copy;
}

// The operand beside `from`, if a kernel has these two and no others.
const RegionOperand* operand_beside(const RegionStep& step, uint32_t from) {
  if (step.operands.size() != 2) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const RegionOperand &one = step.operands[i], &other = step.operands[1 - i];
    const bool is_from = one.kind == RegionOperand::kValue && one.value == from;
    const bool is_other = other.kind == RegionOperand::kConstant ||
                          (other.kind == RegionOperand::kValue && other.value != from);
    if (is_from && is_other) return &other;
  }
  return nullptr;
}

}  // namespace

bool RegionTail::add(const RegionStep& step, uint32_t from, const SubgraphValues& constants,
                     int64_t channels, int64_t padded) {
  const auto follows = [&](Part part) {
    if (part <= last_) return false;
    last_ = part;
    return true;
  };
  if (step.kind == RegionStep::kNorm) {
    if (step.inputs[0] != from || !follows(kNorm)) return false;
    const ConvConstants of = constants_of(constants, step.tensors);
    pixels_.center = padded_copy(of.mean, channels, padded);
    pixels_.shift = padded_copy(of.shift, channels, padded);
    pixels_.scale.assign(static_cast<size_t>(padded), 0.0f);
    for (int64_t c = 0; c < channels; ++c) {  // As batch_norm_inference() does.
      const float factor = of.factor ? of.factor[c] : 1.0f;
      pixels_.scale[static_cast<size_t>(c)] = factor / std::sqrt(of.var[c] + of.eps);
    }
    return true;
  }
  if (step.kind != RegionStep::kKernel) return false;
  if (step.operation == RegionStep::kRelu) {
    const RegionOperand& x = step.operands[0];
    if (x.kind != RegionOperand::kValue || x.value != from || !follows(kRelu)) return false;
    return pixels_.has_relu = true;
  }
  const RegionOperand* other = operand_beside(step, from);
  if (!other || step.operation == RegionStep::kOther) return false;
  const bool is_sum = step.operation == RegionStep::kAdd;
  if (other->kind == RegionOperand::kValue) {
    if (!is_sum || !follows(kResidual)) return false;
    residual_ = other->value;
    return true;
  }
  if (!follows(is_sum ? kAddend : kFactor)) return false;
  (is_sum ? pixels_.addend : pixels_.factor) =
      padded_copy(static_cast<const float*>(other->constant->data), channels, padded);
  return true;
}

}  // namespace tenon::cpu
