// SPDX-License-Identifier: Apache-2.0
// Is the device's answer the CPU's?
#pragma once

#include <string>

#include "operators/engine.hpp"

namespace tenon::kit {

// How close each element must come to the CPU's, by itself.
struct Closeness {
  double relative;       // for float32; float64 must come closer
  bool keeps_subnormal;  // otherwise numbers below the normal ones count as 0
  bool keeps_zero_sign;
};

// Empty, or how `got` differs: shape, dtype, or the worst element. Floating results may differ by
// what the dtype's precision excuses.
std::string difference(Engine&, const Tensor& want, const Tensor& got);
std::string difference(Engine&, const Tensor& want, const Tensor& got, const Closeness&);

}  // namespace tenon::kit
