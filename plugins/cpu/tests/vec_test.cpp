// SPDX-License-Identifier: Apache-2.0
// What kernels do with registers, against the same on one element at a time: for every instruction set, and for every mask,
// every number of 16 bits, and lengths around those of registers.
#include "simd/vec.hpp"
#include "elementwise/low_precision.hpp"
#include "gemm/int8.hpp"
#include "simd/low_precision.hpp"
#include "simd/transpose.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

using Random = std::mt19937_64;

// A register whose elements are i + 1, so that none is zero.
template <class T>
typename Vec<T>::Vector numbered() {
  typename Vec<T>::Vector x;
  for (int i = 0; i < Vec<T>::count; ++i) x[i] = static_cast<T>(i + 1);
  return x;
}

template <class T>
class VecTest : public testing::Test {};
using Elements = testing::Types<int32_t, uint32_t, float, int64_t, uint64_t, double>;
TYPED_TEST_SUITE(VecTest, Elements);

TYPED_TEST(VecTest, MasksAreBits) {
  using L = Vec<TypeParam>;
  for (uint32_t bits = 0; bits < 1u << L::count; ++bits) {
    typename L::Indices mask{};
    for (int i = 0; i < L::count; ++i) mask[i] = -static_cast<typename L::Index>(bits >> i & 1);
    ASSERT_EQ(mask_bits(mask), bits);
    ASSERT_EQ(any_of(mask), bits != 0);
  }
}

TYPED_TEST(VecTest, SelectedElementsMoveToTheFront) {
  using L = Vec<TypeParam>;
  if constexpr (can_compress(sizeof(TypeParam))) {
    for (uint32_t bits = 0; bits < 1u << L::count; ++bits) {
      const auto front = compressed(numbered<TypeParam>(), bits);
      int at = 0;
      for (int i = 0; i < L::count; ++i) {
        if (bits >> i & 1) {
          ASSERT_EQ(front[at++], static_cast<TypeParam>(i + 1)) << bits;
        }
      }
    }
  } else {
    GTEST_SKIP() << "this instruction set compresses nothing";
  }
}

TYPED_TEST(VecTest, NanIsUnordered) {
  using L = Vec<TypeParam>;
  if constexpr (std::is_floating_point_v<TypeParam>) {
    constexpr TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
    EXPECT_FALSE(any_of(unordered(numbered<TypeParam>(), numbered<TypeParam>())));
    for (int i = 0; i < L::count; ++i) {
      auto x = numbered<TypeParam>();
      x[i] = nan;
      EXPECT_TRUE(any_of(unordered(x, numbered<TypeParam>()))) << i;
      EXPECT_TRUE(any_of(unordered(numbered<TypeParam>(), x))) << i;
    }
  }
}

TEST(NonzeroBits, OfSixtyFourBytes) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    uint8_t bytes[64];
    uint64_t expected = 0;
    for (int i = 0; i < 64; ++i) {
      // Mostly one bit, at every place: a byte must not be tested by some of its bits.
      bytes[i] = random() % 2 ? static_cast<uint8_t>(1u << random() % 8) : 0;
      expected |= uint64_t{bytes[i] != 0} << i;
    }
    ASSERT_EQ(nonzero_bits(bytes), expected);
  }
}

// Numbers of float32 that are hard to round to 16 bits: random bits, halves between two neighbours, edges.
std::vector<float> hard_numbers() {
  std::vector<float> numbers = {
      0.0f,      -0.0f,        INFINITY,       -INFINITY, NAN,      -NAN,       65504.0f,
      65519.99f, 65520.0f,     -65520.0f,      0x1p-24f,  0x1p-25f, 0x1.8p-25f, 0x1.000002p-25f,
      0x1p-14f,  0x1.ffcp-15f, 3.38953139e38f, 3.4e38f};
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    numbers.push_back(std::bit_cast<float>(bits));
    numbers.push_back(std::bit_cast<float>((bits & 0xffff0000u) | 0x8000u));
    // As large as float16 can be, with the bits below it at a half.
    const uint32_t exponent = 100 + bits % 45;
    numbers.push_back(std::bit_cast<float>((bits & 0x807fe000u) | exponent << 23 | 0x1000u));
  }
  numbers.push_back(
      std::bit_cast<float>(0x7f800001u));  // a signalling NaN whose mantissa rounds to nothing
  return numbers;
}

