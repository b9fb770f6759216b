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
    1.0f,      0.953125f, 0.921875f, 0.90625f,  0.875f,    0.859375f, 0.828125f, 0.8125f,
    0.796875f, 0.765625f, 0.75f,     0.734375f, 0.71875f,  0.703125f, 0.6875f,   0.671875f,
    0.65625f,  0.640625f, 0.640625f, 0.625f,    0.609375f, 0.59375f,  0.59375f,  0.578125f,
    0.5625f,   0.5625f,   0.546875f, 0.53125f,  0.53125f,  0.515625f, 0.515625f, 0.5f};
alignas(64) inline constexpr float kPowerLog2High[32] = {
    0.0f,         0.0692749023f, 0.117370605f, 0.142028809f, 0.192657471f, 0.21862793f,
    0.272094727f, 0.299560547f,  0.327575684f, 0.385284424f, 0.415039062f, 0.445404053f,
    0.47644043f,  0.508148193f,  0.540557861f, 0.573730469f, 0.607696533f, 0.642456055f,
    0.642456055f, 0.678070068f,  0.714599609f, 0.752075195f, 0.752075195f, 0.790557861f,
    0.830078125f, 0.830078125f,  0.870727539f, 0.912536621f, 0.912536621f, 0.955596924f,
    0.955596924f, 1.0f};
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
                                                        -8.0593054e-06f,
                                                        -8.0593054e-06f,
                                                        1.83675331e-06f,
                                                        -1.82823726e-06f,
                                                        -2.70875603e-06f,
                                                        -2.70875603e-06f,
                                                        -1.12269572e-05f,
                                                        -3.12644238e-06f,
                                                        -3.12644238e-06f,
                                                        -1.05560075e-05f,
                                                        5.37655922e-07f,
                                                        5.37655922e-07f,
                                                        8.95681387e-06f,
                                                        8.95681387e-06f,
                                                        0.0f};

// A sum of two numbers.
template <int K>
struct LanesInTwo {
  Lanes<K> high, low;
};

// log2(x) of positive finite x; NaN of every other one.
template <int K>
TENON_INLINE LanesInTwo<K> log2_in_two(const Lanes<K>& x) {
  const Lanes<K> m = log_mantissa(x);
  const LaneBits<K> index = log_index(m);
  const Lanes<K> r = multiply_add(m, look_up(kPowerInverse, index), -1.0f);
  const Lanes<K> whole = exponent_of(x) + look_up(kPowerLog2High, index);
  // log2(1 + r) = r / ln(2) + r^2 (...), where r / ln(2) has two parts; 2^-29.7
  const Lanes<K> first = r * 1.44269502f;
  const Lanes<K> start = multiply_subtract(r, 1.44269502f, first) + look_up(kPowerLog2Low, index);
  const Lanes<K> rest = multiply_add(
      r, horner(r, 1.92596303e-8f, -0.721347511f, 0.480898321f, -0.360908717f, 0.2887404f), start);
  const Lanes<K> sum = whole + first;
  return {sum, (first - (sum - whole)) + rest};
}

// 2^(y log); the first part of the product decides about 0 and infinity.
template <int K>
TENON_INLINE Lanes<K> power_of_log(const LanesInTwo<K>& log, const Lanes<K>& y) {
  const Lanes<K> high = y * log.high;
  const Lanes<K> low = multiply_add(y, log.low, multiply_subtract(y, log.high, high));
  const Lanes<K> whole = rounded_down(Lanes<K>(high + low));
  const Lanes<K> f = smaller_size(Lanes<K>((high - whole) + low), 1.5f);
  return scale_by(exp2_of_fraction(f), whole);
}

// The values of C's Annex F, for arguments that are not positive and finite.
[[gnu::noinline]] inline Lanes<1> power_special(Lanes<1> x, Lanes<1> y, Lanes<1> result) {
  constexpr float inf = kInfinity<float>;
  const Lanes<1> a = absolute(x);
  const auto is = [](const LaneMask<1>& mask) { return mask.at[0]; };
  const auto is_whole = [&](const Lanes<1>& v) { return is(is_equal(v, rounded_to_zero(v))); };
  const __mmask16 whole = is_whole(y), odd = whole & static_cast<__mmask16>(~is_whole(0.5f * y));
  const __mmask16 finite = is(is_less(a, inf)), negative = is(is_less(x, 0.0f));
  const auto set = [&](__mmask16 mask, const auto& value) {
    result = choose(LaneMask<1>{mask}, value, result);
  };
  set(negative, power_of_log(log2_in_two(a), y));
  // Logarithms and products that are infinite or NaN.
  set(is(is_nan(result)), scale_by(1.0f, log2(a) * y));
  set(is(is_equal(a, 1.0f)) & is(is_equal(y, y)), 1.0f);  // (-1)^inf is 1
  set(is(sign_mask(x)) & odd, -0.0f - result);
  set(negative & finite & static_cast<__mmask16>(~whole), kNan<float>);
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

}  // namespace detail

template <int K>
TENON_INLINE Lanes<K> pow(const Lanes<K>& x, const Lanes<K>& y) {
  Lanes<K> result = detail::power_of_log(detail::log2_in_two(x), y);
  if (detail::any(detail::is_nan(result))) [[unlikely]] {
    for (int k = 0; k < K; ++k)
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
