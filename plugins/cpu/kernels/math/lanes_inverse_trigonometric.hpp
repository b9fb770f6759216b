// SPDX-License-Identifier: Apache-2.0
// atan, asin, acos and the angle of a point, of registers.
//
// atan(a) = atan(c) + atan((a - c) / (1 + a c)) with c from a table, so that the second angle is
// small: a quotient takes no more than three products here.
#pragma once

#include "math/inverse_trigonometric.hpp"
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

// atan(i/16) of floats and atan(i/8) of doubles, up to pi/4
template <Float T>
struct ArcTable;
template <>
struct ArcTable<float> {
  alignas(64) static constexpr float kArcs[32] = {
      0.0f,         0.062418811f, 0.124354996f, 0.185347944f, 0.244978666f, 0.302884877f,
      0.358770669f, 0.412410438f, 0.463647604f, 0.512389481f, 0.558599293f, 0.602287352f,
      0.643501103f, 0.682316542f, 0.718829989f, 0.753151298f, 0.785398185f, 0.785398185f,
      0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f,
      0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f, 0.785398185f,
      0.785398185f, 0.785398185f};
  static constexpr float kRound = 0x1.8p19f;
  static constexpr float kLow = 0x1p-96f, kHigh = 0x1p120f;
};
template <>
struct ArcTable<double> {
  alignas(64) static constexpr double kArcs[16] = {0.0,
                                                   0.12435499454676144,
                                                   0.24497866312686414,
                                                   0.35877067027057225,
                                                   0.4636476090008061,
                                                   0.5585993153435624,
                                                   0.6435011087932844,
                                                   0.7188299996216245,
                                                   0.7853981633974483,
                                                   0.7853981633974483,
                                                   0.7853981633974483,
                                                   0.7853981633974483,
                                                   0.7853981633974483,
                                                   0.7853981633974483,
                                                   0.7853981633974483,
                                                   0.7853981633974483};
  static constexpr double kRound = 0x1.8p49;
  static constexpr double kLow = 0x1p-900, kHigh = 0x1p900;
};

// atan(z) of |z| <= 0.079, 2^-29, and of |z| <= 0.063, 2^-62.
template <int K>
TENON_INLINE Lanes<K> small_arc(const Lanes<K>& z) {
  const auto square = z * z;
  return multiply_add(z * square, horner(square, -0.333330959f, 0.198766366f), z);
}
template <int K>
TENON_INLINE DoubleLanes<K> small_arc(const DoubleLanes<K>& z) {
  const auto square = z * z;
  const auto series = horner(square, -0.3333333333333315, 0.19999999999340118, -0.14285713519575569,
                             0.1111072281965134, -0.09001492470140728);
  return multiply_add(z * square, series, z);
}

// atan(low / high) for 0 <= low <= high. With low = c high and no error c may be rough.
template <class V, int K>
TENON_INLINE Pack<V, K> arc_of(const Pack<V, K>& low, const Pack<V, K>& high) {
  using Table = ArcTable<ElementOf<V>>;
  const auto sum = multiply_add(low, rough_inverse(high), Table::kRound);
  const auto c = sum - Table::kRound;
  const auto rest = small_arc(quotient(subtract_product(c, high, low), multiply_add(c, low, high)));
  return look_up(Table::kArcs, lane_bits(sum)) + rest;
}

