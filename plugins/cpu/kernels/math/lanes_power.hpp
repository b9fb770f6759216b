// SPDX-License-Identifier: Apache-2.0
// Powers and roots of registers.
//
// x^y = 2^(y log2(x)), with the logarithm by a table as in lanes_logarithm.hpp. y multiplies its
// error: doubles have it in two parts; of floats, for large y, there is the function of numbers.
#pragma once

#include "math/lanes_exponential.hpp"
#include "math/lanes_logarithm.hpp"
#include "math/power.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// c of intervals of mantissas, chosen such that sums of log2(c), or of its first part, and an
// exponent are exact. Products of the mantissa and 1 / c are exact in two doubles in any case: with
// few bits 1 / c leaves more of the logarithm to its table.
template <Float T>
struct PowerTable;
template <>
struct PowerTable<float> {
  alignas(64) static constexpr float kInverse[32] = {
      // 1 / c
      1.0f,         0.954862475f, 0.928431928f, 0.913123071f, 0.877401948f, 0.856723309f,
      0.82906276f,  0.812817872f, 0.790561557f, 0.785327971f, 0.762153924f, 0.739976704f,
      0.719806254f, 0.707181573f, 0.688480079f, 0.677693784f, 0.659479082f, 0.650459826f,
      0.63364023f,  0.619204104f, 0.610219121f, 0.606224298f, 0.592036963f, 0.579681814f,
      0.567518473f, 0.56775862f,  0.54857415f,  0.538952708f, 0.530857027f, 0.517896414f,
      0.516588926f, 0.5f};
  alignas(64) static constexpr float kLog2[32] = {
      // nearly multiples of 2^-16
      0.0f,         0.0666351318f, 0.107131958f, 0.131118774f, 0.188690186f, 0.223098755f,
      0.270446777f, 0.298995972f,  0.339050293f, 0.348632812f, 0.391845703f, 0.434448242f,
      0.474319458f, 0.499847412f,  0.538513184f, 0.561294556f, 0.600601196f, 0.62046814f,
      0.65826416f,  0.691513062f,  0.712600708f, 0.722076416f, 0.756240845f, 0.78666687f,
      0.817260742f, 0.816650391f,  0.866241455f, 0.891769409f, 0.913604736f, 0.949264526f,
      0.952911377f, 1.0f};
  // Up to this exponent an error of 2^-29 of the logarithm may be multiplied by it.
  static constexpr float kLimit = 32.0f;
};
template <>
struct PowerTable<double> {
  alignas(64) static constexpr double kInverse[16] = {
      1.0,         0.9140625,   0.865234375, 0.8203125,   0.78125,     0.744140625,
      0.7109375,   0.681640625, 0.65234375,  0.626953125, 0.603515625, 0.58203125,
      0.560546875, 0.54296875,  0.525390625, 0.5};
  alignas(64) static constexpr double kLog2[16] = {// multiples of 2^-40
                                                   0.0,
                                                   0.1296352804165508,
                                                   0.20883711144506378,
                                                   0.2857544823336866,
                                                   0.3561438102251486,
                                                   0.4263528125065932,
                                                   0.4922053598011189,
                                                   0.5529167737904572,
                                                   0.6162957075257509,
                                                   0.6735705128776317,
                                                   0.7285369720957533,
                                                   0.7808314795374827,
                                                   0.8350930733240602,
                                                   0.8810589272761717,
                                                   0.9285376374436964,
                                                   1.0};
  alignas(64) static constexpr double kLog2Low[16] = {0.0,
                                                      4.466345291637466e-14,
                                                      -8.20902802038674e-14,
                                                      1.9075301583480665e-13,
                                                      1.266771905137232e-13,
                                                      8.478351458871054e-14,
                                                      1.8482976480732484e-13,
                                                      -1.0945834064222337e-13,
                                                      1.9686233709301554e-13,
                                                      6.517101528203913e-14,
                                                      -1.2786158699659166e-13,
                                                      3.5576393345119293e-13,
                                                      2.5195723462991853e-13,
                                                      3.2082514048528274e-13,
                                                      -3.2058435962162773e-13,
                                                      0.0};
  // Products with larger exponents would round the fraction of the power away.
  static constexpr double kLimit = 0x1p20;
};

