// SPDX-License-Identifier: Apache-2.0
// Steps of a region that are one pass over pixels: normalisation, products and sums by channel, a
// residual and ReLU, in this order.
#pragma once

#include "region_steps.hpp"

namespace tenon::cpu {

class RegionTail {
 public:
  // Appends a step behind `from`, which is what the tail makes so far. False: it belongs to no tail, or
  // not behind the steps that are there; nothing changes.
  bool add(const RegionStep& step, uint32_t from, const SubgraphValues& constants, int64_t channels,
           int64_t padded);

  bool empty() const { return last_ == kNothing; }
  const PixelTail& pixels() const { return pixels_; }
  std::optional<uint32_t> residual() const { return residual_; }

 private:
  enum Part : uint8_t { kNothing, kNorm, kFactor, kAddend, kResidual, kRelu };

  PixelTail pixels_;
  std::optional<uint32_t> residual_;  // A value of the same shape.
  Part last_ = kNothing;
};

}  // namespace tenon::cpu