template <class Element>
void expect_same(uint16_t got, Element want, float from) {
  if (std::isnan(from)) {
    ASSERT_TRUE(std::isnan(static_cast<float>(std::bit_cast<Element>(got)))) << from;
  } else {
    ASSERT_EQ(got, want.bits) << from;
  }
}

template <class Element>
constexpr int kDtype = std::is_same_v<Element, Float16> ? TENON_DTYPE_F16 : TENON_DTYPE_BF16;

template <class Element>
class LowPrecisionTest : public testing::Test {};
using LowPrecisionElements = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(LowPrecisionTest, LowPrecisionElements);

TYPED_TEST(LowPrecisionTest, RowsAreWidenedExactly) {
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(all.size());
  widen(kDtype<TypeParam>, reinterpret_cast<const char*>(all.data()), 2, wide.data(),
        static_cast<int64_t>(all.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    const float want = std::bit_cast<TypeParam>(all[i]);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(want)) << i;
    }
  }
}

TYPED_TEST(LowPrecisionTest, RowsAreRoundedToNearestEven) {
  const std::vector<float> numbers = hard_numbers();
  std::vector<uint16_t> narrowed(numbers.size());
  narrow(kDtype<TypeParam>, numbers.data(), reinterpret_cast<char*>(narrowed.data()), 2,
         static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < numbers.size(); ++i)
    expect_same(narrowed[i], TypeParam(numbers[i]), numbers[i]);
}

TYPED_TEST(LowPrecisionTest, RowsOfEveryLengthEndWhereTheyEnd) {
  for (int64_t n = 0; n <= 70; ++n) {
    std::vector<float> wide(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) wide[static_cast<size_t>(i)] = static_cast<float>(i) / 8;
    std::vector<uint16_t> narrowed(static_cast<size_t>(n) + 1, 0x1234);
    narrow(kDtype<TypeParam>, wide.data(), reinterpret_cast<char*>(narrowed.data()), 2, n);
    ASSERT_EQ(narrowed.back(), 0x1234);
    std::vector<float> back(static_cast<size_t>(n) + 1, -1.0f);
    widen(kDtype<TypeParam>, reinterpret_cast<const char*>(narrowed.data()), 2, back.data(), n);
    ASSERT_EQ(back.back(), -1.0f);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(back[static_cast<size_t>(i)], static_cast<float>(i) / 8);
  }
}

#ifdef TENON_HAS_LOW_PRECISION_VEC
TYPED_TEST(LowPrecisionTest, RegistersAreLikeElements) {
  using L = LowPrecisionVec<TypeParam>;
  const std::vector<float> numbers = hard_numbers();
  for (size_t at = 0; at + L::count <= numbers.size(); at += L::count) {
    typename L::Vector values;
    std::memcpy(&values, &numbers[at], sizeof values);
    uint16_t stored[L::count];
    L(values).store(stored);
    const L again = L::load(stored);
    for (int i = 0; i < L::count; ++i) {
      expect_same(stored[i], TypeParam(numbers[at + static_cast<size_t>(i)]),
                  numbers[at + static_cast<size_t>(i)]);
      const float want = std::bit_cast<TypeParam>(stored[i]);
      if (!std::isnan(want)) {
        ASSERT_EQ(again.values[i], want);
      }
    }
  }
}

TYPED_TEST(LowPrecisionTest, LoopsComputeEveryElementOnce) {
  using L = LowPrecisionVec<TypeParam>;
  for (int64_t n = 0; n <= 3 * L::count + 1; ++n) {
    std::vector<uint16_t> x(static_cast<size_t>(n) + 1), y(x.size());
    for (int64_t i = 0; i <= n; ++i) {
      x[static_cast<size_t>(i)] = TypeParam(static_cast<float>(i)).bits;
      y[static_cast<size_t>(i)] = TypeParam(static_cast<float>(2 * i)).bits;
    }
    const std::vector<uint16_t> before = x;
    // In place: the last register overlaps the one before.
    run_dense(
        reinterpret_cast<L*>(x.data()), n, [](L a, L b) { return math::max(a + b, L(3.0f)); },
        reinterpret_cast<const L*>(x.data()), reinterpret_cast<const L*>(y.data()));
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(x[static_cast<size_t>(i)],
                TypeParam(std::max(3.0f * static_cast<float>(i), 3.0f)).bits)
          << n << " " << i;
    ASSERT_EQ(x.back(), before.back());
  }
}

