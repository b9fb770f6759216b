// SPDX-License-Identifier: Apache-2.0
// Powers and roots of registers.
//
// x^y is an exponential of y log(x), with the logarithm by a table as in vec_logarithm.hpp. y
// multiplies its error: doubles have it in two parts; floats with large y, or signs, are computed
// in double.
#pragma once

#include "math/power.hpp"
#include "math/vec_exponential.hpp"
#include "math/vec_logarithm.hpp"

#ifdef TENON_HAS_VEC512
namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// c of intervals of mantissas, chosen such that sums of log2(c), or of the first part of log(c),
// and that of the exponent are exact.
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
  // Multiples of 1/64, and of 1/32 where |r| may be above 1/32: r is exact.
  alignas(64) static constexpr double kInverse[16] = {
      1.0,     0.90625, 0.875,    0.8125,   0.78125, 0.75,     0.71875, 0.6875,
      0.65625, 0.625,   0.609375, 0.578125, 0.5625,  0.546875, 0.53125, 0.5};
  // log(c), multiples of 2^-42, and what they lack.
  alignas(64) static constexpr double kLog[16] = {0.0,
                                                  0.09844007281321865,
                                                  0.13353139262449076,
                                                  0.20763936477828793,
                                                  0.2468600779316148,
                                                  0.28768207245184385,
                                                  0.33024168687052224,
                                                  0.3746934494413381,
                                                  0.4212134650763346,
                                                  0.4700036292456389,
                                                  0.4953214372301318,
                                                  0.5479651707155426,
                                                  0.5753641449034603,
                                                  0.603535021870357,
                                                  0.6325225587434034,
                                                  0.6931471805598903};
  alignas(64) static constexpr double kLogLow[16] = {0.0,
                                                     3.3871241029241416e-14,
                                                     3.1859736349078334e-14,
                                                     -4.3425422595242564e-14,
                                                     -8.899851356560444e-14,
                                                     -6.292357389008195e-14,
                                                     5.4612144489920215e-14,
                                                     7.260466149925637e-14,
                                                     -3.1063837541003616e-14,
                                                     9.667719603235566e-14,
                                                     -1.0634899648532451e-13,
                                                     -9.521443188786736e-14,
                                                     1.0152652766306816e-13,
                                                     -9.883674306179806e-14,
                                                     1.0711543657844876e-13,
                                                     5.497923018708371e-14};
  static constexpr double kLn2 = 0.6931471805598903, kLn2Low = 5.497923018708371e-14;
  // -2 (log(1 + r) - r + r^2 / 2) / r^3, 2^-53.8
  static constexpr double kSeries[] = {
      -0.6666666666666666,  0.49999999999999717, -0.40000000000044933, 0.3333333333561516,
      -0.28571428432979523, 0.24999994399724962, -0.2222234179619961,  0.20005397044685894,
      -0.1817236430353933,  0.14911579741492142};
  // Products with larger exponents would round the fraction of the power away.
  static constexpr double kLimit = 0x1p20;
};

