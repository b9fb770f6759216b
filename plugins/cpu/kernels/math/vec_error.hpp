// SPDX-License-Identifier: Apache-2.0
// The error functions and the normal distribution of registers, by a polynomial for each of up to
// 32 intervals, of doubles 16. What falls like exp(-x^2) has that as a factor where it is small.
#pragma once

#include "math/special.hpp"
#include "math/vec_exponential.hpp"
#include "math/vec_piecewise.hpp"

#ifdef TENON_HAS_VEC512
#include "math/vec_error_table.hpp"

namespace tenon::cpu::TENON_CPU_ISA::math {

namespace detail {

// exp(-factor a^2), where the rounding error of a^2 counts in the far tail; `factor` is a power of
// two.
template <int K>
TENON_INLINE DoubleVecs<K> gaussian(const DoubleVecs<K>& a, double factor) {
  const auto square = a * a;
  auto parts = exp_parts(square * -factor);
  parts.r = subtract_product(multiply_subtract(a, a, square), factor, parts.r);
  return exp_of_parts(parts);
}
// Of floats 2^(power + f), a multiple of 1/32 and the rest, since the logarithm of e in two parts
// may have the factor.
template <int K>
struct VecGaussian {
  FloatVecs<K> fraction, power, f;
};
template <int K>
TENON_INLINE VecGaussian<K> gaussian_parts(const FloatVecs<K>& a, float factor) {
  using Table = ExpTable<float>;
  const float scale = -factor * kLog2E<float>, scale_low = -factor * 1.92596303e-8f;
  const auto square = a * a, lost = multiply_subtract(a, a, square);
  const auto sum = multiply_add(square, scale, Table::kRound), power = sum - Table::kRound;
  const auto f = multiply_add(square, scale_low, multiply_subtract(square, scale, power));
  return {lookup(Table::kFractions, as_bits(sum)), power, multiply_add(lost, scale, f)};
}
template <int K>
TENON_INLINE FloatVecs<K> gaussian_of_parts(const VecGaussian<K>& parts) {
  const auto& [fraction, power, f] = parts;
  const auto slope = horner(f, 0.693147182f, 0.240226507f, 0.0555041097f);  // (2^f - 1) / f
  return scale_by(multiply_add(fraction * f, slope, fraction), power);
}
template <int K>
TENON_INLINE FloatVecs<K> gaussian(const FloatVecs<K>& a, float factor) {
  return gaussian_of_parts(gaussian_parts(a, factor));
}
// The same times 2^64, for lowered(): denormals would take a hundred times as long.
template <int K>
TENON_INLINE FloatVecs<K> raised_gaussian(const FloatVecs<K>& a, float factor) {
  auto parts = gaussian_parts(a, factor);
  parts.power = parts.power + 64.0f;
  return gaussian_of_parts(parts);
}

// erfc(a) exp(a^2) for a = factor b, up to where erfc is 0, without the rounding error of that
// product.
template <class V, int K>
TENON_INLINE Pack<V, K> erfc_scaled(const Pack<V, K>& b, ElementOf<V> factor) {
  using T = ElementOf<V>;
  constexpr auto& table = kErfcScaled<T>;
  constexpr int bits = kIsSingle<V> ? 3 : 2;
  constexpr T stretch = kIsSingle<V> ? T(1) : T(0.549);
  const auto index = octave_part<bits>(multiply_add(b, stretch * factor, T(1)));
  const auto r = multiply_subtract(b, factor, lookup(table.centre, index));
  return piecewise(table.coefficient, index, r);
}

// normal_cdf(x) by normal_cdf(-|x|), and erfc(x) by erfc(|x|).
template <class V, int K>
TENON_INLINE Pack<V, K> normal_cdf_of_tail(const Pack<V, K>& tail, const Pack<V, K>& x) {
  return blend(sign_mask(x), tail, ElementOf<V>(1) - tail);
}
template <class V, int K>
TENON_INLINE Pack<V, K> erfc_of_tail(const Pack<V, K>& tail, const Pack<V, K>& x) {
  return blend(sign_mask(x), ElementOf<V>(2) - tail, tail);
}

// Where erfc, normal_cdf and the density of the normal distribution are 0, and up to where those of
// floats are no denormals.
template <Float T>
inline constexpr T kErfcEnd = std::same_as<T, float> ? T(10.3) : T(27.3);
template <Float T>
inline constexpr T kNormalEnd = std::same_as<T, float> ? T(14.5) : T(38.6);
inline constexpr float kErfcNormal = 9.19f, kNormalCdfNormal = 12.94f, kNormalPdfNormal = 13.14f;

template <int K>
TENON_INLINE FloatVecs<K> tail_erfc(const FloatVecs<K>& x) {
  const auto a = at_most(absolute(x), kErfcEnd<float>);
  return erfc_of_tail(lowered(raised_gaussian(a, 1.0f) * erfc_scaled(a, 1.0f)), x);
}
// By the polynomials of kNormalTail, of which those of far intervals lack a factor exp(-x^2 / 2).
template <int K>
TENON_INLINE FloatVecs<K> tail_normal_cdf(const FloatVecs<K>& x) {
  const auto a = at_most(absolute(x), kNormalEnd<float>);
  const auto part = multiply_add(a, kNormalFarSlope, kNormalFarStart);
  const auto index = as_bits(at_most(a, part) + kRound<float> / 4);
  const auto value = piecewise(kNormalTail, index, a - lookup(kNormalCentre, index));
  const auto tail = is_any_above(a, kNormalCdfNormal) ? lowered(raised_gaussian(a, 0.5f) * value)
                                                      : gaussian(a, 0.5f) * value;
  return normal_cdf_of_tail(blend(is_less(broadcast_like(kNormalTailEnd, a), a), tail, value), x);
}

template <Float T>
inline constexpr T kNormalPeak = static_cast<T>(0.3989422804014327);

}  // namespace detail

template <int K>
TENON_INLINE FloatVecs<K> erf(const FloatVecs<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 3.99f);
  const auto index = octave_part<2>(at_least(a, kErfFirst));
  return with_sign(piecewise(kErf.coefficient, index, a - lookup(kErf.centre, index)), x);
}
template <int K>
TENON_INLINE DoubleVecs<K> erf(const DoubleVecs<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), 15.4 * kErfStep);
  const auto index = as_bits(multiply_add(a, 1 / kErfStep, kRound<double>));
  return with_sign(piecewise(kErf64.coefficient, index, a - lookup(kErf64.centre, index)), x);
}

