// SPDX-License-Identifier: Apache-2.0
// Is the device's answer the CPU's?
#pragma once

#include <string>

#include "operators/engine.hpp"

namespace tenon::kit {

// Empty, or how `got` differs: shape, dtype, or the worst element. Floating results may differ by
// what the dtype's precision excuses.
std::string difference(Engine&, const Tensor& want, const Tensor& got);

}  // namespace tenon::kit
