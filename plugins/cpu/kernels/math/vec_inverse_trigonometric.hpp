// SPDX-License-Identifier: Apache-2.0
// atan, asin, acos and the angle of a point, of registers.
//
// Of floats, by a polynomial for each of 32 intervals; of doubles atan(a) = atan(c) + atan((a - c)
// / (1 + a c)) with c from a table, so that the second angle is small.
#pragma once

#include "math/inverse_trigonometric.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// Of atan in quarters of octaves of a + kArcShift, up to kArcEnd; 2^-26. Powers are of a itself.
inline constexpr float kArcShift = 0.4f, kArcEnd = 63.0f;
alignas(64) inline constexpr float kArc[6][32] = {
    {-0.087958395f, -0.038827445f, 0.32213578f,    0.4864899f,    0.33315924f,    0.61531085f,
     0.8783214f,    0.9994123f,    0.89783245f,    1.1476266f,    1.188091f,      1.2808744f,
     1.2344918f,    1.2934892f,    1.3367026f,     1.4212979f,    1.4014248f,     1.4327295f,
     1.4542449f,    1.4694755f,    0.0f,           0.0f,          0.0f,           3.0978322e-9f,
     1.5332326e-6f, 6.9064656e-5f, 0.00058853166f, 0.0011625672f, -0.0006451996f, -0.017342886f,
     -0.056168653f, -0.06630958f},
    {1.3953283f,    1.2827765f,   0.63043845f,  0.43950352f,  0.6907937f,   0.39137694f,
     0.17969908f,   0.11314201f,  0.19236039f,  0.06752319f,  0.058126383f, 0.029296791f,
     0.047284916f,  0.03212138f,  0.022873785f, 0.008133723f, 0.011952483f, 0.007942529f,
     0.0056600203f, 0.004277697f, 0.0f,         0.0f,         1.0f,         0.99999964f,
     0.9999391f,    0.9985234f,   0.991385f,    0.9854102f,   0.99884516f,  1.0969653f,
     1.2743769f,    1.3180054f},
    {-0.7014614f,
     -0.5983999f,
     -0.12606205f,
     -0.05105812f,
     -0.21290801f,
     -0.085268706f,
     -0.017761521f,
     -0.0052931355f,
     -0.029532924f,
     -0.0044856323f,
     -0.004290926f,
     -0.00082702894f,
     -0.003547241f,
     -0.0019853506f,
     -0.0011924343f,
     -0.00016356078f,
     -0.0004495089f,
     -0.00024355843f,
     -0.00014654032f,
     -9.630028e-5f,
     0.0f,
     0.0f,
     2.1328075e-9f,
     1.448538e-5f,
     0.0009811568f,
     0.0130133545f,
     0.05258034f,
     0.07745263f,
     0.037614536f,
     -0.19385701f,
     -0.5193622f,
     -0.5926051f},
    {0.21308255f,     0.16594824f,   -0.0053753196f, -0.013853009f,  0.03757033f,    0.010244443f,
     -0.00038961097f, -0.001096939f, 0.0025578225f,  3.520815e-5f,   0.00014524708f, -5.228499e-5f,
     0.00014959884f,  6.901156e-5f,  3.4961937e-5f,  -1.0042284e-6f, 9.499414e-6f,   4.19831e-6f,
     2.1330843e-6f,   1.2190928e-6f, 0.0f,           0.0f,           -0.33333382f,   -0.33362138f,
     -0.34145343f,    -0.39338014f,  -0.5040141f,    -0.5557579f,    -0.49686515f,   -0.2228083f,
     0.07693314f,     0.13730265f},
    {-0.036179747f,  -0.025417985f,  0.0057188263f,  0.004512194f,    -0.0035707748f,
     -0.0006325643f, 0.00019155045f, 0.00015412354f, -0.00011827491f, 9.2837245e-6f,
     -1.123647e-6f,  4.024842e-6f,   -3.3614485e-6f, -1.27879e-6f,    -5.465229e-7f,
     8.31934e-8f,    -1.0694599e-7f, -3.8567247e-8f, -1.6551036e-8f,  -8.228059e-9f,
     0.0f,           0.0f,           3.4132816e-5f,  0.0029853543f,   0.03543526f,
     0.14939573f,    0.305505f,      0.35927653f,    0.31589648f,     0.15303192f,
     0.014508577f,   -0.010027225f},
    {0.0026409873f,  0.001660152f,   -0.0006087991f, -0.00036167202f,
     0.00014221584f, 1.5270465e-5f,  -9.715387e-6f,  -5.768074e-6f,
     2.2791096e-6f,  -3.1213023e-7f, -3.113034e-8f,  -7.547303e-8f,
     3.1432883e-8f,  9.867275e-9f,   3.5581067e-9f,  -8.6016666e-10f,
     5.010831e-10f,  1.4750644e-10f, 5.3479585e-11f, 2.3130838e-11f,
     0.0f,           0.0f,           0.19919577f,    0.18637264f,
     0.13092177f,    0.0290791f,     -0.059866183f,  -0.08218465f,
     -0.06945658f,   -0.030590864f,  -0.0048906105f, -0.000945117f}};
