// SPDX-License-Identifier: Apache-2.0
// Powers and cube roots of sixteen floats.
//
// x^y = 2^(y log2(x)): the logarithm, by a table as in lanes_logarithm.hpp, in two parts, because
// up to the range of exponents multiplies its error.
#pragma once

#include "math/lanes_exponential.hpp"
#include "math/lanes_logarithm.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// c of the intervals of lanes_logarithm_table.hpp: 1/c has so few bits that m/c - 1 is exact, and
// the sum of a whole number and the first part of log2(c) is.
alignas(64) inline constexpr float kPowerInverse[32] = {
    1.0f,      0.953125f, 0.921875f, 0.90625f,  0.875f,   0.859375f, 0.828125f, 0.8125f,
    0.796875f, 0.765625f, 0.75f,     0.734375f, 0.71875f, 0.703125f, 0.6875f,   0.671875f,
    1.3125f,   1.296875f, 1.265625f, 1.25f,     1.21875f, 1.203125f, 1.171875f, 1.15625f,
    1.125f,    1.109375f, 1.09375f,  1.078125f, 1.0625f,  1.046875f, 1.03125f,  1.0f};
alignas(64) inline constexpr float kPowerLog2High[32] = {
    0.0f,           0.0692749023f, 0.117370605f,  0.142028809f,  0.192657471f,   0.21862793f,
    0.272094727f,   0.299560547f,  0.327575684f,  0.385284424f,  0.415039062f,   0.445404053f,
    0.47644043f,    0.508148193f,  0.540557861f,  0.573730469f,  -0.392303467f,  -0.375030518f,
    -0.33984375f,   -0.321929932f, -0.285400391f, -0.266784668f, -0.228820801f,  -0.209442139f,
    -0.169921875f,  -0.149749756f, -0.129272461f, -0.108520508f, -0.0874633789f, -0.0661010742f,
    -0.0444030762f, 0.0f};
alignas(64) inline constexpr float kPowerLog2Low[32] = {0.0f,
                                                        -1.22399069e-05f,
                                                        -1.36548306e-05f,
                                                        -9.8037217e-06f,
                                                        -1.23927612e-05f,
                                                        1.23567879e-05f,
                                                        -1.51811255e-05f,
                                                        -2.65016098e-07f,
                                                        -1.02556521e-06f,
                                                        5.73205671e-06f,
                                                        -1.56322119e-06f,
                                                        7.09558799e-06f,
                                                        -2.38574444e-06f,
                                                        -1.28968907e-06f,
                                                        1.05200343e-05f,
                                                        4.77654794e-06f,
                                                        -1.39559816e-05f,
                                                        -8.9137684e-06f,
                                                        -6.25288476e-06f,
                                                        1.83675331e-06f,
                                                        -1.82823726e-06f,
                                                        -1.8727261e-06f,
                                                        2.11028532e-06f,
                                                        -1.12269572e-05f,
                                                        -3.12644238e-06f,
                                                        2.63635479e-06f,
                                                        -1.05560075e-05f,
                                                        -3.94896551e-06f,
                                                        5.37655922e-07f,
                                                        1.18837606e-05f,
                                                        8.95681387e-06f,
                                                        0.0f};

// a^y for a > 0 and finite a and y; anything elsewhere.
template <int K>
TENON_INLINE Lanes<K> power_of_positive(const Lanes<K>& a, const Lanes<K>& y) {
  const Lanes<K> m = log_mantissa(a);
  const LaneBits<K> index = log_index(m);
  const Lanes<K> r = multiply_add(m, look_up(kPowerInverse, index), -1.0f);
  const Lanes<K> whole = log_exponent(a, m) + look_up(kPowerLog2High, index);
  // log2(1 + r) = r / ln(2) + r^2 (...); 2^-29.7
  const Lanes<K> first = r * 1.44269502f;
  const Lanes<K> first_low = multiply_subtract(r, 1.44269502f, first);
  const Lanes<K> small = multiply_add(r, 1.92596303e-8f, look_up(kPowerLog2Low, index));
  const Lanes<K> rest =
      multiply_add(r * r, horner(r, -0.721347511f, 0.480898321f, -0.360908717f, 0.2887404f), small);
  const Lanes<K> sum = whole + first;
  const Lanes<K> low = (first - (sum - whole)) + (first_low + rest);
  const Lanes<K> log = sum + low;
  const Lanes<K> log_low = low - (log - sum);
  // 2^(y log), whose values end at -150 and 128.
  const Lanes<K> product = y * log;
  const Lanes<K> product_low = multiply_add(y, log_low, multiply_subtract(y, log, product));
  const Lanes<K> bounded = at_least(at_most(product, 130.0f), -160.0f);
  const Lanes<K> rounded = bounded + kRound32;
  const Lanes<K> power = rounded - kRound32;
  const Lanes<K> from = bounded - power;
  const Lanes<K> f = choose(is_less(absolute(product), 160.0f), from + product_low, from);
  const Lanes<K> fraction = look_up(kExp2Fractions, lane_bits(rounded));
  const Lanes<K> series = f * horner(f, 0.693147182f, 0.240228266f, 0.0555043519f);
  return scale_by(multiply_add(fraction, series, fraction), power);
}

