// SPDX-License-Identifier: Apache-2.0
// Powers and roots of sixteen floats.
//
// x^y = 2^(y log2(x)), with the logarithm by a table as in lanes_logarithm.hpp. y multiplies its
// error: for large y, and for special values, there is the function of numbers.
#pragma once

#include "math/lanes_exponential.hpp"
#include "math/lanes_logarithm.hpp"
#include "math/power.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// c of 32 intervals of mantissas, chosen such that log2(c) is nearly a multiple of 2^-16: sums of
// it and an exponent are exact.
alignas(64) inline constexpr float kPowerInverse[32] = {  // 1 / c
    1.0f,         0.954862475f, 0.928431928f, 0.913123071f, 0.877401948f, 0.856723309f,
    0.82906276f,  0.812817872f, 0.790561557f, 0.785327971f, 0.762153924f, 0.739976704f,
    0.719806254f, 0.707181573f, 0.688480079f, 0.677693784f, 0.659479082f, 0.650459826f,
    0.63364023f,  0.619204104f, 0.610219121f, 0.606224298f, 0.592036963f, 0.579681814f,
    0.567518473f, 0.56775862f,  0.54857415f,  0.538952708f, 0.530857027f, 0.517896414f,
    0.516588926f, 0.5f};
alignas(64) inline constexpr float kPowerLog2[32] = {
    0.0f,         0.0666351318f, 0.107131958f, 0.131118774f, 0.188690186f, 0.223098755f,
    0.270446777f, 0.298995972f,  0.339050293f, 0.348632812f, 0.391845703f, 0.434448242f,
    0.474319458f, 0.499847412f,  0.538513184f, 0.561294556f, 0.600601196f, 0.62046814f,
    0.65826416f,  0.691513062f,  0.712600708f, 0.722076416f, 0.756240845f, 0.78666687f,
    0.817260742f, 0.816650391f,  0.866241455f, 0.891769409f, 0.913604736f, 0.949264526f,
    0.952911377f, 1.0f};
// Up to this exponent an error of 2^-29 of the logarithm may be multiplied by it.
inline constexpr float kPowerLimit = 32.0f;

// x^y for positive x, zero and infinity, y up to kPowerLimit and not both zero; NaN of negative x
// and of NaN. log2(x) = whole + rest, where |rest| < 1/20 has an error of 2^-29.
template <int K>
TENON_INLINE Lanes<K> small_power(const Lanes<K>& x, const Lanes<K>& y) {
  const Lanes<K> m = log_mantissa(x);
  const LaneBits<K> index = log_index(m);
  const Lanes<K> r = multiply_add(m, look_up(kPowerInverse, index), -1.0f);
  const Lanes<K> whole = exponent_of(x) + look_up(kPowerLog2, index);
  const Lanes<K> rest =
      r * horner(r, 1.44269502f, -0.721350074f, 0.481056303f, -0.353966206f);  // 2^-31.8
  // y log2(x) is a multiple of 1/32 and f, which is NaN of infinities.
  const Lanes<K> sum = multiply_add(y, rest, y * whole) + kRound32, power = sum - kRound32;
  const Lanes<K> f = at_most(1.0f, multiply_add(y, rest, multiply_subtract(y, whole, power)));
  const Lanes<K> fraction = look_up(kExp2Fractions, lane_bits(sum));
  const Lanes<K> slope = multiply_add(f, 0.240228862f, 0.693157346f);  // (2^f - 1) / f, 2^-24.2
  return scale_by(multiply_add(fraction * f, slope, fraction), power);
}

// Bases that are NaN or have a sign, -0 too; exponents that are 0 (of 0 and infinity as well),
// beyond kPowerLimit or NaN.
TENON_INLINE __mmask16 is_other_power(Floats x, Floats y) {
  constexpr int nan_or_sign = 0x01 | 0x04 | 0x10 | 0x40 | 0x80;
  const auto less_one = [](auto bits) { return 2 * bits - 1; };  // without sign; 0 becomes largest
  const __m512i size = __m512i(less_one(Unsigned(y)));
  const unsigned most = less_one(bits_of(kPowerLimit));
  return static_cast<__mmask16>(_mm512_fpclass_ps_mask(x, nan_or_sign) |
                                _mm512_cmpgt_epu32_mask(size, _mm512_set1_epi32(int(most))));
}

