// SPDX-License-Identifier: Apache-2.0
// The float functions against libm in double: error in units of the last place over all magnitudes,
// and the values at the edges.
#include "vector_math.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kStride = 1999;  // through the 2^32 bit patterns: two million arguments

// |got - want| in units of the last place of `want` as a float.
double ulp_distance(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : inf;
  const float rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    const bool edge = std::fabs(want) > 0.999999 * std::numeric_limits<float>::max();
    return rounded == got ? 0 : (edge && !std::isinf(want) ? 1 : inf);
  }
  int exponent = -200;
  if (want != 0) std::frexp(want, &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
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

#define FUNCTION(NAME) \
  Unary { #NAME, [](float x) { return math::NAME(x); }, [](double x) -> double { return std::NAME(x); } }

INSTANTIATE_TEST_SUITE_P(
    VectorMath, UnaryTest,
    testing::Values(
        FUNCTION(exp), FUNCTION(exp2), FUNCTION(expm1), FUNCTION(log), FUNCTION(log2),
        FUNCTION(log10), FUNCTION(log1p), FUNCTION(sqrt), FUNCTION(cbrt), FUNCTION(sin),
        FUNCTION(cos), FUNCTION(tan), FUNCTION(asin), FUNCTION(acos), FUNCTION(atan),
        FUNCTION(sinh), FUNCTION(cosh), FUNCTION(tanh), FUNCTION(asinh), FUNCTION(acosh),
        FUNCTION(atanh), FUNCTION(erf), FUNCTION(erfc),
        Unary{"rsqrt", [](float x) { return math::rsqrt(x); },
              [](double x) { return 1 / std::sqrt(x); }},
        Unary{"sigmoid", [](float x) { return math::sigmoid(x); },
              [](double x) { return 1 / (1 + std::exp(-x)); }},
        Unary{"round", [](float x) { return math::round(x); },
              [](double x) { return std::nearbyint(x); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(VectorMath, LoopsAgreeWithSingleCalls) {
  // A vectorised loop takes another path through the compiler than one call.
  std::vector<float> x, y(4096);
  for (int i = 0; i < 4096; ++i) x.push_back(static_cast<float>(i - 2048) / 16);
  for (int i = 0; i < 4096; ++i) y[i] = math::exp(x[i]);
  for (int i = 0; i < 4096; ++i) ASSERT_LE(ulp_distance(y[i], std::exp(double{x[i]})), 4) << x[i];
  for (int i = 0; i < 4096; ++i) y[i] = math::sin(x[i] * 1e6f);
  for (int i = 0; i < 4096; ++i) {
    ASSERT_LE(ulp_distance(y[i], std::sin(double{x[i] * 1e6f})), 4) << x[i];
  }
}

TEST(VectorMath, PowAgreesWithLibm) {
  const float values[] = {0.0f, -0.0f, 1.0f,  -1.0f, 2.0f, -2.0f, 0.5f, -0.5f, 3.0f, -3.0f, 1e-30f,
                          1e30f, -1e30f, 7.25f, -7.25f, 1e-45f, 16777217.0f, inf, -inf, nan, 127.0f};
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