// Of positive x, zero and infinity, y up to kLimit and not both zero; NaN of negative x and of NaN.
// Here log2(x) = whole + rest, where |rest| < 1/20 has an error of 2^-29.
template <int K>
TENON_INLINE Lanes<K> small_power(const Lanes<K>& x, const Lanes<K>& y) {
  using Table = PowerTable<float>;
  const auto m = log_mantissa(x);
  const auto index = interval_of(m);
  const auto r = multiply_add(m, look_up(Table::kInverse, index), -1.0f);
  const auto whole = exponent_of(x) + look_up(Table::kLog2, index);
  const auto rest =
      r * horner(r, 1.44269502f, -0.721350074f, 0.481056303f, -0.353966206f);  // 2^-31.8
  // y log2(x) is a multiple of 1/32 and f, which is NaN of infinities.
  const auto sum = multiply_add(y, rest, y * whole) + ExpTable<float>::kRound;
  const auto power = sum - ExpTable<float>::kRound;
  const auto f = at_most(1.0f, multiply_add(y, rest, multiply_subtract(y, whole, power)));
  const auto fraction = look_up(ExpTable<float>::kFractions, lane_bits(sum));
  const auto slope = multiply_add(f, 0.240228862f, 0.693157346f);  // (2^f - 1) / f, 2^-24.2
  return scale_by(multiply_add(fraction * f, slope, fraction), power);
}
// log2(1 + r) = r (1 / ln(2) - r / (2 ln(2)) + r^2 p(r)): the first two terms, r and the products
// in two parts, 2^-62.
template <int K>
TENON_INLINE DoubleLanes<K> small_power(const DoubleLanes<K>& x, const DoubleLanes<K>& y) {
  using Table = PowerTable<double>;
  constexpr double first = 1.4426950408889634, first_low = 2.0355273740931033e-17;
  const auto m = log_mantissa(x);
  const auto index = interval_of(m);
  const auto inverse = look_up(Table::kInverse, index), near = m * inverse;
  const auto r = near - 1.0, r_low = multiply_subtract(m, inverse, near);
  const auto p =
      r * r *
      horner(r, 0.4808983469629877, -0.36067376022224673, 0.28853900817841033, -0.2404491734592276,
             0.2060992896801866, -0.18033689386838578, 0.16030168577673298, -0.14428987453574849,
             0.13034459741773372, -0.10230554803972587);
  const auto second = r * (-0.5 * first);
  const auto second_low =
      multiply_add(r_low, -0.5 * first,
                   multiply_add(r, -0.5 * first_low, multiply_subtract(r, -0.5 * first, second)));
  const auto terms = second + p, terms_low = (p - (terms - second)) + second_low;
  const auto slope = terms + first, slope_low = (terms - (slope - first)) + terms_low + first_low;
  const auto part = r * slope;
  const auto part_low =
      multiply_add(r, slope_low, multiply_add(r_low, slope, multiply_subtract(r, slope, part)));
  const auto whole = exponent_of(x) + look_up(Table::kLog2, index), log = whole + part;
  const auto log_low = (part - (log - whole)) + (part_low + look_up(Table::kLog2Low, index));
  // y log2(x) is a multiple of 1/16 and f, which is NaN of infinities.
  const auto product = y * log;
  const auto sum = product + ExpTable<double>::kRound, power = sum - ExpTable<double>::kRound;
  const auto product_low = multiply_add(y, log_low, multiply_subtract(y, log, product));
  const auto f = at_most(1.0, (product - power) + product_low);
  const auto fraction = look_up(ExpTable<double>::kFractions, lane_bits(sum));
  return scale_by(multiply_add(fraction * f, exp2_slope(f), fraction), power);
}

