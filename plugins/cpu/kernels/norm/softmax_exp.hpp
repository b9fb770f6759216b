// SPDX-License-Identifier: Apache-2.0
// What softmax, attention and their kin weigh a number with.
#pragma once

#include "simd/vector_math.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// exp(x) of a number beside the largest, which is at most 0 but for rounding. Where that is no
// normal number it is 0: beside the largest weight, which is 1, it is below every rounding, and to
// compute with it takes some processors a hundred times as long.
template <class T>
TENON_INLINE T softmax_exp(T x) {
  constexpr T limit = math::kExpPlain<T>;
  const T weight = math::plain_exp(math::detail::clamp(x, -limit, limit));
  return x < -limit ? T(0) : weight;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
