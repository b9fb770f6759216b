// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan of registers.
//
// sin and cos are reduced modulo pi, not pi/2: one polynomial for half a turn is shorter than the
// two for a quarter of it. The parts of pi are rounded down, which keeps the signs of zeros.
#pragma once

#include "math/trigonometric.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
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
TENON_INLINE FloatVecs<K> sin_ratio(const FloatVecs<K>& s) {
  return horner(s, 1.0f, -0.166666597f, 0.00833306834f, -0.000198096546f, 2.60572824e-06f);
}
template <int K>
TENON_INLINE DoubleVecs<K> sin_ratio(const DoubleVecs<K>& s) {
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

// Of tan: sines and cosines of multiples of pi/N, of which N make half a turn. The zeros are such
// that sums with them keep the sign of zero.
template <Float T>
struct TanTable;
template <>
struct TanTable<float> {
  alignas(64) static constexpr float kSin[32] = {
      -0.0f,       0.09801714f, 0.19509032f, 0.29028466f, 0.38268343f, 0.47139674f, 0.55557024f,
      0.6343933f,  0.70710677f, 0.77301043f, 0.8314696f,  0.8819213f,  0.9238795f,  0.95694035f,
      0.98078525f, 0.9951847f,  1.0f,        0.9951847f,  0.98078525f, 0.95694035f, 0.9238795f,
      0.8819213f,  0.8314696f,  0.77301043f, 0.70710677f, 0.6343933f,  0.55557024f, 0.47139674f,
      0.38268343f, 0.29028466f, 0.19509032f, 0.09801714f};
  alignas(64) static constexpr float kCos[32] = {
      1.0f,         0.9951847f,   0.98078525f,  0.95694035f,  0.9238795f,   0.8819213f,
      0.8314696f,   0.77301043f,  0.70710677f,  0.6343933f,   0.55557024f,  0.47139674f,
      0.38268343f,  0.29028466f,  0.19509032f,  0.09801714f,  0.0f,         -0.09801714f,
      -0.19509032f, -0.29028466f, -0.38268343f, -0.47139674f, -0.55557024f, -0.6343933f,
      -0.70710677f, -0.77301043f, -0.8314696f,  -0.8819213f,  -0.9238795f,  -0.95694035f,
      -0.98078525f, -0.9951847f};
  // (tan(r) / r - 1) / r^2 of r^2 for |r| <= pi/64, 2^-31 of tan
  static constexpr float kSeries[] = {0.3333333f, 0.1334635f};
};
template <>
struct TanTable<double> {
  alignas(64) static constexpr double kSin[16] = {-0.0,
                                                  0.19509032201612828,
                                                  0.3826834323650898,
                                                  0.5555702330196022,
                                                  0.7071067811865476,
                                                  0.8314696123025452,
                                                  0.9238795325112867,
                                                  0.9807852804032304,
                                                  1.0,
                                                  0.9807852804032304,
                                                  0.9238795325112867,
                                                  0.8314696123025452,
                                                  0.7071067811865476,
                                                  0.5555702330196022,
                                                  0.3826834323650898,
                                                  0.19509032201612828};
  alignas(64) static constexpr double kCos[16] = {1.0,
                                                  0.9807852804032304,
                                                  0.9238795325112867,
                                                  0.8314696123025452,
                                                  0.7071067811865476,
                                                  0.5555702330196022,
                                                  0.3826834323650898,
                                                  0.19509032201612828,
                                                  0.0,
                                                  -0.19509032201612828,
                                                  -0.3826834323650898,
                                                  -0.5555702330196022,
                                                  -0.7071067811865476,
                                                  -0.8314696123025452,
                                                  -0.9238795325112867,
                                                  -0.9807852804032304};
  // |r| <= pi/32, 2^-55.7
  static constexpr double kSeries[] = {0.3333333333333339, 0.1333333333302741, 0.053968256505939866,
                                       0.02186875213364183, 0.008950360276072607};
};
template <Float T>
inline constexpr T kTanSteps = 128 / sizeof(T);
// The number of pi/N that is nearest to x, in the low bits of a sum.
template <class V, int K>
TENON_INLINE Pack<V, K> tan_steps(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  return multiply_add(x, static_cast<T>(kTanSteps<T> * 0.3183098861837907), kRound<T>);
}
// x / y, 2 ulp.
template <int K>
TENON_INLINE FloatVecs<K> near_quotient(const FloatVecs<K>& x, const FloatVecs<K>& y) {
  const auto rough = reciprocal14(y), near = x * rough;
  return multiply_add(near, subtract_product(y, rough, broadcast_like(1.0f, y)), near);
}
template <int K>
TENON_INLINE DoubleVecs<K> near_quotient(const DoubleVecs<K>& x, const DoubleVecs<K>& y) {
  return quotient(x, y);
}
// With t = tan(r), (sin(c) + cos(c) t) / (cos(c) - sin(c) t) for the multiple c next to x = c + r.
template <class V, int K>
TENON_INLINE Pack<V, K> small_tan(const Pack<V, K>& x) {
  using T = ElementOf<V>;
  using Table = TanTable<T>;
  const auto steps = tan_steps(x);
  const auto r = less_half_turns(x, steps - kRound<T>, 1 / kTanSteps<T>), s = r * r;
  const auto t = multiply_add(r * s, horner(s, Table::kSeries), r);
  const auto sine = lookup(Table::kSin, as_bits(steps));
  const auto cosine = lookup(Table::kCos, as_bits(steps));
  return near_quotient(multiply_add(cosine, t, sine), subtract_product(sine, t, cosine));
}

// FloatVecs too large for these reductions.
template <class V, int K>
TENON_INLINE auto is_large_angle(const Pack<V, K>& x) {
  return is_less(broadcast_like(kAngleLimit<ElementOf<V>>, x), absolute(x));
}
TENON_INLINE float sin_of_large(float x) { return sin_of(reduce_large(x)); }
TENON_INLINE float cos_of_large(float x) { return cos_of(reduce_large(x)); }
TENON_INLINE float tan_of_large(float x) { return tan_of(reduce_large(x)); }
inline double sin_of_large(double x) { return std::sin(x); }
inline double cos_of_large(double x) { return std::cos(x); }
inline double tan_of_large(double x) { return std::tan(x); }

}  // namespace detail

#define TENON_VEC_ANGLE(NAME)                               \
  template <class V, int K>                                 \
  TENON_INLINE Pack<V, K> NAME(const Pack<V, K>& x) {       \
    using T = detail::ElementOf<V>;                         \
    return detail::unless(                                  \
        detail::is_large_angle(x), detail::small_##NAME(x), \
        [](T a) { return detail::NAME##_of_large(a); }, x); \
  }
TENON_VEC_ANGLE(sin)
TENON_VEC_ANGLE(cos)
#undef TENON_VEC_ANGLE

template <int K>
TENON_INLINE FloatVecs<K> tan(const FloatVecs<K>& x) {
  using namespace detail;
  const auto whole = [](const auto& v) { return tan_steps(v) - kRound<float>; };
  constexpr float limit = 10.0f * kAngleLimit<float>;
  return unless_beyond(
      whole, limit, small_tan(x),
      [](const FloatVecs<1>& v) {
        return FloatVecs<1>{scalar_fallback([](float a) { return tan_of_large(a); }, kAll<Floats>,
                                            Floats{}, v.at[0])};
      },
      x);
}
template <int K>
TENON_INLINE DoubleVecs<K> tan(const DoubleVecs<K>& x) {
  using namespace detail;
  return unless(
      is_large_angle(x), small_tan(x), [](double a) { return tan_of_large(a); }, x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
