// SPDX-License-Identifier: Apache-2.0
// The functions against libm in a wider type: error in units of the last place over all magnitudes,
// and the values at the edges.
#include "simd/vector_math.hpp"
#include "math_functions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kStride = 1999;  // through the 2^32 bit patterns: two million arguments

// |got - want| in units of the last place of `want` as a T.
template <class T, class R>
double ulp_distance(T got, R want) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : inf;
  const T rounded = static_cast<T>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    const bool edge = std::fabs(want) > R(0.999999) * Limits::max();
    return rounded == got ? 0 : (edge && !std::isinf(want) ? 1 : inf);
  }
  constexpr int lowest = Limits::min_exponent - Limits::digits;
  int exponent = lowest;
  if (want != 0) std::frexp(want, &exponent);
  return static_cast<double>(std::fabs(got - want) /
                             std::ldexp(R(1), std::max(exponent - Limits::digits, lowest)));
}

struct Unary {
  const char* name;
  float (*function)(float);
  double (*reference)(double);
};

void PrintTo(const Unary& u, std::ostream* out) { *out << u.name; }

class UnaryTest : public testing::TestWithParam<Unary> {};

TEST_P(UnaryTest, StaysWithinFourUlp) {
  const auto [name, function, reference] = GetParam();
  double worst = 0;
  float where = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += kStride) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const double distance = ulp_distance(function(x), reference(x));
    if (!(distance <= worst)) {
      worst = distance;
      where = x;
    }
  }
  EXPECT_LE(worst, 4.0) << name << "(" << where << ") = " << function(where) << ", expected "
                        << reference(where);
}

#define FUNCTION(NAME)                                                                            \
  Unary {                                                                                         \
#NAME, [](float x) { return math::NAME(x); }, [](double x) -> double { return std::NAME(x); } \
  }

INSTANTIATE_TEST_SUITE_P(
    VectorMath, UnaryTest,
    testing::Values(FUNCTION(exp), FUNCTION(exp2), FUNCTION(expm1), FUNCTION(log), FUNCTION(log2),
                    FUNCTION(log10), FUNCTION(log1p), FUNCTION(sqrt), FUNCTION(cbrt), FUNCTION(sin),
                    FUNCTION(cos), FUNCTION(tan), FUNCTION(asin), FUNCTION(acos), FUNCTION(atan),
                    FUNCTION(sinh), FUNCTION(cosh), FUNCTION(tanh), FUNCTION(asinh),
                    FUNCTION(acosh), FUNCTION(atanh), FUNCTION(erf), FUNCTION(erfc),
                    Unary{"rsqrt", [](float x) { return math::rsqrt(x); },
                          [](double x) { return 1 / std::sqrt(x); }},
                    Unary{"sigmoid", [](float x) { return math::sigmoid(x); },
                          [](double x) { return 1 / (1 + std::exp(-x)); }},
                    Unary{"round", [](float x) { return math::round(x); },
                          [](double x) { return std::nearbyint(x); }}),
    [](const auto& info) { return std::string(info.param.name); });

// Arguments of every kind next to one another: ordinary, special, beyond every limit of a fast
// path.
template <class T>
std::vector<T> mixed_arguments(int64_t count, uint64_t seed) {
  const T specials[] = {T(0),
                        -T(0),
                        T(1),
                        T(-1),
                        T(1e6),
                        T(-1e7),
                        T(3e37),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN(),
                        std::numeric_limits<T>::denorm_min(),
                        std::numeric_limits<T>::max()};
  std::vector<T> result;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto unit = static_cast<double>(seed >> 11) * 0x1p-53;
    const bool special = i >= count / 2 && i % 5 == 0;
    result.push_back(special ? specials[(seed >> 60) % 12] : static_cast<T>(24 * unit - 12));
  }
  return result;
}

