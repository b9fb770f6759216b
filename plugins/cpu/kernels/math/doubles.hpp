// SPDX-License-Identifier: Apache-2.0
// Logarithms and cube roots of eight doubles, as of floats in lanes_logarithm.hpp and
// lanes_power.hpp: by tables of sixteen intervals of mantissas, which registers hold. For operators
// that are nothing else; in larger expressions there are the functions of numbers.
#pragma once

#include "math/lanes.hpp"

#ifdef TENON_HAS_LANES
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

using Doubles [[gnu::vector_size(64)]] = double;

// With the lanes chosen, by a mask, g++ 12 does not warn of its own headers.
inline constexpr __mmask8 kAllDoubles = 0xff;

TENON_INLINE Doubles look_up(const double (&table)[16], __m512i index) {
  return _mm512_permutex2var_pd(_mm512_load_pd(table), index, _mm512_load_pd(table + 8));
}
// The number of the interval of a mantissa in the low bits.
TENON_INLINE __m512i interval_of(Doubles mantissa) {
  return _mm512_maskz_srli_epi64(kAllDoubles, __m512i(mantissa), 48);
}
TENON_INLINE Doubles multiply_add(Doubles x, Doubles y, double z) {
  return _mm512_fmadd_pd(x, y, _mm512_set1_pd(z));
}
// Coefficients from the constant term upwards.
template <int N>
TENON_INLINE Doubles horner(Doubles x, const double (&coefficients)[N]) {
  Doubles result = _mm512_set1_pd(coefficients[N - 1]);
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) result = multiply_add(result, x, coefficients[i]);
  return result;
}

// c is 1 and 2 in the outer intervals. In the upper half value - octave is log(c/2) to 60 bits and
// more. Computed with 45 digits.
struct DoubleLogTable {
  alignas(64) double inverse[16];  // 1 / c
  alignas(64) double value[16];    // log(c)
  double series[10];               // log(1 + r) / r, 2^-56.8
  double octave;                   // log(2)
};
inline constexpr DoubleLogTable kLnOfDoubles = {
    {1.0, 0.9156337127186893, 0.8654050436633371, 0.8208619669864052, 0.7807289486839658,
     0.744663482104545, 0.7113359096964358, 0.6808362421782119, 0.6534394105275472,
     0.62730590233436, 0.6036749674044444, 0.581946196379485, 0.5614933427331482,
     0.5427327188952217, 0.5247903577743037, 0.5},
    {0.0, 0.08813887122477458, 0.14455762307875772, 0.19740031157416257, 0.2475272461232616,
     0.2948228645236939, 0.34061051391633135, 0.38443346844803794, 0.4255054655527695,
     0.4663209748142516, 0.5047193593294367, 0.5413772816074609, 0.5771553610927168,
     0.6111383106288919, 0.6447564146645222, 0.6931471805599453},
    {1.0, -0.5000000000000003, 0.33333333333353105, -0.249999999998374, 0.19999999917135225,
     -0.16666666107565475, 0.1428582679663028, -0.12501948079351852, 0.11070445397756283,
     -0.08731704302594515},
    0.6931471805599453};
inline constexpr DoubleLogTable kLog2OfDoubles = {
    {1.0, 0.9146879856882532, 0.8648978339301214, 0.8208694056460731, 0.7813525109064011,
     0.7443054166191068, 0.7112538107770233, 0.6806943036507869, 0.6534708754221599,
     0.6277250818105845, 0.6038627461490468, 0.5821736275203644, 0.5616720861989289,
     0.5423649798864606, 0.5249024524483629, 0.5},
    {0.0, 0.1286483933121599, 0.20939837044725546, 0.28477537691977717, 0.35595452091403734,
     0.4260333598077032, 0.49156361773262736, 0.55492105821185, 0.6138051569850206,
     0.6717952395097608, 0.7277074227412856, 0.7804786080672682, 0.8321999887895166,
     0.8826640671786428, 0.9298787567655614, 1.0},
    {1.4426950408889634, -0.7213475204444822, 0.48089834696327305, -0.360673760219895,
     0.2885390069823067, -0.24044916541536873, 0.2061009147449717, -0.1803649849553222,
     0.15971276675775037, -0.1259718649586193},
    1.0};
inline constexpr DoubleLogTable kLog10OfDoubles = {
    {1.0, 0.914920545091816, 0.8660201747515047, 0.8216287361948114, 0.7809199832734608,
     0.7441733389189749, 0.711935876386439, 0.6812134998432103, 0.6537409750620524,
     0.6273472067025992, 0.6040552769631062, 0.581991432835816, 0.5617170733184063,
     0.5423080663571413, 0.5248566637757003, 0.5},
    {0.0, 0.03861661995157146, 0.06247199056787911, 0.08532437983848819, 0.10739346369389216,
     0.12832589326071048, 0.1475591212306175, 0.16671675406040723, 0.18459429354769707,
     0.20249203138650684, 0.21892331736958656, 0.23508340830460547, 0.2504823755981611,
     0.2657539357667539, 0.27995928446190144, 0.3010299956639812},
    {0.4342944819032518, -0.21714724095162607, 0.1447648273011698, -0.10857362047510678,
     0.08685889602077322, -0.07238241122239635, 0.06204255747202139, -0.05429527063903467,
     0.04807833348456803, -0.03792130996227679},
    0.3010299956639812};