// Of positive x, zero and infinity, y up to kLimit and not both zero; NaN of negative x and of NaN.
// Here log2(x) = whole + rest, where |rest| < 1/20 has an error of 2^-29.
template <int K>
TENON_INLINE FloatVecs<K> small_power(const FloatVecs<K>& x, const FloatVecs<K>& y) {
  using Table = PowerTable<float>;
  const auto m = log_mantissa(x);
  const auto index = interval_of(m);
  const auto r = multiply_add(m, lookup(Table::kInverse, index), -1.0f);
  const auto whole = exponent_of(x) + lookup(Table::kLog2, index);
  const auto rest =
      r * horner(r, 1.44269502f, -0.721350074f, 0.481056303f, -0.353966206f);  // 2^-31.8
  // y log2(x) is a multiple of 1/32 and f, which is NaN of infinities.
  const auto sum = multiply_add(y, rest, y * whole) + ExpTable<float>::kRound;
  const auto power = sum - ExpTable<float>::kRound;
  const auto f = at_most(1.0f, multiply_add(y, rest, multiply_subtract(y, whole, power)));
  const auto fraction = lookup(ExpTable<float>::kFractions, as_bits(sum));
  const auto slope = multiply_add(f, 0.240228862f, 0.693157346f);  // (2^f - 1) / f, 2^-24.2
  return scale_by(multiply_add(fraction * f, slope, fraction), power);
}
// log(x) in two parts, 2^-63: the first two terms of log(1 + r) = r - r^2 / 2 + ... and the sums
// with log(2^e c) have an error each, which the second part gathers. It is NaN of 0 and infinity.
// The series' further terms are added to the first part, and only the rounding error of that sum to
// the second: |low| stays below an ulp of `high`, so that y * low is small for every y.
template <int K>
struct VecLog {
  DoubleVecs<K> high, low;
};
template <int K>
TENON_INLINE VecLog<K> log_in_two(const DoubleVecs<K>& x) {
  using Table = PowerTable<double>;
  const auto m = log_mantissa(x), e = exponent_of(x);
  const auto index = interval_of(m);
  const auto r = multiply_add(m, lookup(Table::kInverse, index), -1.0);
  const auto start = multiply_add(e, Table::kLn2, lookup(Table::kLog, index));  // exact
  const auto start_low = multiply_add(e, Table::kLn2Low, lookup(Table::kLogLow, index));
  const auto near = start + r, near_low = (start - near) + r;
  const auto half = r * -0.5, term = half * r, term_low = multiply_subtract(half, r, term);
  const auto first = near + term, first_low = (near - first) + term;
  const auto series = term * r * polynomial_of(r, Table::kSeries);
  const auto high = first + series, series_low = (first - high) + series;
  return {high, ((start_low + near_low) + (term_low + first_low)) + series_low};
}
// exp(high + low), where `low` is small or NaN: of infinities.
template <int K>
TENON_INLINE DoubleVecs<K> exp_in_two(const DoubleVecs<K>& high, const DoubleVecs<K>& low) {
  auto parts = exp_parts(high);
  parts.r = at_most(1.0, parts.r + low);
  return exp_of_parts(parts);
}
template <int K>
TENON_INLINE DoubleVecs<K> small_power(const DoubleVecs<K>& x, const DoubleVecs<K>& y) {
  const auto log = log_in_two(x);
  const auto product = y * log.high;
  return exp_in_two(product, multiply_add(y, log.low, multiply_subtract(y, log.high, product)));
}

// a^y for any y and a without sign, but of y = 0 and a = 1.
TENON_INLINE DoubleVecs<1> any_magnitude(const DoubleVecs<1>& a, const DoubleVecs<1>& y) {
  const auto log = log_in_two(a);
  // Beyond +-800 the power is 0 or infinity, whatever is lost.
  const auto all = y * log.high, product = at_least(at_most(all, 800.0), -800.0);
  const auto rest = multiply_add(y, log.low, multiply_subtract(y, log.high, all));
  return exp_in_two(product, blend(is_equal(all, product), rest, 0.0));
}
TENON_INLINE FloatVecs<1> any_magnitude(const FloatVecs<1>& a, const FloatVecs<1>& y) {
  const auto large = is_less(broadcast_like(PowerTable<float>::kLimit, y), absolute(y));
  const auto near = small_power(a, y);
  if (!any(large)) return near;
  const auto tail = narrowed(math::exp(widened(y.at[0]) * math::log(widened(a.at[0]))));
  return blend(large, FloatVecs<1>{tail}, near);
}