template <class T, class Loop>
void expect_one_result_for_each_element(const char* name, Loop loop) {
  constexpr int64_t count = 1100;
  const std::vector<T> x = mixed_arguments<T>(count, 1), y = mixed_arguments<T>(count, 2);
  std::vector<T> whole(count), part(count);
  loop(x.data(), y.data(), whole.data(), count);
  const auto same = [](T a, T b) {
    return (a != a && b != b) || std::memcmp(&a, &b, sizeof(T)) == 0;
  };
  for (const int64_t length : {1, 2, 3, 7, 15, 17, 33, 100, 257}) {
    for (int64_t begin = 0; begin < count; begin += length) {
      const int64_t n = std::min(length, count - begin);
      loop(x.data() + begin, y.data() + begin, part.data() + begin, n);
    }
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(same(part[i], whole[i]))
          << name << "(" << x[i] << ", " << y[i] << ") is " << part[i] << " in loops of " << length
          << ", else " << whole[i];
    }
  }
}

TEST(VectorMath, AnElementHasOneResultWhereverItStands) {
  const MathFunctions functions = math_functions();
  for (const MathFunction* f = functions.begin; f != functions.end; ++f) {
    expect_one_result_for_each_element<float>(f->name, f->single);
    expect_one_result_for_each_element<double>(f->name, f->twice);
  }
}

// Loops over lanes have tables where single calls have longer polynomials.
#ifdef TENON_HAS_VEC512
constexpr bool kLanes = true;
#else
constexpr bool kLanes = false;
#endif

// What operators that are one function run, beside the function itself.
template <class T>
void expect_arrays_agree() {
  const auto check = [](const char* name, auto array, auto single) {
    for (const int64_t count : {40, 1100}) {
      const std::vector<T> x = mixed_arguments<T>(count, 3), y = mixed_arguments<T>(count, 4);
      std::vector<T> out(static_cast<size_t>(count));
      array(out.data(), count, x.data(), y.data());
      for (size_t i = 0; i < out.size(); ++i) {
        const T want = single(x[i], y[i]);
        const bool close = kLanes && std::fabs(out[i] - want) <=
                                         4 * std::numeric_limits<T>::epsilon() * std::fabs(want);
        ASSERT_TRUE(out[i] == want || close || (out[i] != out[i] && want != want))
            << name << "(" << x[i] << ", " << y[i] << ") is " << out[i] << ", else " << want;
      }
    }
  };
#define UNARY_ARRAY(NAME)                               \
  check(                                                \
      #NAME,                                            \
      [](T* out, int64_t n, const T* x, const T*) {     \
        math::run_array(math::call::NAME{}, out, n, x); \
      },                                                \
      [](T x, T) { return math::NAME(x); });
  UNARY_ARRAY(exp)
  UNARY_ARRAY(exp2)
  UNARY_ARRAY(digamma)
  UNARY_ARRAY(log)
  UNARY_ARRAY(log2)
  UNARY_ARRAY(log10)
  UNARY_ARRAY(sin)
  UNARY_ARRAY(cos)
  UNARY_ARRAY(tan)
  check(
      "pow",
      [](T* out, int64_t n, const T* x, const T* y) {
        math::run_array(math::call::pow{}, out, n, x, y);
      },
      [](T x, T y) { return math::pow(x, y); });
  check(
      "pow by 2.7",
      [](T* out, int64_t n, const T* x, const T*) {
        math::run_array(math::PowerBy<T>{T(2.7)}, out, n, x);
      },
      [](T x, T) { return math::pow(x, T(2.7)); });
}
TEST(VectorMath, ArraysOfLgammaAgreeWithSingleCalls) {
  const std::vector<float> x = mixed_arguments<float>(1100, 6);
  std::vector<float> out(x.size());
  math::run_array(math::call::lgamma{}, out.data(), 1100, x.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const float want = math::lgamma(x[i]);
    ASSERT_TRUE(out[i] == want || (out[i] != out[i] && want != want)) << x[i];
  }
}
TEST(VectorMath, ArraysAgreeWithSingleCalls) {
  expect_arrays_agree<float>();
  expect_arrays_agree<double>();
}