// The values of C's Annex F, for arguments that are not positive and finite.
[[gnu::noinline]] inline Lanes<1> power_special(Lanes<1> x, Lanes<1> y, Lanes<1> result) {
  constexpr float inf = kInfinity<float>;
  const Lanes<1> a = absolute(x);
  const auto is = [](const LaneMask<1>& mask) { return mask.at[0]; };
  const auto is_whole = [&](const Lanes<1>& v) { return is(is_equal(v, rounded_to_zero(v))); };
  const __mmask16 whole = is_whole(y), odd = whole & static_cast<__mmask16>(~is_whole(0.5f * y));
  const __mmask16 finite = is(is_less(a, inf));
  const __mmask16 plain = is(is_less(0.0f, a)) & finite & is(is_less(absolute(y), inf));
  const auto set = [&](__mmask16 mask, const auto& value) {
    result = choose(LaneMask<1>{mask}, value, result);
  };
  // Logarithms and products that are infinite or NaN.
  set(static_cast<__mmask16>(~plain), scale_by(1.0f, log2(a) * y));
  set(is(is_equal(a, 1.0f)) & is(is_equal(y, y)), 1.0f);  // (-1)^inf is 1
  set(is(sign_mask(x)) & odd, -0.0f - result);
  set(is(is_less(x, 0.0f)) & finite & static_cast<__mmask16>(~whole), kNan<float>);
  set(is(is_equal(y, 0.0f)) | is(is_equal(x, 1.0f)), 1.0f);
  return result;
}

// c of eighths of octaves, for each remainder of the exponent modulo 3.
alignas(64) inline constexpr float kCbrtInverse[32] = {  // 1 / c
    0.942282081f, 0.84206599f,  0.759620845f, 0.689784408f, 0.644394755f, 0.593661189f,
    0.555587351f, 0.518278182f, 0.937296093f, 0.839915872f, 0.764775217f, 0.691686511f,
    0.640871584f, 0.596934319f, 0.547026992f, 0.518271208f, 0.948263168f, 0.85053122f,
    0.764560342f, 0.698848248f, 0.646303594f, 0.587512553f, 0.548331797f, 0.517955661f,
    0.948263168f, 0.85053122f,  0.764560342f, 0.698848248f, 0.646303594f, 0.587512553f,
    0.548331797f, 0.517955661f};
alignas(64) inline constexpr float kCbrtRoot[32] = {  // cbrt(2^remainder c)
    1.02001452f, 1.05897236f, 1.095976f,   1.13178051f, 1.15775323f, 1.18983603f, 1.21641719f,
    1.24493217f, 1.28741252f, 1.3353591f,  1.37773407f, 1.42464578f, 1.46134579f, 1.49635446f,
    1.54054272f, 1.56852329f, 1.61576068f, 1.67541826f, 1.73599875f, 1.78878868f, 1.8360076f,
    1.89531302f, 1.93942142f, 1.97661674f, 1.61576068f, 1.67541826f, 1.73599875f, 1.78878868f,
    1.8360076f,  1.89531302f, 1.93942142f, 1.97661674f};

// Not positive and finite; denormals are.
TENON_INLINE bool is_special_power(Floats x, Floats y) {
  constexpr int kNan = 0x81, kZero = 0x06, kInfinite = 0x18, kNegative = 0x40;
  return (_mm512_fpclass_ps_mask(x, kNan | kZero | kInfinite | kNegative) |
          _mm512_fpclass_ps_mask(y, kNan | kInfinite)) != 0;
}

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> pow(const Lanes<K>& x, const Lanes<K>& y) {
  Lanes<K> result = detail::power_of_positive(detail::absolute(x), y);
  for (int k = 0; k < K; ++k) {
    if (detail::is_special_power(x.at[k], y.at[k])) [[unlikely]]
      result.at[k] = detail::power_special({x.at[k]}, {y.at[k]}, {result.at[k]}).at[0];
  }
  return result;
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
  const Lanes<K> third = rounded_down(exponent * static_cast<float>(1.0 / 3));
  const Lanes<K> remainder = subtract_product(third, 3.0f, exponent);  // 0, 1 or 2
  const LaneBits<K> index = each(
      [](Integers eighth, Integers eights) {  // (eighth & 7) | eights
        return Integers(_mm512_ternarylogic_epi32(__m512i(eighth), _mm512_set1_epi32(7),
                                                  __m512i(eights), 0xea));
      },
      shift_right<20>(m), lane_bits(multiply_add(remainder, 8.0f, 0x1p23f)));
  const Lanes<K> c = look_up(kCbrtRoot, index);
  const Lanes<K> r = multiply_add(m, look_up(kCbrtInverse, index), -1.0f);
  const Lanes<K> series =
      r * horner(r, 0.333333254f, -0.111111052f, 0.061863374f, -0.041257266f);  // 2^-27.5
  return with_sign(scale_by(multiply_add(c, series, c), third), x);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
