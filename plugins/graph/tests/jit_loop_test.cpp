// SPDX-License-Identifier: Apache-2.0
// Loops of machine code: every operation, dtype and length gives the bits that C++ gives.
#include "groups/jit_loop.hpp"

#include <gtest/gtest.h>
#include <tenon/abi.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::graph {
namespace {

using Source = ChainStep::Source;

constexpr Arithmetic kAll[] = {
    Arithmetic::kAdd,     Arithmetic::kSubtract,   Arithmetic::kMultiply,   Arithmetic::kDivide,
    Arithmetic::kMaximum, Arithmetic::kMinimum,    Arithmetic::kNegative,   Arithmetic::kAbsolute,
    Arithmetic::kSquare,  Arithmetic::kSquareRoot, Arithmetic::kReciprocal, Arithmetic::kRelu};

template <class T>
T expected(Arithmetic arithmetic, T x, T y) {
  auto larger = [](T a, T b) { return a != a ? a : a > b ? a : b; };
  switch (arithmetic) {
    case Arithmetic::kAdd:
      return x + y;
    case Arithmetic::kSubtract:
      return x - y;
    case Arithmetic::kMultiply:
      return x * y;
    case Arithmetic::kDivide:
      return x / y;
    case Arithmetic::kMaximum:
      return larger(x, y);
    case Arithmetic::kMinimum:
      return x != x ? x : x < y ? x : y;
    case Arithmetic::kNegative:
      return -x;
    case Arithmetic::kAbsolute:
      return std::abs(x);
    case Arithmetic::kSquare:
      return x * x;
    case Arithmetic::kSquareRoot:
      return std::sqrt(x);
    case Arithmetic::kReciprocal:
      return 1 / x;
    default:
      return larger(x, 0);
  }
}

template <class T>
std::vector<T> numbers() {
  using Limits = std::numeric_limits<T>;
  const T specials[] = {0,
                        -T(0),
                        1,
                        -1,
                        T(1) / 3,
                        -1000,
                        Limits::max(),
                        Limits::lowest(),
                        Limits::min(),
                        Limits::denorm_min(),
                        -Limits::denorm_min(),
                        Limits::infinity(),
                        -Limits::infinity(),
                        Limits::quiet_NaN()};
  std::vector<T> all;
  for (T each : specials) all.push_back(each);
  for (int i = 0; i < 20; ++i) all.push_back(std::sin(T(i)) * std::exp2(T(i * 3 - 30)));
  return all;
}

// Bits, but for those of NaN.
template <class T>
bool is_same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
class MachineCodeTest : public testing::Test {
 protected:
  static constexpr int32_t kDtype =
      std::is_same_v<T, float> ? int32_t{TENON_DTYPE_F32} : int32_t{TENON_DTYPE_F64};
  void SetUp() override {
    ChainStep step;
    step.arithmetic = Arithmetic::kNegative;
    step.stored_to = 0;
    if (!JitLoop::of({step}, kDtype)) GTEST_SKIP() << "no machine code on this processor";
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MachineCodeTest, Types);

TYPED_TEST(MachineCodeTest, EveryOperationOfEveryLength) {
  using T = TypeParam;
  const std::vector<T> values = numbers<T>();
  for (Arithmetic arithmetic : kAll) {
    ChainStep step;
    step.arithmetic = arithmetic;
    step.sources[0] = {Source::kArray, 0};
    step.sources[1] = {Source::kArray, 1};
    step.stored_to = 2;
    const auto code = JitLoop::of({step}, this->kDtype);
    ASSERT_TRUE(code);
    std::vector<T> x, y;
    for (T a : values)
      for (T b : values) x.push_back(a), y.push_back(b);
    for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{16}, int64_t{35},
                          static_cast<int64_t>(x.size())}) {
      std::vector<T> out(static_cast<size_t>(count) + 1, 77);
      void* arrays[] = {x.data(), y.data(), out.data()};
      code->run(arrays, count);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i)
        ASSERT_TRUE(is_same(out[i], expected(arithmetic, x[i], y[i])))
            << static_cast<int>(arithmetic) << " of " << x[i] << " and " << y[i] << " gives "
            << out[i];
      ASSERT_EQ(out.back(), 77);
    }
  }
}