template <int K>
TENON_INLINE FloatVecs<K> erfc(const FloatVecs<K>& x) {
  using namespace detail;
  if (is_any_above(x, kErfcNormal)) [[unlikely]] {
    return call_slow_path([](const auto& v) { return tail_erfc(v); }, x);
  }
  const auto a = at_most(absolute(x), kErfcNormal);
  return erfc_of_tail(gaussian(a, 1.0f) * erfc_scaled(a, 1.0f), x);
}
template <int K>
TENON_INLINE DoubleVecs<K> erfc(const DoubleVecs<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), kErfcEnd<double>);
  return erfc_of_tail(gaussian(a, 1.0) * erfc_scaled(a, 1.0), x);
}

// Beyond kNormalTailEnd only numbers below 0 have another result than 1.
template <int K>
TENON_INLINE FloatVecs<K> normal_cdf(const FloatVecs<K>& x) {
  using namespace detail;
  if (is_any_below(x, -kNormalTailEnd)) [[unlikely]] {
    return call_slow_path([](const auto& v) { return tail_normal_cdf(v); }, x);
  }
  const auto a = at_most(absolute(x), kNormalTailEnd);
  const auto index = as_bits(a + kRound<float> / 4);
  return normal_cdf_of_tail(piecewise(kNormalTail, index, above_nearest_multiple<2>(a)), x);
}
template <int K>
TENON_INLINE DoubleVecs<K> normal_cdf(const DoubleVecs<K>& x) {
  using namespace detail;
  const auto a = at_most(absolute(x), kNormalEnd<double>);
  const auto half_scaled = 0.5 * erfc_scaled(a, 0.7071067811865476);
  return normal_cdf_of_tail(gaussian(a, 0.5) * half_scaled, x);
}

template <int K>
TENON_INLINE FloatVecs<K> normal_pdf(const FloatVecs<K>& x) {
  using namespace detail;
  if (is_any_beyond(x * x, kNormalPdfNormal * kNormalPdfNormal)) [[unlikely]] {
    return call_slow_path(
        [](const auto& v) {
          const auto a = at_most(absolute(v), kNormalEnd<float>);
          return lowered(raised_gaussian(a, 0.5f) * kNormalPeak<float>);
        },
        x);
  }
  return gaussian(absolute(x), 0.5f) * kNormalPeak<float>;
}
template <int K>
TENON_INLINE DoubleVecs<K> normal_pdf(const DoubleVecs<K>& x) {
  using namespace detail;
  return gaussian(at_most(absolute(x), kNormalEnd<double>), 0.5) * kNormalPeak<double>;
}

}  // namespace tenon::cpu::TENON_CPU_ISA::math
#endif