// c of 32 intervals of mantissas, chosen such that cbrt(c) is nearly a float.
alignas(64) inline constexpr float kCbrtInverse[32] = {  // 1 / c
    0.98792237f,  0.956936955f, 0.928246737f, 0.901804745f, 0.876088619f, 0.856248021f,
    0.832631528f, 0.810571194f, 0.792244971f, 0.773461461f, 0.751710355f, 0.736897171f,
    0.718372881f, 0.70300889f,  0.686556458f, 0.673489809f, 0.660483718f, 0.646083474f,
    0.633894622f, 0.620933712f, 0.610731244f, 0.59875685f,  0.58694756f,  0.577601075f,
    0.566525578f, 0.555904031f, 0.546395659f, 0.537065744f, 0.529444575f, 0.519696653f,
    0.511594892f, 0.50346595f};
alignas(64) inline constexpr float kCbrtRoot[32] = {  // cbrt(c)
    1.0040586f,  1.01478076f, 1.0251298f,  1.03505278f, 1.04508269f, 1.05309319f, 1.06295705f,
    1.07251394f, 1.08072078f, 1.08939934f, 1.09980702f, 1.10712767f, 1.11656332f, 1.1246388f,
    1.13355148f, 1.1408354f,  1.14827514f, 1.15674365f, 1.16411078f, 1.17215466f, 1.17864573f,
    1.18645108f, 1.19435537f, 1.20076311f, 1.20853758f, 1.21618617f, 1.22320032f, 1.23024285f,
    1.23611772f, 1.24379849f, 1.25032985f, 1.25702322f};
// cbrt(2^i) for i = 0, 1 and, modulo 16, -1
alignas(64) inline constexpr float kCbrtPower[16] = {
    1.0f, 1.25992107f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
    0.0f, 0.0f,        0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.793700516f};

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> pow(const Lanes<K>& x, const Lanes<K>& y) {
  using namespace detail;
  const auto others =
      each([](Floats base, Floats exponent) { return is_other_power(base, exponent); }, x, y);
  return unless(
      others, small_power(x, y), [](float a, float b) { return math::pow(a, b); }, x, y);
}

// Zero, infinity and NaN come out of the exponents.
template <int K>
TENON_INLINE Lanes<K> cbrt(const Lanes<K>& x) {
  using namespace detail;
  const Lanes<K> exponent = exponent_of(x);
  const Lanes<K> m = each(
      [](Floats a) {
        return Floats(_mm512_maskz_getmant_ps(kAll, a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero));
      },
      x);
  const Lanes<K> third =
      multiply_add(exponent, static_cast<float>(1.0 / 3), kRound<float>) - kRound<float>;
  const Lanes<K> remainder = subtract_product(third, 3.0f, exponent + kRound<float>);
  const LaneBits<K> index = log_index(m);
  const Lanes<K> c = look_up(kCbrtPower, lane_bits(remainder)) * look_up(kCbrtRoot, index);
  const Lanes<K> r = multiply_add(m, look_up(kCbrtInverse, index), -1.0f);
  const Lanes<K> series = r * horner(r, 0.333344787f, -0.11112f);  // 2^-23.7
  return with_sign(scale_by(multiply_add(c, series, c), third), x);
}

// With one step of Newton's iteration. Of zero and infinity the rough value is right.
template <int K>
TENON_INLINE Lanes<K> rsqrt(const Lanes<K>& x) {
  using namespace detail;
  const Lanes<K> rough = rough_inverse_root(x);
  const Lanes<K> lost = at_most(1.0f, subtract_product(x * rough, rough, spread(1.0f, x)));
  return multiply_add(rough * 0.5f, lost, rough);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
