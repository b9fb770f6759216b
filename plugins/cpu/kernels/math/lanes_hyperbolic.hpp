// SPDX-License-Identifier: Apache-2.0
// sinh, cosh and tanh of registers.
#pragma once

#include "math/hyperbolic.hpp"
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

// Where the divisors of sinh and cosh are still far from overflow, and their quotients nothing.
template <Float T>
inline constexpr T kSteep = kHuge<T>* kHuge<T>;

}  // namespace detail

// With t = (exp(a) - 1) / 2, t + t / (2t + 1).
template <class V, int K>
TENON_INLINE Pack<V, K> sinh(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  const auto a = detail::at_most(detail::absolute(x), detail::kHyperbolicLimit<T>);
  const auto half = detail::scaled_expm1(a, T(0.25)), t = half + half;
  const auto bounded = detail::at_most(t, detail::kSteep<T>);
  return detail::with_sign(t + detail::quotient(bounded, bounded + bounded + T(1)), x);
}

// With e = exp(a) / 2, e + 1 / (4e).
template <class V, int K>
TENON_INLINE Pack<V, K> cosh(const Pack<V, K>& x) {
  using T = detail::ElementOf<V>;
  auto parts = detail::exp_parts(detail::at_most(detail::absolute(x), detail::kHyperbolicLimit<T>));
  parts.power = parts.power - T(1);
  const auto e = detail::exp_of_parts(parts);
  return e + detail::quotient(T(0.25), detail::at_most(e, detail::kSteep<T>));
}

// tanh(c + r) = (tanh(c) + tanh(r)) / (1 + tanh(c) tanh(r)), with tanh(c) from a table and tanh(r)
// = r / under, 2^-25.6.
template <int K>
TENON_INLINE Lanes<K> tanh(const Lanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 9.5f);
  const auto sum = a + 0x1.8p22f, r = a - (sum - 0x1.8p22f);  // multiples of 1/2
  const auto under = horner(r * r, 1.0f, 0.333329827f, -0.0220397413f);
  const auto start = look_up(kTanh, lane_bits(sum));
  return with_sign(quotient(multiply_add(start, under, r), multiply_add(start, r, under)), x);
}
// With t = (exp(2a) - 1) / 2, t / (t + 1).
template <int K>
TENON_INLINE DoubleLanes<K> tanh(const DoubleLanes<K>& x) {
  using namespace detail;
  const auto a = absolute(x), half = scaled_expm1(at_most(a + a, 44.0), 0.5);
  return with_sign(quotient(half, half + 1.0), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