// Zero and infinity have the mantissa 1 and the exponents -inf and inf; of negative numbers the
// mantissa is NaN.
TENON_INLINE Doubles log_mantissa(Doubles x) {
  return _mm512_maskz_getmant_pd(kAllDoubles, x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
}
// log(2^e c (1 + r)) of x with the exponent e
template <const DoubleLogTable& table>
TENON_INLINE Doubles log_of_parts(Doubles x, __m512i index, Doubles r) {
  const Doubles start = _mm512_fmadd_pd(_mm512_maskz_getexp_pd(kAllDoubles, x),
                                        _mm512_set1_pd(table.octave), look_up(table.value, index));
  return _mm512_fmadd_pd(horner(r, table.series), r, start);
}
template <const DoubleLogTable& table>
TENON_INLINE Doubles log_by(Doubles x) {
  const Doubles m = log_mantissa(x);
  const __m512i index = interval_of(m);
  return log_of_parts<table>(x, index, multiply_add(m, look_up(table.inverse, index), -1.0));
}

// With the sign of y.
TENON_INLINE Doubles with_sign(Doubles x, Doubles y) {
  return Doubles(
      _mm512_ternarylogic_epi64(_mm512_set1_epi64(INT64_MIN), __m512i(y), __m512i(x), 0xca));
}

// log(1 + x): what rounding takes off the sum is added to r, but not where the sum is infinite.
TENON_INLINE Doubles log_of_one_and(Doubles x) {
  const Doubles u = x + 1.0, lost = x - (u - 1.0), m = log_mantissa(u);
  const __m512i index = interval_of(m), exponent = _mm512_set1_epi64(INT64_C(0x7ff) << 52);
  const Doubles inverse = look_up(kLnOfDoubles.inverse, index);
  const Doubles octave =  // 2^-e
      Doubles(_mm512_set1_epi64(INT64_C(0x7fe) << 52) - (__m512i(u) & exponent));
  const __mmask8 finite = _mm512_cmp_pd_mask(u, Doubles(exponent), _CMP_LT_OQ);
  const Doubles r =
      _mm512_mask3_fmadd_pd(lost * octave, inverse, multiply_add(m, inverse, -1.0), finite);
  return log_of_parts<kLnOfDoubles>(u, index, r);
}
TENON_INLINE Doubles log1p_of(Doubles x) { return with_sign(log_of_one_and(x), x); }
// log((1 + a) / (1 - a)) / 2
TENON_INLINE Doubles atanh_of(Doubles x) {
  const Doubles a = _mm512_abs_pd(x);
  return with_sign(0.5 * log_of_one_and((a + a) / (1.0 - a)), x);
}

// c such that cbrt(c) is a double to 62 bits.
struct DoubleRootTable {
  alignas(64) double inverse[16];  // 1 / c
  alignas(64) double root[16];     // cbrt(c)
  alignas(64) double power[16];    // cbrt(2^i) for i = 0, 1 and, modulo 16, -1
  double series[8];                // (cbrt(1 + r) - 1) / r, 2^-58.6
};
inline constexpr DoubleRootTable kRootOfDoubles = {
    {0.9708971626618329, 0.9150442422605028, 0.8652581220481828, 0.8208956367091129,
     0.7809080668858119, 0.744730586097354, 0.7118446176702325, 0.6810243026069972,
     0.6536574840545654, 0.6275788703331582, 0.6038065853281918, 0.5822629903359388,
     0.5619436155986316, 0.5425847437189913, 0.5243738810221353, 0.5079787546588529},
    {1.009893528863831, 1.0300365505259166, 1.049425078427533, 1.0679986020888323,
     1.0859254970152095, 1.103232218659705, 1.1199662396300896, 1.1366125925290316,
     1.1522585003902288, 1.1680028315789928, 1.1831343176792066, 1.1975498605377854,
     1.2118134064808055, 1.2260574123106733, 1.2400893645800986, 1.2532897379839607},
    {1.0, 1.2599210498948732, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
     0.7937005259840998},
    {0.33333333333333326, -0.11111111111111698, 0.06172839506423106, -0.04115226331115952,
     0.03017831274089758, -0.023472193114229527, 0.01902544440577068, -0.015728035731918857}};

// Zero, infinity and NaN come out of the exponents.
TENON_INLINE Doubles root_of(Doubles x) {
  const auto& table = kRootOfDoubles;
  const Doubles exponent = _mm512_maskz_getexp_pd(kAllDoubles, x);
  const Doubles m = _mm512_maskz_getmant_pd(kAllDoubles, x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
  const Doubles third =
      multiply_add(exponent, Doubles{} + 1.0 / 3, kRound<double>) - kRound<double>;
  const Doubles remainder = (exponent + kRound<double>)-third * 3.0;
  const __m512i index = interval_of(m);
  const Doubles c = look_up(table.power, __m512i(remainder)) * look_up(table.root, index);
  const Doubles r = multiply_add(m, look_up(table.inverse, index), -1.0);
  const Doubles root = _mm512_fmadd_pd(c, r * horner(r, table.series), c);
  return with_sign(_mm512_maskz_scalef_pd(kAllDoubles, root, third), x);
}

// out[i] = f(x[i]). The last elements take the same way as the others.
template <class F>
[[gnu::flatten]] inline void run_doubles(F f, double* out, int64_t n, const double* x) {
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + 8 <= n; i += 8) _mm512_storeu_pd(out + i, f(_mm512_loadu_pd(x + i)));
  const auto rest = static_cast<__mmask8>((1u << (n - i)) - 1);
  _mm512_mask_storeu_pd(out + i, rest, f(_mm512_maskz_loadu_pd(rest, x + i)));
}

}  // namespace detail

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