// With pi/2 - atan(1/a), 2^-30.
template <int K>
TENON_INLINE FloatVecs<K> tail_atan(const FloatVecs<K>& x) {
  const auto z = 1.0f / absolute(x);
  const auto arc = multiply_add(z, (z * z - 3.0f) * 0.333333343f, kHalfPiHigh<float>);
  return with_sign(arc, x);
}

// Of atan around multiples of 1/31, up to 1; 2^-24.5. Powers are of the number itself.
alignas(64) inline constexpr float kArcOfRatio[4][32] = {
    {0.0f,           -1.726406e-8f,   -8.0248896e-7f,  -6.2997015e-6f, -2.6341526e-5f,
     -7.844508e-5f,  -0.00018840749f, -0.00038974482f, -0.0007217044f, -0.0012266584f,
     -0.0019465878f, -0.0029196742f,  -0.004176816f,   -0.0057387943f, -0.0076143364f,
     -0.009798373f,  -0.012275111f,   -0.014967591f,   -0.017955499f,  -0.021067603f,
     -0.024281804f,  -0.027532317f,   -0.030750148f,   -0.033694483f,  -0.036812074f,
     -0.039523426f,  -0.04156682f,    -0.044006836f,   -0.045626856f,  -0.0468035f,
     -0.047665544f,  -0.047873244f},
    {1.0f,       1.0000025f, 1.0000485f, 1.0002489f, 1.0007762f, 1.0018468f, 1.0036997f,
     1.0065734f, 1.0106833f, 1.0162022f, 1.0232452f, 1.0318604f, 1.0420244f, 1.0536444f,
     1.066565f,  1.0805746f, 1.0954374f, 1.1106241f, 1.1265129f, 1.1421629f, 1.1574984f,
     1.1722509f, 1.1861767f, 1.1983702f, 1.2107278f, 1.2210264f, 1.2285122f, 1.2371054f,
     1.2425929f, 1.2464464f, 1.2491739f, 1.2498128f},
    {-5.7522703e-7f, -0.00011986784f, -0.0010337234f, -0.003484838f, -0.008124201f, -0.015472324f,
     -0.025893118f,  -0.039579812f,   -0.05655319f,   -0.0766713f,   -0.099648684f, -0.1250826f,
     -0.15248336f,   -0.18130612f,    -0.2109831f,    -0.24094409f,  -0.2706796f,   -0.2992366f,
     -0.32740432f,   -0.3536411f,     -0.37803292f,   -0.40035343f,  -0.420444f,    -0.43727767f,
     -0.45360675f,   -0.4666468f,     -0.47578794f,   -0.48587638f,  -0.49207273f,  -0.49627945f,
     -0.4991563f,    -0.4998115f},
    {-0.33324957f,  -0.3313168f,  -0.32515007f,  -0.31509048f, -0.30143768f,  -0.284592f,
     -0.26503f,     -0.24327989f, -0.21989647f,  -0.19543672f, -0.170438f,    -0.14539969f,
     -0.12076904f,  -0.09693164f, -0.074204974f, -0.0528425f,  -0.033008702f, -0.015106662f,
     0.0015408185f, 0.016204374f, 0.029137911f,  0.040396053f, 0.05005836f,   0.057805326f,
     0.0649982f,    0.0705023f,   0.074223205f,  0.07817142f,  0.08050375f,   0.08203459f,
     0.08304612f,   0.083270065f}};