TYPED_TEST(MachineCodeTest, NumbersOnBothSidesAndInPlace) {
  using T = TypeParam;
  for (Arithmetic arithmetic : kAll) {
    for (int side = 0; side < operand_count(arithmetic); ++side) {
      ChainStep step;
      step.arithmetic = arithmetic;
      step.sources[side] = {Source::kNumber, 0};
      step.sources[1 - side] = {Source::kArray, 1};
      step.stored_to = 1;  // where it reads
      const auto code = JitLoop::of({step}, this->kDtype);
      for (T number : numbers<T>()) {
        const std::vector<T> before = numbers<T>();
        std::vector<T> values = before;
        void* arrays[] = {&number, values.data()};
        code->run(arrays, static_cast<int64_t>(values.size()));
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_TRUE(is_same(values[i], side == 0 ? expected(arithmetic, number, before[i])
                                                   : expected(arithmetic, before[i], number)))
              << static_cast<int>(arithmetic) << " " << number << " " << before[i];
      }
    }
  }
}

// Chains drawn at random, with results that live long and some that are stored.
TYPED_TEST(MachineCodeTest, RandomChains) {
  using T = TypeParam;
  uint64_t state = 1;
  auto draw = [&](uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state >> 33) % limit);
  };
  const std::vector<T> values = numbers<T>();
  int tried = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<ChainStep> steps(2 + draw(40));
    for (uint32_t i = 0; i < steps.size(); ++i) {
      steps[i].arithmetic = kAll[draw(std::size(kAll))];
      for (Source& source : steps[i].sources) {
        const uint32_t kind = draw(4);
        source = {kind == 0 ? Source::kNumber : Source::kArray, draw(4)};
        if (kind > 1 && i > 0) source = {Source::kResult, i - 1 - draw(std::min<uint32_t>(i, 6))};
      }
    }
    for (int32_t k = 0; k < 5; ++k) steps[draw(steps.size())].stored_to = 4 + k;
    steps.back().stored_to = 9;
    const size_t fitting = JitLoop::fitting(steps);
    ASSERT_GE(fitting, 2u);
    if (fitting < steps.size()) {
      ASSERT_FALSE(JitLoop::of(steps, this->kDtype));
      continue;
    }
    ++tried;
    const auto code = JitLoop::of(steps, this->kDtype);
    ASSERT_TRUE(code);
    const size_t count = 1 + draw(60);
    std::vector<std::vector<T>> arrays(JitLoop::kMaxArrays, std::vector<T>(count));
    for (auto& array : arrays)
      for (T& value : array) value = values[draw(values.size())];
    std::vector<std::vector<T>> want = arrays;
    for (size_t e = 0; e < count; ++e) {
      std::vector<T> results;
      for (const ChainStep& step : steps) {
        T operands[2] = {};
        for (int k = 0; k < operand_count(step.arithmetic); ++k) {
          const Source& source = step.sources[k];
          operands[k] = source.kind == Source::kResult  ? results[source.index]
                        : source.kind == Source::kArray ? arrays[source.index][e]
                                                        : arrays[source.index][0];
        }
        results.push_back(expected(step.arithmetic, operands[0], operands[1]));
        if (step.stored_to >= 0) want[static_cast<size_t>(step.stored_to)][e] = results.back();
      }
    }
    std::vector<void*> pointers;
    for (auto& array : arrays) pointers.push_back(array.data());
    code->run(pointers.data(), static_cast<int64_t>(count));
    for (size_t a = 0; a < arrays.size(); ++a)
      for (size_t e = 0; e < count; ++e)
        ASSERT_TRUE(is_same(arrays[a][e], want[a][e])) << round << " array " << a << " at " << e;
  }
  EXPECT_GT(tried, 100);
}

#if defined(__x86_64__)