// Bases that are NaN or have a sign, -0 too; exponents that are 0 (of 0 and infinity as well),
// beyond kLimit or NaN.
template <class V>
TENON_INLINE MaskOf<V> is_other_power(V x, V y) {
  using T = ElementOf<V>;
  constexpr int nan_or_sign = 0x01 | 0x04 | 0x10 | 0x40 | 0x80;
  // Without sign, and 0 becomes the largest.
  const __m512i size = __m512i(2 * WholeOf<V>(y) - 1);
  constexpr auto most = 2 * bits_of(PowerTable<T>::kLimit) - 1;
  if constexpr (kIsSingle<V>)
    return static_cast<__mmask16>(_mm512_fpclass_ps_mask(x, nan_or_sign) |
                                  _mm512_cmpgt_epu32_mask(size, _mm512_set1_epi32(int(most))));
  else
    return static_cast<__mmask8>(_mm512_fpclass_pd_mask(x, nan_or_sign) |
                                 _mm512_cmpgt_epu64_mask(size, _mm512_set1_epi64(int64_t(most))));
}

// c of intervals of mantissas, chosen such that cbrt(c) is nearly a float, or a double to 62 bits.
template <Float T>
struct CubeRootTable;
template <>
struct CubeRootTable<float> {
  alignas(64) static constexpr float kInverse[32] = {
      // 1 / c
      0.98792237f,  0.956936955f, 0.928246737f, 0.901804745f, 0.876088619f, 0.856248021f,
      0.832631528f, 0.810571194f, 0.792244971f, 0.773461461f, 0.751710355f, 0.736897171f,
      0.718372881f, 0.70300889f,  0.686556458f, 0.673489809f, 0.660483718f, 0.646083474f,
      0.633894622f, 0.620933712f, 0.610731244f, 0.59875685f,  0.58694756f,  0.577601075f,
      0.566525578f, 0.555904031f, 0.546395659f, 0.537065744f, 0.529444575f, 0.519696653f,
      0.511594892f, 0.50346595f};
  alignas(64) static constexpr float kRoot[32] = {
      // cbrt(c)
      1.0040586f,  1.01478076f, 1.0251298f,  1.03505278f, 1.04508269f, 1.05309319f, 1.06295705f,
      1.07251394f, 1.08072078f, 1.08939934f, 1.09980702f, 1.10712767f, 1.11656332f, 1.1246388f,
      1.13355148f, 1.1408354f,  1.14827514f, 1.15674365f, 1.16411078f, 1.17215466f, 1.17864573f,
      1.18645108f, 1.19435537f, 1.20076311f, 1.20853758f, 1.21618617f, 1.22320032f, 1.23024285f,
      1.23611772f, 1.24379849f, 1.25032985f, 1.25702322f};
  static constexpr float kSeries[] = {0.333344787f, -0.11112f};  // (cbrt(1 + r) - 1) / r, 2^-23.7
};
template <>
struct CubeRootTable<double> {
  alignas(64) static constexpr double kInverse[16] = {
      0.9708971626618329, 0.9150442422605028, 0.8652581220481828, 0.8208956367091129,
      0.7809080668858119, 0.744730586097354,  0.7118446176702325, 0.6810243026069972,
      0.6536574840545654, 0.6275788703331582, 0.6038065853281918, 0.5822629903359388,
      0.5619436155986316, 0.5425847437189913, 0.5243738810221353, 0.5079787546588529};
  alignas(64) static constexpr double kRoot[16] = {
      1.009893528863831,  1.0300365505259166, 1.049425078427533,  1.0679986020888323,
      1.0859254970152095, 1.103232218659705,  1.1199662396300896, 1.1366125925290316,
      1.1522585003902288, 1.1680028315789928, 1.1831343176792066, 1.1975498605377854,
      1.2118134064808055, 1.2260574123106733, 1.2400893645800986, 1.2532897379839607};
  static constexpr double kSeries[] = {
      // 2^-58.6
      0.33333333333333326, -0.11111111111111698,  0.06172839506423106, -0.04115226331115952,
      0.03017831274089758, -0.023472193114229527, 0.01902544440577068, -0.015728035731918857};
};
// cbrt(2^i) for i = 0, 1 and, modulo 16, -1
template <Float T>
alignas(64) inline constexpr T kCbrtPower[16] = {T(1), T(1.2599210498948732),
                                                 T(0), T(0),
                                                 T(0), T(0),
                                                 T(0), T(0),
                                                 T(0), T(0),
                                                 T(0), T(0),
                                                 T(0), T(0),
                                                 T(0), T(0.7937005259840998)};

}  // namespace detail

