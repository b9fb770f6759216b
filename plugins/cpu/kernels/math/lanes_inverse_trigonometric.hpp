// SPDX-License-Identifier: Apache-2.0
// atan, asin, acos and the angle of a point, of sixteen floats.
//
// atan(a) = atan(c) + atan((a - c) / (1 + a c)) with c from a table, so that the second angle is
// small: a division takes no more than three products here.
#pragma once

#include "math/lanes_piecewise.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// c in quarters of octaves from 1/16 to 14, below 0 and above as good as infinite, chosen such that
// atan(c) is nearly a float.
inline constexpr int kArcFirst = 492;
alignas(64) inline constexpr float kArcTangent[32] = {
    0.0f,         0.0862862021f, 0.101497963f, 0.117370091f, 0.140387043f, 0.172497526f,
    0.20358403f,  0.233964518f,  0.281308979f, 0.342350006f, 0.405158937f, 0.468992144f,
    0.563631475f, 0.687084377f,  0.81343472f,  0.933826506f, 1.12282443f,  1.36948776f,
    1.61493707f,  1.86450768f,   2.23895001f,  2.73424411f,  3.22299075f,  3.72492528f,
    4.43647575f,  5.43426132f,   6.45853281f,  7.47951412f,  8.8555851f,   10.957242f,
    12.9517574f,  1.1529215e+18f};
alignas(64) inline constexpr float kArc[32] = {
    0.0f,         0.0860730112f, 0.101151563f, 0.116835549f, 0.139475524f, 0.170816526f,
    0.200839356f, 0.229830444f,  0.274222106f, 0.329843491f, 0.38494581f,  0.438535064f,
    0.513248563f, 0.602005064f,  0.682879329f, 0.75119257f,  0.843192697f, 0.940088093f,
    1.01636481f,  1.07850528f,   1.15074182f,  1.22017586f,  1.26994359f,  1.30851877f,
    1.34909725f,  1.38881457f,   1.41718221f,  1.437886f,    1.45834959f,  1.47978461f,
    1.4937396f,   1.57079637f};
// atan(i/16)
alignas(64) inline constexpr float kArcOfSixteenths[32] = {
    0.0f,         0.062418811f, 0.124354996f, 0.185347944f, 0.244978666f, 0.302884877f,
    0.358770669f, 0.412410438f, 0.463647604f, 0.512389481f, 0.558599293f, 0.602287352f,
    0.643501103f, 0.682316542f, 0.718829989f, 0.753151298f, 0.785398185f, 0.785398185f,
    0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f,
    0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f,
    0.785398185f, 0.785398185f};

// atan(z) of |z| <= 0.079, 2^-29.
template <int K>
TENON_INLINE Lanes<K> small_arc(const Lanes<K>& z) {
  const Lanes<K> square = z * z;
  return multiply_add(z * square, horner(square, -0.333330959f, 0.198766366f), z);
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> atan(const Lanes<K>& x) {
  const Lanes<K> a = detail::at_most(detail::absolute(x), 0x1p60f);
  const auto index = detail::octave_quarter(detail::kArcFirst, detail::at_most(a, 15.0f));
  const Lanes<K> c = detail::look_up(detail::kArcTangent, index);
  const Lanes<K> rest = detail::small_arc((a - c) / detail::multiply_add(a, c, 1.0f));
  return detail::with_sign(detail::look_up(detail::kArc, index) + rest, x);
}

template <int K>
TENON_INLINE Lanes<K> atan2(const Lanes<K>& y, const Lanes<K>& x) {
  using namespace detail;
  constexpr float pi = 3.14159274f, half_pi = 1.57079637f;
  const Lanes<K> ax = absolute(x), ay = absolute(y);
  const Lanes<K> low = at_most(ax, ay), high = at_least(ay, ax);  // NaN in one if in either
  Lanes<K> q = low / high;
  if (any(is_nan(q))) [[unlikely]] {  // 0/0 counts as 0, inf/inf as 1
    q = choose(is_equal(low, high), choose(is_equal(high, 0.0f), 0.0f, spread(1.0f, q)), q);
  }
  const Lanes<K> sum = q + 0x1.8p19f, c = sum - 0x1.8p19f;  // multiples of 1/16
  const Lanes<K> rest = small_arc((q - c) / multiply_add(q, c, 1.0f));
  const Lanes<K> r = look_up(kArcOfSixteenths, lane_bits(sum)) + rest;
  const LaneMask<K> steep = is_less(ax, ay), left = sign_mask(x);
  const LaneMask<K> back =
      each([](__mmask16 a, __mmask16 b) { return __mmask16(a ^ b); }, steep, left);
  const Lanes<K> from = choose(steep, half_pi, choose(left, pi, Lanes<K>{}));
  return with_sign(from + choose(back, -r, r), y);
}

// Above 1/2 asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
template <int K>
TENON_INLINE Lanes<K> asin(const Lanes<K>& x) {
  using namespace detail;
  const Lanes<K> a = absolute(x), half = subtract_product(a, 0.5f, Lanes<K>{} + 0.5f);
  const LaneMask<K> large = is_less(half, 0.25f);
  const Lanes<K> square = choose(large, half, a * a), z = choose(large, root(half), a);
  const Lanes<K> series = horner(square, 0.166667521f, 0.0749530867f, 0.0454693027f, 0.0241838023f,
                                 0.0421602763f);  // 2^-27
  const Lanes<K> small = multiply_add(z * square, series, z);
  return with_sign(choose(large, subtract_product(small, 2.0f, Lanes<K>{} + 1.57079637f), small),
                   x);
}

// acos(a) / sqrt(1 - a), 2^-24.
template <int K>
TENON_INLINE Lanes<K> acos(const Lanes<K>& x) {
  using namespace detail;
  const Lanes<K> a = absolute(x);
  const Lanes<K> ratio = horner(a, 1.57079637f, -0.21460323f, 0.0890382901f, -0.0504916646f,
                                0.0317277834f, -0.0182411894f, 0.00746931229f, -0.00148214889f);
  const Lanes<K> angle = root(1.0f - a) * ratio;
  return choose(sign_mask(x), 3.14159274f - angle, angle);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