// Numbers on both sides of the limits between which lanes take short ways, and special values.
template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result = {T(0),
                           T(1),
                           Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::denorm_min(),
                           Limits::min() / 4,
                           Limits::min(),
                           Limits::max(),
                           T(0.5),
                           T(0.2),
                           T(2),
                           T(3),
                           T(0.24),
                           T(0.26),
                           T(5.86),
                           T(5.9),
                           T(7.69),
                           T(7.71),
                           T(9.34),
                           T(9.6),
                           T(27),
                           T(27.4),
                           T(32),
                           T(33),
                           T(62.9),
                           T(63.1),
                           T(86.9),
                           T(87.1),
                           T(88.8),
                           T(89.3),
                           T(104),
                           T(127),
                           T(709.9),
                           T(745),
                           T(1e-20),
                           T(0.9959),
                           T(0.9961),
                           T(0.999999),
                           T(1.0000001),
                           T(63.9),
                           T(64.1),
                           T(128679),
                           T(128681),
                           T(131073),
                           T(16777217),
                           T(1e30),
                           T(0x1p-100),
                           T(0x1p-96),
                           T(0x1p-95),
                           T(0x1p119),
                           T(0x1p121),
                           T(0x1p125),
                           T(0x1p126),
                           T(5.8749995),
                           T(5.875),
                           T(6),
                           T(9.18),
                           T(9.2),
                           T(10.04),
                           T(12.93),
                           T(12.95),
                           T(13.13),
                           T(13.15),
                           T(14.1),
                           T(14.6),
                           T(5.88),
                           T(5.93)};
  if constexpr (sizeof(T) == 8) {
    for (const T each : {0x1p-901, 0x1p-899, 0x1p899, 0x1p901, 1e149, 1e151, 1048576.0, 1048577.0,
                         4503599627370497.0, 9007199254740993.0, 1e300})
      result.push_back(each);
  }
  for (size_t i = result.size(); i-- > 0;) result.push_back(-result[i]);
  return result;
}

// What operators run, at the edges, for float by double and for double by long double.
template <class T>
void expect_special_values() {
  using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const std::vector<T> x = edges<T>();
  std::vector<T> out(x.size());
  const auto check = [&](const char* name, auto function, Wider (*reference)(Wider)) {
    const auto count = static_cast<int64_t>(x.size());
    if constexpr (requires { math::run_array(function, out.data(), count, x.data()); })
      math::run_array(function, out.data(), count, x.data());
    else
      for (size_t i = 0; i < x.size(); ++i) out[i] = function(x[i]);
    for (size_t i = 0; i < x.size(); ++i) {
      const Wider want = reference(x[i]);
      EXPECT_LE(ulp_distance(out[i], want), 4) << name << "(" << x[i] << ") is " << out[i];
      if (want == want) {
        EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << name << x[i];
      }
    }
  };
#define SPECIAL_CALL(NAME) check(#NAME, math::call::NAME{}, [](Wider v) { return std::NAME(v); });
#define SPECIAL_VECTORIZED(NAME)                                       \
  check(#NAME, math::vectorized([](auto v) { return math::NAME(v); }), \
        [](Wider v) { return std::NAME(v); });
  SPECIAL_CALL(exp)
  SPECIAL_CALL(exp2)
  SPECIAL_CALL(sin)
  SPECIAL_CALL(cos)
  SPECIAL_CALL(tan)
  SPECIAL_CALL(log)
  SPECIAL_CALL(log2)
  SPECIAL_CALL(log10)
  SPECIAL_CALL(log1p)
  SPECIAL_CALL(sqrt)
  SPECIAL_CALL(cbrt)
  SPECIAL_CALL(atanh)
  SPECIAL_CALL(lgamma)
  SPECIAL_VECTORIZED(expm1)
  SPECIAL_VECTORIZED(asin)
  SPECIAL_VECTORIZED(acos)
  SPECIAL_VECTORIZED(atan)
  SPECIAL_VECTORIZED(tanh)
  SPECIAL_VECTORIZED(sinh)
  SPECIAL_VECTORIZED(cosh)
  SPECIAL_VECTORIZED(asinh)
  SPECIAL_VECTORIZED(acosh)
  SPECIAL_VECTORIZED(erf)
  SPECIAL_VECTORIZED(erfc)
  check("rsqrt", math::vectorized([](auto v) { return math::rsqrt(v); }),
        [](Wider v) { return 1 / std::sqrt(v); });
  check("sigmoid", math::vectorized([](auto v) { return math::sigmoid(v); }),
        [](Wider v) { return 1 / (1 + std::exp(-v)); });
  check("normal_pdf", math::vectorized([](auto v) { return math::normal_pdf(v); }),
        [](Wider v) { return std::exp(-v * v / 2) / std::sqrt(8 * std::atan(Wider(1))); });
  check("normal_cdf", math::vectorized([](auto v) { return math::normal_cdf(v); }),
        [](Wider v) { return std::erfc(-v * std::sqrt(Wider(0.5L))) / 2; });
}
TEST(VectorMath, ArraysHaveTheSpecialValuesOfLibm) {
  expect_special_values<float>();
  expect_special_values<double>();
}

