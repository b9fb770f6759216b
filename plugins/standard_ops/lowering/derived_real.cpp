// SPDX-License-Identifier: Apache-2.0
// Opcodes of floats, for devices that have arithmetic, comparisons, exp, log and the rest of what docs/primitives.md
// lists. Results of float32 are right to some units in the last place; those that IEEE 754 or C99 defines exactly
// (rounding, signs, neighbours, remainders) are exact.
#include <cmath>

#include "lowering/elements.hpp"

namespace tenon::standard_ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_double(const Elements& x) { return x.dtype() == TENON_DTYPE_F64; }

// How the bits of a float mean its value.
struct Format {
  int32_t bits;    // integers of its size
  int64_t sign;    // the sign bit, which is the smallest of these integers
  double one_ulp;  // 2^p: from here on all values are whole
  double least;    // the smallest normal number
  int32_t fraction;
  int64_t bias;
};
Format format_of(const Elements& x) {
  if (is_double(x)) return {TENON_DTYPE_I64, INT64_MIN, 0x1p52, 0x1p-1022, 52, 1023};
  return {TENON_DTYPE_I32, INT32_MIN, 0x1p23, 0x1p-126, 23, 127};
}

Elements bits_of(const Elements& x) { return x.bits_as(format_of(x).bits); }

Elements is_number(const Elements& x) { return equal(x, x); }

// The coefficients from the highest power down.
Elements polynomial(const Elements& x, std::initializer_list<double> coefficients) {
  const double* next = coefficients.begin();
  Elements sum = x * next[0] + next[1];
  for (next += 2; next != coefficients.end(); ++next) sum = sum * x + *next;
  return sum;
}

// -- exact ----------------------------------------------------------------------------------------

Elements truncated(const Elements& x) { return select(x < 0.0, ceil(x), floor(x)); }

// Halves to even. Sums with 2^p have no fraction, and rounding is what makes it go.
Elements rounded(const Elements& x) {
  const double big = format_of(x).one_ulp;
  const Elements size = abs(x);
  const Elements whole = copysign((size + big) - big, x);
  return select(size < big, whole, x);  // NaN stays
}

Elements with_sign_of(const Elements& x, const Elements& y) {
  const Format format = format_of(x);
  const Elements mine = bits_of(x), other = bits_of(y);
  // Adding the sign bit flips it.
  return select(not_equal(mine < int64_t{0}, other < int64_t{0}), mine + format.sign, mine)
      .bits_as(x.dtype());
}

// The bits of floats of one sign count upwards with their size.
Elements neighbour(const Elements& x, const Elements& y) {
  const Elements bits = bits_of(x), upwards = x < y, positive = 0.0 < x;
  const Elements step =
      select(equal(upwards, positive), int64_t{1}, bits * int64_t{0} - int64_t{1});
  const Elements next = (bits + step).bits_as(x.dtype());
  const Elements smallest = copysign((bits * int64_t{0} + int64_t{1}).bits_as(x.dtype()), y);
  const Elements result = select(equal(x, 0.0), smallest, select(equal(x, y), y, next));
  return select(both(is_number(x), is_number(y)), select(equal(x, y), y, result), x + y);
}

// |x| of float32 as fraction * 2^(exponent - 150), where the fraction has at most 24 bits.
struct Parts {
  Elements fraction, exponent;  // int32
};
Parts parts_of(const Elements& x) {
  const Elements bits = bits_of(abs(x));
  // As a float32 the bits may round up to the next exponent.
  Elements exponent = floor(bits.to(TENON_DTYPE_F32) * 0x1p-23).to(TENON_DTYPE_I32);
  exponent = select(bits < exponent * int64_t{1 << 23}, exponent - int64_t{1}, exponent);
  const Elements fraction = bits - exponent * int64_t{1 << 23};
  const Elements is_normal = int64_t{0} < exponent;
  return {select(is_normal, fraction + int64_t{1 << 23}, fraction), maximum(exponent, int64_t{1})};
}

// x mod y of int64, for 0 <= x < 2^62 and 0 < y <= 2^24: each quotient of float32 takes 21 bits off.
Elements small_remainder(const Elements& x, const Elements& y, const Elements& real_y) {
  Elements rest = x;
  for (int i = 0; i < 3; ++i)
    rest = rest - (rest.to(TENON_DTYPE_F32) / real_y).to(TENON_DTYPE_I64) * y;
  rest = select(rest < int64_t{0}, rest + y, rest);
  return select(y <= rest, rest - y, rest);
}