// x + x and x - y of registers, which leave nothing in the others as it was.
#define TENON_CLOBBERS                                                              \
  __asm__ volatile(                                                                 \
      "vpcmpeqd %%ymm2, %%ymm2, %%ymm2\n vpcmpeqd %%ymm5, %%ymm5, %%ymm5\n"         \
      "xor %%eax, %%eax\n xor %%ecx, %%ecx\n xor %%edx, %%edx\n xor %%esi, %%esi\n" \
      "xor %%edi, %%edi\n xor %%r8d, %%r8d\n xor %%r11d, %%r11d"                    \
      :                                                                             \
      :                                                                             \
      : "xmm2", "xmm5", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r11", "cc")
#define TENON_FUNCTIONS(ISA, REGISTER, ADD, SUBTRACT)                               \
  [[gnu::target(ISA), gnu::noinline]] REGISTER doubled(REGISTER x) {                \
    TENON_CLOBBERS;                                                                 \
    return ADD(x, x);                                                               \
  }                                                                                 \
  [[gnu::target(ISA), gnu::noinline]] REGISTER difference(REGISTER x, REGISTER y) { \
    TENON_CLOBBERS;                                                                 \
    return SUBTRACT(x, y);                                                          \
  }
TENON_FUNCTIONS("avx2", __m256, _mm256_add_ps, _mm256_sub_ps)
TENON_FUNCTIONS("avx2", __m256d, _mm256_add_pd, _mm256_sub_pd)
TENON_FUNCTIONS("avx512f", __m512, _mm512_add_ps, _mm512_sub_ps)
TENON_FUNCTIONS("avx512f", __m512d, _mm512_add_pd, _mm512_sub_pd)
#undef TENON_FUNCTIONS
#undef TENON_CLOBBERS

template <class Register>
std::pair<const void*, const void*> functions_of() {
  Register (*const doubled_)(Register) = doubled;
  Register (*const difference_)(Register, Register) = difference;
  return {reinterpret_cast<const void*>(doubled_), reinterpret_cast<const void*>(difference_)};
}

// Calls preserve neither registers of vectors nor most others.
TYPED_TEST(MachineCodeTest, ChainsThatCallFunctions) {
  using T = TypeParam;
  constexpr bool is_float = std::is_same_v<T, float>;
  const std::vector<T> values = numbers<T>();
  for (uint32_t bytes : {32u, 64u}) {
    if (bytes == 64 && !__builtin_cpu_supports("avx512dq")) continue;
    std::pair<const void*, const void*> functions;
    if constexpr (is_float)
      functions = bytes == 32 ? functions_of<__m256>() : functions_of<__m512>();
    else
      functions = bytes == 32 ? functions_of<__m256d>() : functions_of<__m512d>();
    // a = x * y, b = -a, c = a + a by a call, d = b - c by a call, e = d * a, f = c - e by a call
    std::vector<ChainStep> steps(6);
    const Source results[] = {{Source::kResult, 0},
                              {Source::kResult, 1},
                              {Source::kResult, 2},
                              {Source::kResult, 3},
                              {Source::kResult, 4}};
    auto set = [&](size_t i, Arithmetic arithmetic, Source x, Source y, const void* function) {
      steps[i].arithmetic = arithmetic;
      steps[i].sources[0] = x;
      steps[i].sources[1] = y;
      steps[i].function = function;
    };
    set(0, Arithmetic::kMultiply, {Source::kArray, 0}, {Source::kNumber, 1}, nullptr);
    set(1, Arithmetic::kNegative, results[0], {}, nullptr);
    set(2, Arithmetic::kFunction, results[0], {}, functions.first);
    set(3, Arithmetic::kBinaryFunction, results[1], results[2], functions.second);
    set(4, Arithmetic::kMultiply, results[3], results[0], nullptr);
    set(5, Arithmetic::kBinaryFunction, results[2], results[4], functions.second);
    steps[1].stored_to = 2;
    steps[5].stored_to = 3;
    const auto code = JitLoop::of(steps, this->kDtype, bytes);
    if (!code) continue;  // TENON_MACHINE_CODE
    for (size_t count : {size_t{1}, size_t{7}, size_t{16}, values.size()}) {
      std::vector<T> x = values, number = {T(1.5)}, b(values.size(), 7), f(values.size(), 7);
      void* arrays[] = {x.data(), number.data(), b.data(), f.data()};
      code->run(arrays, static_cast<int64_t>(count));
      for (size_t i = 0; i < values.size(); ++i) {
        const T product = x[i] * T(1.5), twice = product + product;
        const T last = twice - (-product - twice) * product;
        ASSERT_TRUE(is_same(b[i], i < count ? -product : T(7))) << bytes << " at " << i;
        ASSERT_TRUE(is_same(f[i], i < count ? last : T(7))) << bytes << " at " << i;
      }
    }
  }
}

#endif

TYPED_TEST(MachineCodeTest, OtherDtypesHaveNone) {
  ChainStep step;
  step.stored_to = 0;
  EXPECT_FALSE(JitLoop::of({step}, TENON_DTYPE_F16));
  EXPECT_FALSE(JitLoop::of({step}, TENON_DTYPE_I32));
  EXPECT_FALSE(arithmetic_named("tenon::exp").has_value());
  EXPECT_EQ(arithmetic_named("tenon::add"), Arithmetic::kAdd);
}

}  // namespace
}  // namespace tenon::graph