TYPED_TEST(LowPrecisionTest, MinimumAndMaximumPassNanOn) {
  using L = LowPrecisionVec<TypeParam>;
  const L one(1.0f), nan(NAN), minus(-2.0f);
  EXPECT_TRUE(std::isnan(math::min(nan, one).values[0]));
  EXPECT_TRUE(std::isnan(math::min(one, nan).values[0]));
  EXPECT_TRUE(std::isnan(math::max(nan, one).values[L::count - 1]));
  EXPECT_TRUE(std::isnan(math::max(one, nan).values[L::count - 1]));
  EXPECT_EQ(math::abs(minus).values[1], 2.0f);
  const uint16_t half = TypeParam(0.5f).bits;
  EXPECT_EQ(L::repeat(&half).values[L::count - 1], 0.5f);
}
#endif

template <class T>
class TransposeTest : public testing::Test {};
using TransposeElements = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(TransposeTest, TransposeElements);

TYPED_TEST(TransposeTest, BlocksOfEverySize) {
  constexpr int64_t size = sizeof(TypeParam);
  Random random(3);
  for (const int64_t rows : {1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 67}) {
    for (const int64_t columns : {1, 2, 3, 5, 8, 16, 17, 31, 40}) {
      std::vector<TypeParam> from(static_cast<size_t>(rows * columns)), to(from.size());
      for (TypeParam& x : from) x = static_cast<TypeParam>(random());
      transpose_elements(static_cast<int>(size), reinterpret_cast<const char*>(from.data()),
                         columns * size, reinterpret_cast<char*>(to.data()), rows * size, rows,
                         columns);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          ASSERT_EQ(to[static_cast<size_t>(j * rows + i)],
                    from[static_cast<size_t>(i * columns + j)])
              << rows << " x " << columns;
    }
  }
}

TEST(Shuffle, EvenOddAndInterleaved) {
  using V = VectorOf<int16_t>::type;
  constexpr int n = kWidth<int16_t>;
  V a, b;
  for (int i = 0; i < n; ++i) a[i] = static_cast<int16_t>(i), b[i] = static_cast<int16_t>(100 + i);
  const V even = even_elements(a, b), odd = odd_elements(a, b), low = interleave_low(a, b),
          high = interleave_high(a, b);
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(even[i], i < n / 2 ? 2 * i : 100 + 2 * i - n);
    EXPECT_EQ(odd[i], even[i] + 1);
    EXPECT_EQ(low[i], (i % 2 ? 100 : 0) + i / 2);
    EXPECT_EQ(high[i], (i % 2 ? 100 : 0) + n / 2 + i / 2);
  }
}

TEST(Int16Pairs, ProductsAreAddedExactly) {
  Random random(4);
  for (int round = 0; round < 1000; ++round) {
    Int16Pairs::Vector sum = {};
    Int16Pairs::Operand x, y;
    int32_t want[kWidth<int32_t>];
    for (int i = 0; i < kWidth<int32_t>; ++i) {
      const auto number = [&] {
        return round == 0 ? int16_t{-255} : static_cast<int16_t>(random() % 511 - 255);
      };
      const int16_t a[2] = {number(), number()}, b[2] = {number(), number()};
      x[i] = pair_of(static_cast<uint16_t>(a[0]), static_cast<uint16_t>(a[1]));
      y[i] = pair_of(static_cast<uint16_t>(b[0]), static_cast<uint16_t>(b[1]));
      sum[i] = want[i] = static_cast<int32_t>(random() % 1000);
      want[i] += a[0] * b[0] + a[1] * b[1];
    }
    Int16Pairs::add(sum, x, y);
    for (int i = 0; i < kWidth<int32_t>; ++i) ASSERT_EQ(sum[i], want[i]);
  }
}

}  // namespace
}  // namespace tenon::cpu::TENON_CPU_ISA

// Objects with constructors are made before main, by instructions of the set under test: the processor is asked before them.
__attribute__((constructor(101))) void ask_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
#if defined(__AVX512F__)
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
#elif defined(__AVX2__)
  const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  const bool supported = true;
#endif
  if (supported) return;
  std::puts("this processor lacks the instruction set under test");
  std::fflush(stdout);
  std::_Exit(0);
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
