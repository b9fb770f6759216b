// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan of sixteen floats.
//
// sin and cos are reduced modulo pi, not pi/2: one polynomial for half a turn is shorter than the
// two for a quarter of it. The parts of pi are rounded down, which keeps the signs of zeros.
#pragma once

#include "math/lanes.hpp"
#include "math/trigonometric.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// sin(r) of |r| <= pi/2, 2^-27; the other sign where bit 0 of `turns` is set.
template <int K>
TENON_INLINE Lanes<K> sin_of_half_turn(const Lanes<K>& r, const Lanes<K>& turns) {
  const Lanes<K> ratio =
      horner(r * r, 1.0f, -0.166666597f, 0.00833306834f, -0.000198096546f, 2.60572824e-06f);
  return flip_sign(r * ratio, turns);
}
// x - n pi
template <int K>
TENON_INLINE Lanes<K> less_half_turns(const Lanes<K>& x, const Lanes<K>& n) {
  const Lanes<K> r = subtract_product(n, 1.50995788e-07f, subtract_product(n, 3.1415925f, x));
  return subtract_product(n, 1.07806051e-14f, r);
}
template <int K>
TENON_INLINE Lanes<K> small_sin(const Lanes<K>& x) {
  const Lanes<K> turns = multiply_add(x, 0.318309873f, kRound<float>);
  return sin_of_half_turn(less_half_turns(x, Lanes<K>(turns - kRound<float>)), turns);
}
// cos((n - 1/2) pi + r) = (-1)^n sin(r)
template <int K>
TENON_INLINE Lanes<K> small_cos(const Lanes<K>& x) {
  const Lanes<K> turns = multiply_add(x, 0.318309873f, 0.5f) + kRound<float>;
  return sin_of_half_turn(less_half_turns(x, Lanes<K>((turns - kRound<float>)-0.5f)), turns);
}
// tan(r) is a quotient for |r| <= pi/4, 2^-25; tan(r + pi/2) = -1 / tan(r).
template <int K>
TENON_INLINE Lanes<K> small_tan(const Lanes<K>& x) {
  const Lanes<K> turns = multiply_add(x, 0.636619747f, kRound<float>), n = turns - kRound<float>;
  Lanes<K> r = subtract_product(n, 7.54978942e-08f, subtract_product(n, 1.57079625f, x));
  r = subtract_product(n, 5.39030253e-15f, r);
  const Lanes<K> square = r * r;
  const Lanes<K> over = r * horner(square, 1.0f, -0.0958051851f);
  const Lanes<K> under = horner(square, 1.0f, -0.429139203f, 0.00971806053f);
  const LaneMask<K> odd = is_odd(turns);
  return flip_sign(choose(odd, under, over) / choose(odd, over, under), turns);
}

// Lanes too large for these reductions.
template <int K>
TENON_INLINE LaneMask<K> is_large_angle(const Lanes<K>& x) {
  return is_less(Lanes<K>{} + kAngleLimit<float>, absolute(x));
}

}  // namespace detail

#define TENON_LANE_ANGLE(NAME)                                                  \
  template <int K>                                                              \
  TENON_INLINE Lanes<K> NAME(const Lanes<K>& x) {                               \
    return detail::unless(                                                      \
        detail::is_large_angle(x), detail::small_##NAME(x),                     \
        [](float a) { return detail::NAME##_of(detail::reduce_large(a)); }, x); \
  }
TENON_LANE_ANGLE(sin)
TENON_LANE_ANGLE(cos)
TENON_LANE_ANGLE(tan)
#undef TENON_LANE_ANGLE

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