// Of any x and y, as C has it.
template <class V>
[[gnu::noinline]] inline V with_any_power(MaskOf<V> mask, V result, V base, V exponent) {
  using T = ElementOf<V>;
  using Mask = MaskOf<V>;
  const Pack<V, 1> x{base}, y{exponent}, a = absolute(x);
  const Mask whole = is_integer(y).at[0], odd = whole & ~is_integer(y * T(0.5)).at[0];
  const Mask is_one = is_equal(x, T(1)).at[0] | is_equal(y, T(0)).at[0];
  const Mask is_unit = is_equal(a, T(1)).at[0] & ~is_nan(y).at[0];
  const Mask has_none =
      is_less(x, T(0)).at[0] & is_less(a, kInfinity<T>).at[0] & ~(whole | is_nan(y).at[0]);
  const auto size = blend(Pack<Mask, 1>{is_unit}, T(1), any_magnitude(a, y));
  const auto power = blend(Pack<Mask, 1>{odd}, with_sign(size, x), size);
  const auto real = blend(Pack<Mask, 1>{has_none}, kNan<T>, power);
  const auto all = blend(Pack<Mask, 1>{is_one}, T(1), real);
  return blend(Pack<Mask, 1>{mask}, all, Pack<V, 1>{result}).at[0];
}

// Bases that are NaN or have a sign, -0 too; exponents that are 0 (of 0 and infinity as well),
// beyond kLimit or NaN.
template <class V>
TENON_INLINE MaskOf<V> is_other_power(V x, V y) {
  using T = ElementOf<V>;
  constexpr int nan_or_sign = 0x01 | 0x04 | 0x10 | 0x40 | 0x80;
  // Without sign, and 0 becomes the largest.
  const __m512i size = __m512i(2 * IntegerOf<V>(y) - 1);
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
  const auto others = each([](V base, V exponent) { return is_other_power(base, exponent); }, x, y);
  return corrected(others, small_power(x, y), with_any_power<V>, x, y);
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
  const auto c = lookup(kCbrtPower<T>, as_bits(remainder)) * lookup(Table::kRoot, index);
  const auto r = multiply_add(m, lookup(Table::kInverse, index), T(-1));
  return with_sign(scale_by(multiply_add(c, r * horner(r, Table::kSeries), c), third), x);
}

namespace detail {

// Rounded to nearest, as the instruction does in more than twice the time: the last step adds what
// a root lacks by its square. Before it is rounded, the sum is nearer to sqrt(x) than any number
// halfway between two neighbours: of floats that holds for all of them; of doubles it errs by less
// than 2^-50 ulp, and the few roots that are as near to such a number are tests.
template <class V, int K>
TENON_INLINE Pack<V, K> nearest_root(const Pack<V, K>& x) {
  const auto rough = rsqrt14(x), start = x * rough, half = rough * 0.5f;
  const auto last = [&x](const auto& near, const auto& half_inverse) {
    return multiply_add(subtract_product(near, near, x), half_inverse, near);
  };
  const auto lost = subtract_product(start, half, broadcast_like(0.5f, x));
  const auto better = multiply_add(start, lost, start),
             half_inverse = multiply_add(half, lost, half);
  if constexpr (kIsSingle<V>) {
    return last(better, half_inverse);
  } else {
    const auto rest = subtract_product(better, half_inverse, broadcast_like(0.5, x));
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
// The unit that divides works beside the others: it takes one register of four.
TENON_INLINE FloatVecs<4> sqrt(const FloatVecs<4>& x) {
  const auto most = math::sqrt(FloatVecs<3>{x.at[0], x.at[1], x.at[2]});
  const auto last = detail::exact_root(FloatVecs<1>{x.at[3]});
  return {most.at[0], most.at[1], most.at[2], last.at[0]};
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
    const auto lost = at_most(1, subtract_product(x * rough, rough, broadcast_like(1, x)));
    return multiply_add(rough * 0.5f, lost, rough);
  };
  const auto once = better(rsqrt14(x));
  if constexpr (kIsSingle<V>)
    return once;
  else
    return better(once);
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