// asin(z) / z of |z| <= 1/2 and its square, 2^-27 and 2^-59.8, less 1 and divided by the square.
template <int K>
TENON_INLINE Lanes<K> asin_series(const Lanes<K>& square) {
  return horner(square, 0.166667521f, 0.0749530867f, 0.0454693027f, 0.0241838023f, 0.0421602763f);
}
template <int K>
TENON_INLINE DoubleLanes<K> asin_series(const DoubleLanes<K>& square) {
  return horner(square, 0.16666666666666763, 0.07499999999970265, 0.04464285717511644,
                0.03038194268385142, 0.02237221565323116, 0.01735160022439929, 0.013980959821642509,
                0.011397789500416866, 0.010786452954607164, 0.003683329050303211,
                0.02176280457298634, -0.021076317737098494, 0.032676286900558134);
}
// asin(a) of a <= 1/2; of others, which `half` < 1/4 tells, it is pi/2 - 2 asin(sqrt(half)).
template <class V, int K>
TENON_INLINE Pack<V, K> half_less_half(const Pack<V, K>& a) {
  return subtract_product(a, 0.5f, spread(0.5f, a));
}
template <class V, int K>
TENON_INLINE Pack<V, K> arc_sine(const Pack<V, K>& a, const Pack<V, K>& half,
                                 const Pack<MaskOf<V>, K>& large) {
  const auto square = choose(large, half, a * a), z = choose(large, root(half), a);
  return multiply_add(z * square, asin_series(square), z);
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> atan(const Lanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 0x1p60f);
  const auto index = octave_quarter(kArcFirst, at_most(a, 15.0f));
  const auto c = look_up(kArcTangent, index);
  const auto rest = small_arc(quotient(a - c, multiply_add(a, c, 1.0f)));
  return with_sign(look_up(kArc, index) + rest, x);
}
template <int K>
TENON_INLINE DoubleLanes<K> atan(const DoubleLanes<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 0x1p60);
  const auto steep = is_less(spread(1.0, x), a);
  const auto r = arc_of(choose(steep, 1.0, a), choose(steep, a, 1.0));
  return with_sign(choose(steep, kHalfPiHigh<double> - r, r), x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> atan2(const Pack<V, K>& y, const Pack<V, K>& x) {
  using namespace detail;
  using T = ElementOf<V>;
  using Mask = MaskOf<V>;
  constexpr T half_pi = kHalfPiHigh<T>;
  const auto ax = absolute(x), ay = absolute(y);
  auto low = at_most(ax, ay), high = at_least(ay, ax);  // NaN in one if in either
  const auto others =
      each([](Mask a, Mask b) { return Mask(a | b); }, is_less(low, ArcTable<T>::kLow),
           is_less(spread(ArcTable<T>::kHigh, x), high));
  if (any(others)) [[unlikely]] {  // 0/0 counts as 0, inf/inf as 1
    const auto whole = choose(is_equal(high, T(0)), T(0), spread(T(1), x));
    low = choose(others, choose(is_equal(low, high), whole, low / high), low);
    high = choose(others, T(1), high);
  }
  const auto r = arc_of(low, high);
  const auto steep = is_less(ax, ay), left = sign_mask(x);
  const auto back = each([](Mask a, Mask b) { return Mask(a ^ b); }, steep, left);
  const auto from = choose(steep, half_pi, choose(left, 2 * half_pi, Pack<V, K>{}));
  return with_sign(from + choose(back, -r, r), y);
}

template <class V, int K>
TENON_INLINE Pack<V, K> asin(const Pack<V, K>& x) {
  using namespace detail;
  using T = ElementOf<V>;
  const auto a = absolute(x), half = half_less_half(a);
  const auto large = is_less(half, T(0.25));
  const auto small = arc_sine(a, half, large);
  return with_sign(choose(large, subtract_product(small, T(2), spread(kHalfPiHigh<T>, x)), small),
                   x);
}

// acos(a) / sqrt(1 - a), 2^-24.
template <int K>
TENON_INLINE Lanes<K> acos(const Lanes<K>& x) {
  using namespace detail;
  const auto a = absolute(x);
  const auto ratio = horner(a, 1.57079637f, -0.21460323f, 0.0890382901f, -0.0504916646f,
                            0.0317277834f, -0.0182411894f, 0.00746931229f, -0.00148214889f);
  const auto angle = root(1.0f - a) * ratio;
  return choose(sign_mask(x), 3.14159274f - angle, angle);
}
// pi/2 - asin(x)
template <int K>
TENON_INLINE DoubleLanes<K> acos(const DoubleLanes<K>& x) {
  using namespace detail;
  constexpr double half_pi = kHalfPiHigh<double>;
  const auto a = absolute(x), half = half_less_half(a);
  const auto large = is_less(half, 0.25);
  const auto small = arc_sine(a, half, large), twice = small + small;
  const auto end = choose(sign_mask(x), 2 * half_pi - twice, twice);
  return choose(large, end, half_pi - with_sign(small, x));
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