// Long division in base 2^38 of the fractions, which are integers: exact for all float32.
Elements truncated_remainder(const Elements& x, const Elements& y) {
  const Parts a = parts_of(x), b = parts_of(y);
  const Elements by_zero = equal(y, 0.0);
  const Elements divisor = select(by_zero, int64_t{1}, b.fraction).to(TENON_DTYPE_I64);
  const Elements real_divisor = divisor.to(TENON_DTYPE_F32);
  const Elements digits = a.exponent - b.exponent;
  Elements left = maximum(digits, int64_t{0});
  Elements rest = small_remainder(a.fraction.to(TENON_DTYPE_I64), divisor, real_divisor);
  for (int i = 0; i < 7; ++i) {  // 253 digits of base 2
    const Elements now = minimum(left, int64_t{38});
    rest = small_remainder(rest * power_of_two(now).to(TENON_DTYPE_I64), divisor, real_divisor);
    left = left - now;
  }
  // The result may be below the normal numbers, which one power of two is not: two are.
  const Elements scale = b.exponent - int64_t{150}, first = maximum(scale, int64_t{-100});
  const Elements size =
      rest.to(TENON_DTYPE_F32) * power_of_two(first) * power_of_two(scale - first);
  const Elements result = select(digits < int64_t{0}, x, copysign(size, x));
  const Elements is_infinite = equal(abs(y), kInfinity);
  const Elements is_defined = both(abs(x) < kInfinity, both(is_number(y), not_equal(y, 0.0)));
  const Elements nan = (x - x) / (x - x);
  return select(is_defined, select(is_infinite, x, result), nan);
}

Elements remainder(const Elements& x, const Elements& y) {
  const Elements r = x.binary(TENON_BINARY_FMOD, x, y);
  const Elements other_sign = not_equal(r < 0.0, y < 0.0);
  return select(equal(r, 0.0), copysign(r, y), select(other_sign, r + y, r));
}

// The quotient that belongs to the remainder. It is a whole number but for its rounding.
Elements floor_quotient(const Elements& x, const Elements& y) {
  const Elements r = x.binary(TENON_BINARY_FMOD, x, y), whole = (x - r) / y, exact = x / y;
  const Elements is_below = both(not_equal(r, 0.0), not_equal(r < 0.0, y < 0.0));
  const Elements quotient = select(is_below, whole - 1.0, whole), low = floor(quotient);
  const Elements nearest = select(0.5 < quotient - low, low + 1.0, low);
  return select(equal(y, 0.0), exact,
                select(equal(quotient, 0.0), copysign(quotient, exact), nearest));
}

// -- within some units in the last place ----------------------------------------------------------

// Scaled by the larger of both, so that no square overflows or vanishes.
Elements hypotenuse(const Elements& x, const Elements& y) {
  const Elements a = abs(x), b = abs(y), large = maximum(a, b), ratio = minimum(a, b) / large;
  const Elements result = large * sqrt(ratio * ratio + 1.0);
  // An infinite side makes it infinite, also beside NaN.
  const Elements is_infinite = either(equal(a, kInfinity), equal(b, kInfinity));
  return select(is_infinite, kInfinity, select(equal(large, 0.0), large, result));
}

// A power, and one step of Newton's method for the digits that it lost.
Elements cube_root(const Elements& x) {
  const Elements size = abs(x);
  const Elements guess = size.binary(TENON_BINARY_POW, size, 1.0 / 3.0), square = guess * guess;
  const Elements root = guess - (guess - size / square) / 3.0;
  const Elements is_plain = both(0.0 < size, size < kInfinity);
  return select(is_plain, copysign(root, x), x);
}

// With t = tanh(x / 2), 2 t / (1 - t), which loses no digits near zero.
Elements exp_less_one(const Elements& x) {
  const Elements t = tanh(x * 0.5);
  return select(abs(x) < 1.0, (t + t) / (1.0 - t), exp(x) - 1.0);
}

// The exponent is read from the bits, so that powers of two have whole logarithms.
Elements binary_logarithm(const Elements& x) {
  const Format format = format_of(x);
  const Elements is_plain = both(0.0 < x, x < kInfinity), is_small = x < format.least;
  const double up = std::ldexp(1.0, format.fraction + 1);
  const Elements normal = select(is_plain, select(is_small, x * up, x), 1.0);
  const Elements bits = bits_of(normal);
  const double unit = std::ldexp(1.0, -format.fraction);
  const int64_t one = int64_t{1} << format.fraction;
  Elements exponent = floor(bits.to(x.dtype()) * unit);
  // From sqrt(1/2) to sqrt(2), so that the logarithm of a number near 1 keeps its digits.
  Elements m = (bits - (exponent.to(format.bits) - format.bias) * one).bits_as(x.dtype());
  const Elements is_large = 1.41421356237309515 < m;
  m = select(is_large, m * 0.5, m);
  exponent = select(is_large, exponent + 1.0, exponent) - static_cast<double>(format.bias);
  exponent = select(is_small, exponent - (format.fraction + 1.0), exponent);
  return select(is_plain, exponent + log(m) * 1.44269504088896341, log(x));
}

// W. H. Press et al., Numerical Recipes, section 6.2: a Chebyshev fit with relative error 1.2e-7.
Elements complementary_error(const Elements& x) {
  const Elements z = abs(x), t = 1.0 / (z * 0.5 + 1.0);
  const Elements fit =
      polynomial(t, {0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806,
                     0.09678418, 0.37409196, 1.00002368, -1.26551223});
  const Elements tail = t * exp(fit - z * z);
  const Elements positive = select(z < 100.0, tail, 0.0);  // infinity less infinity is NaN
  return select(is_number(x), select(x < 0.0, 2.0 - positive, positive), x);
}