// atan(i/8) up to pi/4.
alignas(64) inline constexpr double kArcOfEighths[16] = {0.0,
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

// atan(z) of |z| <= 0.063, 2^-62.
template <int K>
TENON_INLINE DoubleVecs<K> small_arc(const DoubleVecs<K>& z) {
  const auto square = z * z;
  const auto series = horner(square, -0.3333333333333315, 0.19999999999340118, -0.14285713519575569,
                             0.1111072281965134, -0.09001492470140728);
  return multiply_add(z * square, series, z);
}

// atan(low / high) for 0 <= low <= high. With low = c high and no error c may be rough.
template <int K>
TENON_INLINE DoubleVecs<K> arc_of(const DoubleVecs<K>& low, const DoubleVecs<K>& high) {
  constexpr double round = kRound<double> / 8;
  const auto sum = multiply_add(low, reciprocal14(high), round), c = sum - round;
  const auto rest = small_arc(quotient(subtract_product(c, high, low), multiply_add(c, low, high)));
  return lookup(kArcOfEighths, as_bits(sum)) + rest;
}
template <int K>
TENON_INLINE FloatVecs<K> arc_of(const FloatVecs<K>& low, const FloatVecs<K>& high) {
  const auto rough = reciprocal14(high);
  const auto ratio =
      low * multiply_add(rough, subtract_product(high, rough, broadcast_like(1.0f, high)), rough);
  return piecewise(kArcOfRatio, as_bits(multiply_add(ratio, 31.0f, kRound<float>)), ratio);
}
// y - x where the mask is set, else x.
template <class V, int K>
TENON_INLINE Pack<V, K> subtract_from(ElementOf<V> y, const Pack<MaskOf<V>, K>& mask,
                                      const Pack<V, K>& x) {
  return each(
      [](MaskOf<V> m, V a, V b) {
        if constexpr (kIsSingle<V>)
          return V(_mm512_mask_sub_ps(a, m, b, a));
        else
          return V(_mm512_mask_sub_pd(a, m, b, a));
      },
      mask, x, broadcast_like(y, x));
}

// Where the quotient needs care or has none: NaN and numbers that are infinite, very large or
// small.
template <int K>
TENON_INLINE auto is_other_ratio(const FloatVecs<K>&, const FloatVecs<K>& high) {
  return is_other_size(high);
}
template <int K>
TENON_INLINE auto is_other_ratio(const DoubleVecs<K>& low, const DoubleVecs<K>& high) {
  return each([](__mmask8 a, __mmask8 b) { return static_cast<__mmask8>(a | b); },
              is_less(low, 0x1p-900), is_other_size(high));
}

// asin(z) / z of |z| <= 1/2 and its square, 2^-27 and 2^-59.8, less 1 and divided by the square.
template <int K>
TENON_INLINE FloatVecs<K> asin_series(const FloatVecs<K>& square) {
  return horner(square, 0.166667521f, 0.0749530867f, 0.0454693027f, 0.0241838023f, 0.0421602763f);
}
template <int K>
TENON_INLINE DoubleVecs<K> asin_series(const DoubleVecs<K>& square) {
  return horner(square, 0.16666666666666763, 0.07499999999970265, 0.04464285717511644,
                0.03038194268385142, 0.02237221565323116, 0.01735160022439929, 0.013980959821642509,
                0.011397789500416866, 0.010786452954607164, 0.003683329050303211,
                0.02176280457298634, -0.021076317737098494, 0.032676286900558134);
}
// asin(a) of a <= 1/2; of others, which `half` < 1/4 tells, it is pi/2 - 2 asin(sqrt(half)).
template <class V, int K>
TENON_INLINE Pack<V, K> half_less_half(const Pack<V, K>& a) {
  return subtract_product(a, 0.5f, broadcast_like(0.5f, a));
}
template <class V, int K>
TENON_INLINE Pack<V, K> arc_sine(const Pack<V, K>& a, const Pack<V, K>& half,
                                 const Pack<MaskOf<V>, K>& large) {
  const auto square = blend(large, half, a * a), z = blend(large, root(half), a);
  return multiply_add(z * square, asin_series(square), z);
}

}  // namespace detail