template <class T, class Wider>
void expect_values_of_two(const char* name, Wider (*reference)(Wider, Wider)) {
  const MathFunctions functions = math_functions();
  const MathFunction* f =
      std::find_if(functions.begin, functions.end,
                   [&](const MathFunction& each) { return std::strcmp(name, each.name) == 0; });
  std::vector<T> x, y;
  for (const T first : edges<T>()) {
    for (const T second : edges<T>()) {
      x.push_back(first);
      y.push_back(second);
    }
  }
  std::vector<T> out(x.size());
  if constexpr (std::is_same_v<T, float>)
    f->single(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
  else
    f->twice(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const Wider want = reference(x[i], y[i]);
    EXPECT_LE(ulp_distance(out[i], want), 4) << name << " of " << x[i] << ", " << y[i];
    if (want == want) {
      EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << name << " of " << x[i] << ", " << y[i];
    }
  }
}
TEST(VectorMath, ArraysOfTwoArgumentsHaveTheSpecialValuesOfC) {
  expect_values_of_two<float, double>("pow", std::pow);
  expect_values_of_two<float, double>("atan2", std::atan2);
  expect_values_of_two<double, long double>("pow", std::pow);
  expect_values_of_two<double, long double>("atan2", std::atan2);
}

#ifdef TENON_HAS_VEC512
// Roots are rounded to nearest: numbers next to squares, and of every exponent.
template <class T>
void expect_nearest_roots() {
  std::vector<T> x, out(4096);
  for (uint64_t i = 0; i < 4096; ++i) {
    const T number = T(1) + std::numeric_limits<T>::epsilon() * static_cast<T>(i * i * 2053);
    const T square = number * number, scale = std::ldexp(T(1), static_cast<int>(i % 250) - 125);
    x.push_back((i % 3 == 0 ? square : std::nextafter(square, T(i % 3 == 1 ? 0 : 9))) * scale);
  }
  math::run_array(math::vectorized([](auto v) { return math::sqrt(v); }), out.data(), 4096,
                  x.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], std::sqrt(x[i])) << x[i];
}
TEST(VectorMath, RootsAreRoundedToNearest) {
  expect_nearest_roots<float>();
  expect_nearest_roots<double>();
}
#endif

TEST(VectorMath, TheNormalDistributionKeepsItsTail) {
  EXPECT_EQ(math::normal_cdf(0.0f), 0.5f);
  EXPECT_EQ(math::normal_cdf(inf), 1.0f);
  EXPECT_EQ(math::normal_cdf(-inf), 0.0f);
  EXPECT_TRUE(std::isnan(math::normal_cdf(nan)));
  EXPECT_NEAR(math::normal_cdf(-30.0) / 4.906713927148187e-198, 1.0, 1e-15);
  EXPECT_EQ(math::normal_pdf(inf), 0.0f);
  EXPECT_EQ(math::normal_pdf(-1e300), 0.0);
  EXPECT_TRUE(std::isnan(math::normal_pdf(nan)));
  EXPECT_NEAR(math::normal_pdf(-30.0) / 1.4736461348785475e-196, 1.0, 1e-15);
}

template <class T>
void expect_powers_by_a_number() {
  const std::vector<T> x = mixed_arguments<T>(1100, 5);
  for (const double y : {2.0, 3.0, 1.0, -1.0, 0.5, 0.0, -2.0, -0.5, 1.0 / 3, 41.0}) {
    std::vector<T> out(x.size());
    math::run_array(math::PowerBy<T>{static_cast<T>(y)}, out.data(), 1100, x.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const T want = std::pow(x[i], static_cast<T>(y));
      if (want != want || std::fabs(want) == std::numeric_limits<T>::infinity() || want == 0) {
        ASSERT_TRUE(want == out[i] || (want != want && out[i] != out[i]))
            << x[i] << " ^ " << y << " = " << out[i];
        ASSERT_TRUE(want != want || std::signbit(out[i]) == std::signbit(want))
            << x[i] << " ^ " << y;
      } else {
        ASSERT_LE(std::fabs(out[i] - want),
                  4 * std::numeric_limits<T>::epsilon() * std::fabs(want) +
                      std::numeric_limits<T>::denorm_min())
            << x[i] << " ^ " << y;
      }
    }
  }
}
TEST(VectorMath, PowersByANumberAgreeWithLibm) {
  expect_powers_by_a_number<float>();
  expect_powers_by_a_number<double>();
}

