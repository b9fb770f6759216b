// SPDX-License-Identifier: Apache-2.0
// sinh, cosh and tanh of sixteen floats.
#pragma once

#include "math/lanes_exponential.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// tanh(i/2), which is 1 from the last ones on.
alignas(64) inline constexpr float kTanh[32] = {
    0.0f,         0.462117165f, 0.761594176f, 0.905148268f, 0.964027584f, 0.986614287f,
    0.995054781f, 0.998177886f, 0.999329329f, 0.999753237f, 0.999909222f, 0.999966621f,
    0.999987721f, 0.99999547f,  0.999998331f, 0.999999404f, 0.999999762f, 0.99999994f,
    0.99999994f,  1.0f,         1.0f,         1.0f,         1.0f,         1.0f,
    1.0f,         1.0f,         1.0f,         1.0f,         1.0f,         1.0f,
    1.0f,         1.0f};

}  // namespace detail

// With t = (exp(a) - 1) / 2, t + t / (2t + 1).
template <int K>
TENON_INLINE Lanes<K> sinh(const Lanes<K>& x) {
  const Lanes<K> half = detail::scaled_expm1(detail::at_most(detail::absolute(x), 89.5f), 0.25f);
  const Lanes<K> t = half + half;
  const Lanes<K> down = detail::at_most(t, 1e30f) / (t + t + 1.0f);
  return detail::with_sign(t + down, x);
}

// With e = exp(a) / 2, e + 1 / (4e).
template <int K>
TENON_INLINE Lanes<K> cosh(const Lanes<K>& x) {
  auto parts = detail::exp_parts(detail::at_most(detail::absolute(x), 89.5f));
  parts.power = parts.power - 1.0f;
  const Lanes<K> e = detail::exp_of_parts(parts);
  return e + 0.25f / e;
}

// tanh(c + r) = (tanh(c) + tanh(r)) / (1 + tanh(c) tanh(r)), with tanh(c) from a table and tanh(r)
// = r / under, 2^-25.6.
template <int K>
TENON_INLINE Lanes<K> tanh(const Lanes<K>& x) {
  using namespace detail;
  const Lanes<K> a = at_most(absolute(x), 9.5f);
  const Lanes<K> sum = a + 0x1.8p22f, r = a - (sum - 0x1.8p22f);  // multiples of 1/2
  const Lanes<K> under = horner(r * r, 1.0f, 0.333329827f, -0.0220397413f);
  const Lanes<K> start = look_up(kTanh, lane_bits(sum));
  return with_sign(multiply_add(start, under, r) / multiply_add(start, r, under), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
