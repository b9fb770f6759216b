// SPDX-License-Identifier: Apache-2.0
// Arguments at which functions of registers would be wrong first: chosen, not random.
#include "simd/vector_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#ifdef TENON_HAS_VEC512
namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Doubles whose root is nearest to a number halfway between two neighbours: with an m of 53 bits,
// X 2^t = m^2 + m + k = (m + 1/2)^2 + k - 1/4 for a small k, which must be even. m is a root of
// that polynomial modulo 2^t, found a bit at a time.
std::vector<double> hard_radicands() {
  using Wide = unsigned __int128;
  constexpr Wide low = Wide{1} << 52, high = low << 1;
  std::vector<double> result;
  for (const int t : {52, 53}) {
    for (int k = -256; k <= 256; k += 2) {
      for (const Wide parity : {0, 1}) {
        const auto value = [k](Wide m) { return m * m + m + static_cast<Wide>(__int128{k}); };
        Wide m = parity;
        for (int bit = 1; bit < t; ++bit) m |= (value(m) >> bit & 1) << bit;
        if (m < low) m |= low;
        const Wide radicand = value(m) >> t;
        if (m >= high || value(m) != radicand << t || radicand < low || radicand >= high) continue;
        for (const int exponent : {0, 100, -90}) {
          result.push_back(
              std::ldexp(static_cast<double>(static_cast<uint64_t>(radicand)), t + exponent));
        }
      }
    }
  }
  return result;
}

TEST(HardArguments, RootsNextToNumbersHalfwayBetweenNeighbours) {
  const std::vector<double> x = hard_radicands();
  ASSERT_GT(x.size(), 500u);
  std::vector<double> out(x.size());
  math::run_array(math::vectorized([](auto v) { return math::sqrt(v); }), out.data(),
                  static_cast<int64_t>(x.size()), x.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], std::sqrt(x[i])) << x[i];
}

TEST(HardArguments, LgammaOfDoublesAtZerosAndBetweenItsWays) {
  std::vector<double> x;
  for (const double at : {0.5, 1.0, 2.0, 8.0, 1e-300, 0.01, 3.0, 30.0, 1e10, 2.55e305}) {
    for (int i = -2000; i <= 2000; ++i) {
      x.push_back(at * (1 + i * std::numeric_limits<double>::epsilon()));
      x.push_back(at * (1 + i * 1e-4));
    }
  }
  std::vector<double> out(x.size());
  math::run_array(math::call::lgamma{}, out.data(), static_cast<int64_t>(x.size()), x.data());
  for (size_t i = 0; i < x.size(); ++i) {
    int sign;
    const long double want = ::lgammal_r(x[i], &sign);
    if (want == 0 || std::isinf(static_cast<double>(want))) {
      ASSERT_EQ(out[i], static_cast<double>(want)) << x[i];
      ASSERT_EQ(std::signbit(out[i]), std::signbit(want)) << x[i];
    } else {
      ASSERT_LE(std::fabs(out[i] - want),
                4 * std::numeric_limits<double>::epsilon() * std::fabs(want))
          << x[i];
    }
  }
}

}  // namespace
}  // namespace tenon::cpu::TENON_CPU_ISA
#endif