TEST(VectorMath, DoublePowHasTheSpecialValuesOfC) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           2.0,
                           -2.0,
                           0.5,
                           -0.5,
                           3.0,
                           -3.0,
                           1e-300,
                           -1e300,
                           5e-324,
                           4503599627370497.0,
                           -9007199254740993.0,
                           infinity,
                           -infinity,
                           std::numeric_limits<double>::quiet_NaN()};
  for (const double x : values) {
    for (const double y : values) {
      const double got = math::pow(x, y), want = std::pow(x, y);
      const bool close = std::fabs(got - want) <= 1e-15 * std::fabs(want) + 5e-324;
      EXPECT_TRUE(got == want || close || (got != got && want != want))
          << "pow(" << x << ", " << y << ") = " << got << ", expected " << want;
      if (want == want) {
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " ^ " << y;
      }
    }
  }
}

TEST(VectorMath, PowAgreesWithLibm) {
  const float values[] = {0.0f,   -0.0f,  1.0f,        -1.0f,  2.0f,  -2.0f,  0.5f,
                          -0.5f,  3.0f,   -3.0f,       1e-30f, 1e30f, -1e30f, 7.25f,
                          -7.25f, 1e-45f, 16777217.0f, inf,    -inf,  nan,    127.0f};
  for (const float x : values) {
    for (const float y : values) {
      EXPECT_LE(ulp_distance(math::pow(x, y), std::pow(double{x}, double{y})), 4)
          << "pow(" << x << ", " << y << ") = " << math::pow(x, y);
    }
  }
  for (uint32_t i = 1; i < 2000000; ++i) {
    const float x = std::bit_cast<float>(i * 2654435761u & 0x7fffffffu);
    const float y = static_cast<float>(static_cast<int32_t>(i * 40503u) % 4000) / 97.0f;
    ASSERT_LE(ulp_distance(math::pow(x, y), std::pow(double{x}, double{y})), 4) << x << " ^ " << y;
  }
}

TEST(VectorMath, Atan2AgreesWithLibm) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e-40f, 1e38f, -3e38f, inf, -inf, nan, 0.3f};
  for (const float y : values) {
    for (const float x : values) {
      const float got = math::atan2(y, x);
      EXPECT_LE(ulp_distance(got, std::atan2(double{y}, double{x})), 4) << y << ", " << x;
      if (!std::isnan(got)) {
        EXPECT_EQ(std::signbit(got), std::signbit(std::atan2(y, x))) << y << ", " << x;
      }
    }
  }
}

TEST(VectorMath, KeepsTheSignOfZero) {
  EXPECT_TRUE(std::signbit(math::sin(-0.0f)));
  EXPECT_TRUE(std::signbit(math::tanh(-0.0f)));
  EXPECT_TRUE(std::signbit(math::expm1(-0.0f)));
  EXPECT_TRUE(std::signbit(math::log1p(-0.0f)));
  EXPECT_TRUE(std::signbit(math::erf(-0.0f)));
  EXPECT_TRUE(std::signbit(math::cbrt(-0.0f)));
  EXPECT_TRUE(std::signbit(math::asinh(-0.0f)));
  EXPECT_TRUE(std::signbit(math::sin(-0.0)));
  EXPECT_TRUE(std::signbit(math::tanh(-0.0)));
  EXPECT_TRUE(std::signbit(math::expm1(-0.0)));
  EXPECT_TRUE(std::signbit(math::log1p(-0.0)));
  EXPECT_TRUE(std::signbit(math::erf(-0.0)));
  EXPECT_TRUE(std::signbit(math::atan2(-0.0, 1.0)));
}