// log gamma(1 + z) for |z| <= 1/2: -gamma z + sum of zeta(k) (-z)^k / k, M. Abramowitz and I. A. Stegun, Handbook of
// Mathematical Functions, 6.1.33.
Elements log_gamma_near_one(const Elements& z) {
  constexpr double kZeta[] = {
      1.6449340668482264, 1.2020569031595942, 1.0823232337111382, 1.0369277551433699,
      1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822,
      1.0009945751278180, 1.0004941886041195, 1.0002460865533080, 1.0001227133475785,
      1.0000612481350587, 1.0000305882363070, 1.0000152822594086, 1.0000076371976379,
      1.0000038172932650, 1.0000019082127166, 1.0000009539620339, 1.0000004769329868};
  constexpr int kTerms = static_cast<int>(std::size(kZeta));
  Elements sum = z * 0.0;
  for (int i = kTerms - 1; i >= 0; --i) {
    const int k = i + 2;
    sum = sum * z + (k % 2 == 0 ? 1.0 : -1.0) * kZeta[i] / k;
  }
  return (sum * z - 0.57721566490153286) * z;
}

// Of x >= 1/2. Near its zeros, 1 and 2, by its series; above by Stirling's (6.1.41), 8 steps further up.
Elements log_gamma_positive(const Elements& x) {
  const Elements near_one = log_gamma_near_one(minimum(x, 1.5) - 1.0);
  const Elements z = minimum(x, 2.5) - 2.0;
  const Elements near_two = log_gamma_near_one(maximum(z, -0.5)) + log1p(maximum(z, -0.5));
  Elements up = x, product = x * 0.0 + 1.0;
  const Elements is_small = x < 10.0;
  const Elements low = select(is_small, x, 1.0);
  for (int i = 0; i < 4; ++i) product = product * ((low + double(2 * i)) * (low + (2.0 * i + 1)));
  up = select(is_small, x + 8.0, x);
  const Elements inverse = 1.0 / up, square = inverse * inverse;
  const Elements series =
      inverse * polynomial(square, {1.0 / 1260, -1.0 / 360, 1.0 / 12}) + 0.91893853320467274;
  // (x - 1/2) log x - x; grouped so that huge x make infinity, not NaN.
  const Elements stirling = (up - 0.5) * (log(up) - 1.0) - 0.5 + series;
  const Elements large = select(is_small, stirling - log(product), stirling);
  const Elements by_series = select(x < 1.5, near_one, near_two);
  return select(x < 2.5, by_series, select(x < kInfinity, large, x));
}

// Below 1/2 by Euler's reflection, with the sine of the distance to the nearest whole number.
Elements log_gamma(const Elements& x) {
  const Elements is_low = x < 0.5;
  const Elements positive = log_gamma_positive(select(is_low, 1.0 - x, x));
  const Elements distance = abs(x - x.unary(TENON_UNARY_ROUND));
  const Elements sine = sin(distance * 3.14159265358979312);
  const Elements reflected =
      select(equal(distance, 0.0), kInfinity, 1.14472988584940016 - log(sine) - positive);
  // log gamma is -log |x| where |x| is lost beside 1.
  const Elements size = abs(x), is_tiny = size < 0x1p-25;
  const Elements low = select(is_tiny, -log(size), select(equal(size, kInfinity), size, reflected));
  return select(is_low, low, positive);
}

}  // namespace

Derived derived_real_unary(int64_t opcode, const Elements& x) {
  switch (opcode) {
    case TENON_UNARY_ROUND:
      return rounded(x);
    case TENON_UNARY_TRUNC:
      return truncated(x);
    case TENON_UNARY_CBRT:
      return cube_root(x);
    case TENON_UNARY_EXPM1:
      return exp_less_one(x);
    case TENON_UNARY_LOG2:
      return binary_logarithm(x);
    case TENON_UNARY_LOG10:
      return log(x) * 0.434294481903251828;
    case TENON_UNARY_ERFC:
      if (is_double(x)) return {};  // the fit has the digits of float32
      return complementary_error(x);
    case TENON_UNARY_LGAMMA:
      if (is_double(x)) return {};
      return log_gamma(x);
    default:
      return {};
  }
}

Derived derived_real_binary(int64_t opcode, const Elements& x, const Elements& y) {
  switch (opcode) {
    case TENON_BINARY_FLOOR_DIVIDE:
      return floor_quotient(x, y);
    case TENON_BINARY_REMAINDER:
      return remainder(x, y);
    case TENON_BINARY_FMOD:
      if (is_double(x)) return {};  // an integer of 64 bits has no room for its digits
      return truncated_remainder(x, y);
    case TENON_BINARY_HYPOT:
      return hypotenuse(x, y);
    case TENON_BINARY_COPYSIGN:
      return with_sign_of(x, y);
    case TENON_BINARY_NEXTAFTER:
      return neighbour(x, y);
    default:
      return {};
  }
}

}  // namespace tenon::standard_ops