template <class V, int K>
TENON_INLINE Pack<V, K> pow(const Pack<V, K>& x, const Pack<V, K>& y) {
  using namespace detail;
  using T = ElementOf<V>;
  const auto others = each([](V base, V exponent) { return is_other_power(base, exponent); }, x, y);
  return unless(
      others, small_power(x, y), [](T a, T b) { return math::pow(a, b); }, x, y);
}

// Zero, infinity and NaN come out of the exponents.
template <class V, int K>
TENON_INLINE Pack<V, K> cbrt(const Pack<V, K>& x) {
  using namespace detail;
  using T = ElementOf<V>;
  using Table = CubeRootTable<T>;
  const auto exponent = exponent_of(x), m = mantissa(x);
  const auto third = multiply_add(exponent, static_cast<T>(1.0 / 3), kRound<T>) - kRound<T>;
  const auto remainder = subtract_product(third, T(3), exponent + kRound<T>);
  const auto index = interval_of(m);
  const auto c = look_up(kCbrtPower<T>, lane_bits(remainder)) * look_up(Table::kRoot, index);
  const auto r = multiply_add(m, look_up(Table::kInverse, index), T(-1));
  return with_sign(scale_by(multiply_add(c, r * horner(r, Table::kSeries), c), third), x);
}

namespace detail {

// Rounded to nearest, as the instruction does in more than twice the time: the last step adds what
// a root lacks by its square. Before it is rounded, the sum is nearer to sqrt(x) than any number
// halfway between two neighbours: of floats that holds for all of them; of doubles it errs by less
// than 2^-50 ulp, and the few roots that are as near to such a number are tests.
template <class V, int K>
TENON_INLINE Pack<V, K> nearest_root(const Pack<V, K>& x) {
  const auto rough = rough_inverse_root(x), start = x * rough, half = rough * 0.5f;
  const auto last = [&x](const auto& near, const auto& half_inverse) {
    return multiply_add(subtract_product(near, near, x), half_inverse, near);
  };
  const auto lost = subtract_product(start, half, spread(0.5f, x));
  const auto better = multiply_add(start, lost, start),
             half_inverse = multiply_add(half, lost, half);
  if constexpr (kIsSingle<V>) {
    return last(better, half_inverse);
  } else {
    const auto rest = subtract_product(better, half_inverse, spread(0.5, x));
    return last(multiply_add(better, rest, better), multiply_add(half_inverse, rest, half_inverse));
  }
}

// The root of a register by the instruction, where the mask is set.
template <class V>
TENON_INLINE V with_exact_root(MaskOf<V> mask, V result, V x) {
  if constexpr (kIsSingle<V>)
    return _mm512_mask_sqrt_ps(result, mask, x);
  else
    return _mm512_mask_sqrt_pd(result, mask, x);
}

}  // namespace detail

template <class V, int K>
TENON_INLINE Pack<V, K> sqrt(const Pack<V, K>& x) {
  using namespace detail;
  return corrected(
      is_other_size(x), nearest_root(x),
      [](MaskOf<V> mask, V result, V a) { return with_exact_root(mask, result, a); }, x);
}
template <class V, int K>
TENON_INLINE Pack<V, K> half_power(const Pack<V, K>& x) {
  using namespace detail;
  return corrected(
      is_other_size(x), nearest_root(x),
      [](MaskOf<V> mask, V result, V a) {
        constexpr ElementOf<V> infinity = kInfinity<ElementOf<V>>;
        return with_exact_root(mask, result, V(a == -infinity ? infinity + V{} : a + 0));
      },
      x);
}

// With steps of Newton's iteration. Of zero and infinity the rough value is right.
template <class V, int K>
TENON_INLINE Pack<V, K> rsqrt(const Pack<V, K>& x) {
  using namespace detail;
  const auto better = [&x](const auto& rough) {
    const auto lost = at_most(1, subtract_product(x * rough, rough, spread(1, x)));
    return multiply_add(rough * 0.5f, lost, rough);
  };
  const auto once = better(rough_inverse_root(x));
  if constexpr (kIsSingle<V>)
    return once;
  else
    return better(once);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