TEST(VectorMath, DigammaKeepsItsDigitsNextToItsZero) {
  // psi'(x0) (x - x0) + psi''(x0) / 2 (x - x0)^2, with x0 in two parts.
  constexpr double zero = 1.4616321449683622, zero_low = 9.549995429965697e-17;
  for (const double step : {0.0, 0x1p-52, -0x1p-52, 0x1p-40, -0x1p-30, 1e-9}) {
    const double x = zero + step, distance = (x - zero) - zero_low;
    const double want = distance * (0.9676722454476212 - 0.5 * 0.8855263379671842 * distance);
    EXPECT_NEAR(math::digamma(x) / want, 1.0, 1e-14) << x;
  }
}

// The largest error of powers next to the largest and the smallest number, for bases in [1/2, 2]:
// there an exponent multiplies the error of the logarithm most.
template <class T, class R>
double worst_of_large_exponents() {
  const MathFunctions functions = math_functions();
  const MathFunction* pow = std::find_if(functions.begin, functions.end, [](const MathFunction& f) {
    return std::strcmp(f.name, "pow") == 0;
  });
  constexpr int64_t count = 100'000;
  std::vector<T> x(count), y(count), out(count);
  for (int64_t i = 0; i < count; ++i) {
    const double log = (static_cast<double>(i) + 0.5) * 2 / count - 1;
    const double power = (i % 2 == 0 ? 1 : -1) * (0.95 + 0.05 * static_cast<double>(i % 101) / 101);
    x[i] = static_cast<T>(std::exp2(log));
    y[i] = static_cast<T>(power * std::numeric_limits<T>::max_exponent / std::log2(x[i]));
  }
  if constexpr (std::is_same_v<T, float>)
    pow->single(x.data(), y.data(), out.data(), count);
  else
    pow->twice(x.data(), y.data(), out.data(), count);
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const R want = std::pow(static_cast<R>(x[i]), static_cast<R>(y[i]));
    worst =
        std::max({worst, ulp_distance(out[i], want), ulp_distance(math::pow(x[i], y[i]), want)});
  }
  return worst;
}

TEST(VectorMath, LargeExponentsOfPowKeepTheDigits) {
  EXPECT_LE((worst_of_large_exponents<float, double>()), 3.0);
  EXPECT_LE((worst_of_large_exponents<double, long double>()), 3.0);
}

// Below 1/2 erf is no difference from 1: the error of an exponential would be all of its error.
TEST(VectorMath, ErfOfSmallDoubles) {
  double worst = 0;
  for (int i = 1; i < 1'000'000; ++i) {
    const double x = i * 0.6e-6;
    worst = std::max(worst, ulp_distance(math::erf(x), std::erf(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 3.0);
}

TEST(VectorMath, DigammaKnownValues) {
  EXPECT_NEAR(math::digamma(1.0), -0.5772156649015329, 1e-13);
  EXPECT_NEAR(math::digamma(0.5), -1.9635100260214235, 1e-13);
  EXPECT_NEAR(math::digamma(-0.5), 0.03648997397857652, 1e-13);
  EXPECT_NEAR(math::digamma(100.0), 4.600161852738087, 1e-13);
  EXPECT_TRUE(std::isnan(math::digamma(-3.0)));
}

TEST(VectorMath, IntegerDivisionNeverTraps) {
  EXPECT_EQ(math::div(7, 0), 0);
  EXPECT_EQ(math::fmod(INT32_MIN, -1), 0);
  EXPECT_EQ(math::div(INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(math::floordiv(-7, 2), -4);
  EXPECT_EQ(math::floormod(-7, 3), 2);
  EXPECT_EQ(math::floormod(7.0f, -3.0f), -2.0f);
  EXPECT_EQ(math::floordiv(-7.0f, 2.0f), -4.0f);
  EXPECT_EQ(math::shift_left<uint8_t>(1, 9), 0);
  EXPECT_EQ(math::shift_right<int8_t>(-128, 100), -1);
  EXPECT_EQ(math::pow(int64_t{3}, int64_t{13}), 1594323);
  EXPECT_EQ(math::pow(int64_t{2}, int64_t{-1}), 0);
}

}  // namespace
}  // namespace tenon::cpu::TENON_CPU_ISA

int main(int argc, char** argv) {
#if defined(__AVX512F__)
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
  const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  const bool supported = true;
#endif
  if (!supported) {
    std::puts("this processor lacks the instruction set under test");
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
