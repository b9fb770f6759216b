// SPDX-License-Identifier: Apache-2.0
// The exponential of softmax and attention.
#pragma once

#include "simd/vector_math.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// exp(x) for x = score - maximum, which is at most 0 apart from rounding. Denormal results are
// flushed to 0: next to the largest term, which is 1, they are below every rounding error, and
// arithmetic with denormals takes some processors a hundred times as long.
template <class T>
TENON_INLINE T softmax_exp(T x) {
  constexpr T limit = math::kExpPlain<T>;
  const T weight = math::plain_exp(math::detail::clamp(x, -limit, limit));
  return x < -limit ? T(0) : weight;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
