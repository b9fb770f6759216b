// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan of registers.
//
// sin and cos are reduced modulo pi, not pi/2: one polynomial for half a turn is shorter than the
// two for a quarter of it. The parts of pi are rounded down, which keeps the signs of zeros.
#pragma once

#include "math/lanes.hpp"
#include "math/trigonometric.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// Parts of pi.
template <Float T>
inline constexpr T kPiParts[3] = {T(3.1415925f), T(1.50995788e-07f), T(1.07806051e-14f)};
template <>
inline constexpr double kPiParts<double>[3] = {3.141592653589793, 1.224646799147353e-16,
                                               2.165713347843828e-32};

// sin(r) / r of |r| <= pi/2 and its square, 2^-27 and 2^-61.7.
template <int K>
TENON_INLINE Lanes<K> sin_ratio(const Lanes<K>& s) {
  return horner(s, 1.0f, -0.166666597f, 0.00833306834f, -0.000198096546f, 2.60572824e-06f);
}
template <int K>
TENON_INLINE DoubleLanes<K> sin_ratio(const DoubleLanes<K>& s) {
  return horner(s, 1.0, -0.16666666666666666, 0.008333333333333194, -0.00019841269841209183,
                2.7557319211130833e-06, -2.5052106872195023e-08, 1.605893967455772e-10,
                -7.642990653935168e-13, 2.721165970097353e-15);
}
// sin(r); the other sign where bit 0 of `turns` is set.
template <class V, int K>
TENON_INLINE Pack<V, K> sin_of_half_turn(const Pack<V, K>& r, const Pack<V, K>& turns) {
  return flip_sign(r * sin_ratio(r * r), turns);
}
// x - n factor pi
template <class V, int K>
TENON_INLINE Pack<V, K> less_half_turns(const Pack<V, K>& x, const Pack<V, K>& n,
                                        ElementOf<V> factor) {
  const auto& parts = kPiParts<ElementOf<V>>;
  const auto r = subtract_product(n, factor * parts[1], subtract_product(n, factor * parts[0], x));
  return subtract_product(n, factor * parts[2], r);
}
template <class V, int K>
TENON_INLINE Pack<V, K> small_sin(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto turns = multiply_add(x, static_cast<T>(0.3183098861837907), kRound<T>);
  return sin_of_half_turn(less_half_turns(x, turns - kRound<T>, T(1)), turns);
}
// cos((n - 1/2) pi + r) = (-1)^n sin(r)
template <class V, int K>
TENON_INLINE Pack<V, K> small_cos(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto turns = multiply_add(x, static_cast<T>(0.3183098861837907), T(0.5)) + kRound<T>;
  return sin_of_half_turn(less_half_turns(x, (turns - kRound<T>)-T(0.5), T(1)), turns);
}

// tan(r) = over / under for |r| <= pi/4 and the square s of r; 2^-25, and sin and cos.
template <int K>
TENON_INLINE Lanes<K> tan_over(const Lanes<K>& r, const Lanes<K>& s) {
  return r * horner(s, 1.0f, -0.0958051851f);
}
template <int K>
TENON_INLINE Lanes<K> tan_under(const Lanes<K>& s) {
  return horner(s, 1.0f, -0.429139203f, 0.00971806053f);
}
template <int K>
TENON_INLINE DoubleLanes<K> tan_over(const DoubleLanes<K>& r, const DoubleLanes<K>& s) {
  return r * horner(s, 1.0, -0.16666666666666632, 0.008333333333322398, -0.00019841269829794068,
                    2.755731368696052e-06, -2.5050757310494216e-08, 1.589674742430494e-10);
}
template <int K>
TENON_INLINE DoubleLanes<K> tan_under(const DoubleLanes<K>& s) {
  return horner(s, 1.0, -0.5, 0.041666666666666595, -0.0013888888888873017, 2.4801587288825957e-05,
                -2.7557314171657323e-07, 2.0875699777398464e-09, -1.1358480101578055e-11);
}
// tan(r + pi/2) = -1 / tan(r)
template <class V, int K>
TENON_INLINE Pack<V, K> small_tan(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  const auto turns = multiply_add(x, static_cast<T>(0.6366197723675814), kRound<T>);
  const auto r = less_half_turns(x, turns - kRound<T>, T(0.5));
  const auto square = r * r, over = tan_over(r, square), under = tan_under(square);
  const auto odd = is_odd(turns);
  return flip_sign(quotient(choose(odd, under, over), choose(odd, over, under)), turns);
}

// Lanes too large for these reductions.
template <class V, int K>
TENON_INLINE auto is_large_angle(const Pack<V, K>& x) {
  return is_less(spread(kAngleLimit<ElementOf<V>>, x), absolute(x));
}
TENON_INLINE float sin_of_large(float x) { return sin_of(reduce_large(x)); }
TENON_INLINE float cos_of_large(float x) { return cos_of(reduce_large(x)); }
TENON_INLINE float tan_of_large(float x) { return tan_of(reduce_large(x)); }
inline double sin_of_large(double x) { return std::sin(x); }
inline double cos_of_large(double x) { return std::cos(x); }
inline double tan_of_large(double x) { return std::tan(x); }

}  // namespace detail

#define TENON_LANE_ANGLE(NAME)                              \
  template <class V, int K>                                 \
  TENON_INLINE Pack<V, K> NAME(const Pack<V, K>& x) {       \
    using T = detail::ElementOf<V>;                         \
    return detail::unless(                                  \
        detail::is_large_angle(x), detail::small_##NAME(x), \
        [](T a) { return detail::NAME##_of_large(a); }, x); \
  }
TENON_LANE_ANGLE(sin)
TENON_LANE_ANGLE(cos)
TENON_LANE_ANGLE(tan)
#undef TENON_LANE_ANGLE

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