template <int K>
TENON_INLINE FloatVecs<K> atan(const FloatVecs<K>& x) {
  using namespace detail;
  const auto shifted = [](const auto& v) { return absolute(v) + kArcShift; };
  const auto near = piecewise(kArc, octave_part<2>(shifted(x)), absolute(x));
  return unless_beyond(
      shifted, kArcShift + kArcEnd, with_sign(near, x), [](const auto& v) { return tail_atan(v); },
      x);
}
template <int K>
TENON_INLINE DoubleVecs<K> atan(const DoubleVecs<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 0x1p60);
  const auto steep = is_less(broadcast_like(1.0, x), a);
  const auto r = arc_of(blend(steep, 1.0, a), blend(steep, a, 1.0));
  return with_sign(blend(steep, kHalfPiHigh<double> - r, r), x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> atan2(const Pack<V, K>& y, const Pack<V, K>& x) {
  using namespace detail;
  using T = ElementOf<V>;
  const auto ax = absolute(x), ay = absolute(y), low = at_most(ax, ay), high = at_least(ay, ax);
  const auto arc = subtract_from(kHalfPiHigh<T>, is_less(ax, ay), arc_of(low, high));
  const auto angle = subtract_from(2 * kHalfPiHigh<T>, sign_mask(x), arc);
  return unless(
      is_other_ratio(low, high), with_sign(angle, y), [](T a, T b) { return math::atan2(a, b); }, y,
      x);
}

template <class V, int K>
TENON_INLINE Pack<V, K> asin(const Pack<V, K>& x) {
  using namespace detail;
  using T = ElementOf<V>;
  const auto a = absolute(x), half = half_less_half(a);
  const auto large = is_less(half, T(0.25));
  const auto small = arc_sine(a, half, large);
  return with_sign(
      blend(large, subtract_product(small, T(2), broadcast_like(kHalfPiHigh<T>, x)), small), x);
}

// acos(a) / sqrt(1 - a), 2^-24.
template <int K>
TENON_INLINE FloatVecs<K> acos(const FloatVecs<K>& x) {
  using namespace detail;
  const auto a = absolute(x);
  const auto ratio = horner(a, 1.57079637f, -0.21460323f, 0.0890382901f, -0.0504916646f,
                            0.0317277834f, -0.0182411894f, 0.00746931229f, -0.00148214889f);
  const auto angle = root(1.0f - a) * ratio;
  return blend(sign_mask(x), 3.14159274f - angle, angle);
}
// pi/2 - asin(x)
template <int K>
TENON_INLINE DoubleVecs<K> acos(const DoubleVecs<K>& x) {
  using namespace detail;
  constexpr double half_pi = kHalfPiHigh<double>;
  const auto a = absolute(x), half = half_less_half(a);
  const auto large = is_less(half, 0.25);
  const auto small = arc_sine(a, half, large), twice = small + small;
  const auto end = blend(sign_mask(x), 2 * half_pi - twice, twice);
  return blend(large, end, half_pi - with_sign(small, x));
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
