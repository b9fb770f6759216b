// SPDX-License-Identifier: Apache-2.0
// The largest error of every function, in units of the last place, for float and double and for
// every instruction set of this build that the processor has. Prints the table of docs/accuracy.md.
//
//   cpu_math_accuracy [--all] [--step N] [--samples N] [function...]
//
// float functions of one argument take every 251st bit pattern (--step), or with --all every one
// (minutes for each); the others random arguments, some of them next to the points where functions
// change their form (sample). Half of the pairs for pow are chosen such that the power is neither 0
// nor infinity. The reference is libm in double for float and in long double (64-bit mantissa) for
// double. Fails above 4 ulp, except for double lgamma and digamma, which lose digits near their
// zeros.
#include "math_functions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

using tenon::cpu::MathFunction;
using tenon::cpu::MathFunctions;

// psi(x), by recurrence to x >= 20 and the asymptotic series.
template <class R>
R digamma(R x) {
  const R pi = 3.141592653589793238462643383279502884L;
  if (x == 0) return std::copysign(std::numeric_limits<R>::infinity(), -x);
  if (std::isinf(x)) return x > 0 ? x : std::numeric_limits<R>::quiet_NaN();
  if (x < 0) {
    if (std::floor(x) == x) return std::numeric_limits<R>::quiet_NaN();
    return digamma(1 - x) - pi / std::tan(pi * (x - std::nearbyint(x)));
  }
  R result = 0;
  for (; x < 20; x += 1) result -= 1 / x;
  const R t = 1 / (x * x);
  const R series =
      t *
      (R(1) / 12 -
       t * (R(1) / 120 -
            t * (R(1) / 252 -
                 t * (R(1) / 240 - t * (R(1) / 132 - t * (R(691) / 32760 - t * (R(1) / 12)))))));
  return result + std::log(x) - R(0.5) / x - series;
}

struct Reference {
  const char* name;
  double (*twice)(double, double);
  long double (*extended)(long double, long double);
  double double_limit = 4;  // ulp
};

#define REFERENCE(NAME, CALL, ...)                                                               \
  {                                                                                              \
    NAME, [](double x, double y) -> double { return (void)y, CALL; },                            \
        [](long double x, long double y) -> long double { return (void)y, CALL; }, ##__VA_ARGS__ \
  }

constexpr Reference kReferences[] = {
    REFERENCE("exp", std::exp(x)),
    REFERENCE("exp2", std::exp2(x)),
    REFERENCE("expm1", std::expm1(x)),
    REFERENCE("log", std::log(x)),
    REFERENCE("log2", std::log2(x)),
    REFERENCE("log10", std::log10(x)),
    REFERENCE("log1p", std::log1p(x)),
    REFERENCE("sqrt", std::sqrt(x)),
    REFERENCE("rsqrt", 1 / std::sqrt(x)),
    REFERENCE("cbrt", std::cbrt(x)),
    REFERENCE("sin", std::sin(x)),
    REFERENCE("cos", std::cos(x)),
    REFERENCE("tan", std::tan(x)),
    REFERENCE("asin", std::asin(x)),
    REFERENCE("acos", std::acos(x)),
    REFERENCE("atan", std::atan(x)),
    REFERENCE("sinh", std::sinh(x)),
    REFERENCE("cosh", std::cosh(x)),
    REFERENCE("tanh", std::tanh(x)),
    REFERENCE("asinh", std::asinh(x)),
    REFERENCE("acosh", std::acosh(x)),
    REFERENCE("atanh", std::atanh(x)),
    REFERENCE("erf", std::erf(x)),
    REFERENCE("erfc", std::erfc(x)),
    REFERENCE("normal_cdf", std::erfc(-x* std::sqrt(decltype(x)(0.5L))) / 2),
    REFERENCE("normal_pdf", std::exp(-x* x / 2) * decltype(x)(0.398942280401432677940L)),
    REFERENCE("sigmoid", 1 / (1 + std::exp(-x))),
    REFERENCE("lgamma", std::lgamma(x), HUGE_VAL),
    REFERENCE("digamma", digamma(x), HUGE_VAL),
    REFERENCE("pow", std::pow(x, y)),
    REFERENCE("atan2", std::atan2(x, y)),
    REFERENCE("hypot", std::hypot(x, y)),
};

// |got - want| in units of the last place of `want` as a T.
template <class T, class R>
double ulp_distance(T got, R want) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got) ? 0 : HUGE_VAL;
  const T rounded = static_cast<T>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    // At the edge of the range the next number of a wider type counts.
    const bool edge = std::fabs(want) > R(Limits::max()) * (1 - 8 * R(Limits::epsilon()));
    return edge && !std::isinf(want) ? 1 : HUGE_VAL;
  }
  int exponent = Limits::min_exponent - Limits::digits;
  if (want != 0) std::frexp(want, &exponent);
  exponent = std::max(exponent - Limits::digits, Limits::min_exponent - Limits::digits);
  return static_cast<double>(std::fabs(static_cast<R>(got) - want) / std::ldexp(R(1), exponent));
}

struct Worst {
  double ulps = -1, x = 0, y = 0;
};

constexpr int64_t kBlock = 1 << 14;

template <class T, class R, class Loop, class Exact, class Next>
Worst measure(Loop loop, Exact exact, int64_t count, Next next) {
  std::vector<T> x(kBlock), y(kBlock), out(kBlock);
  Worst worst;
  for (int64_t at = 0; at < count; at += kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) next(at + i, x[i], y[i]);
    loop(x.data(), y.data(), out.data(), kBlock);
    for (int64_t i = 0; i < kBlock; ++i) {
      const double ulps = ulp_distance(out[i], exact(static_cast<R>(x[i]), static_cast<R>(y[i])));
      if (!(ulps <= worst.ulps))
        worst = {ulps, static_cast<double>(x[i]), static_cast<double>(y[i])};
    }
  }
  return worst;
}

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A number in [-1, 1).
double unit(uint64_t index) {
  return static_cast<double>(static_cast<int64_t>(mixed(index))) * 0x1p-63;
}

// Of four arguments one has any bits, one lies in [-16, 16), one has any magnitude from 2^-40 to
// 2^11, where functions are neither a constant nor their argument, and one lies next to a point at
// which functions change their form: a small multiple of 1/4, log(2) / 2 or pi / 4.
template <class T>
T sample(uint64_t index) {
  const uint64_t bits = mixed(index), choice = mixed(~index);
  switch (choice % 4) {
    case 0:
      if constexpr (sizeof(T) == 4)
        return std::bit_cast<float>(static_cast<uint32_t>(bits));
      else
        return std::bit_cast<double>(bits);
    case 1:
      return static_cast<T>(16 * unit(index));
    case 2: {
      const int exponent = static_cast<int>(choice / 4 % 51) - 40;
      const double size = std::ldexp(1 + std::fabs(unit(index)), exponent);
      return static_cast<T>(choice >> 63 ? -size : size);
    }
    default: {
      constexpr double steps[] = {0.25, 0.34657359027997265, 0.78539816339744831};
      const double point = steps[choice / 4 % 3] * (static_cast<int>(choice / 16 % 65) - 32);
      return static_cast<T>(point + std::ldexp(unit(index), -static_cast<int>(choice / 2048 % 52)));
    }
  }
}

// Of every four pairs one has numbers of nearly the same size.
template <class T>
void sample_pair(uint64_t index, T& x, T& y) {
  x = sample<T>(2 * index);
  y = sample<T>(2 * index + 1);
  if (index % 4 == 2) {
    const int distance = static_cast<int>(mixed(index) % 60);
    y = static_cast<T>(x * (1 + std::ldexp(unit(~index), 4 - distance)));
  }
}

// Random pairs seldom have a power between 0 and infinity. Of every four pairs two have one, or a
// denormal one: their exponents bring y log(x) into the range of exp, also for bases near 1, where
// exponents are large.
template <class T>
void sample_power(uint64_t index, T& x, T& y) {
  sample_pair(index, x, y);
  if (index % 4 == 0)
    x = static_cast<T>(1 + std::ldexp(unit(index), -static_cast<int>(index / 4 % 52) - 1));
  if (index % 4 == 1) x = std::fabs(x);
  const double log = std::log(static_cast<double>(x));
  if (index % 4 < 2 && log != 0 && std::isfinite(log)) {
    constexpr int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
    y = static_cast<T>(unit(index + 1) * lowest * 0.6931471805599453 / log);
  }
}

struct Options {
  int64_t step = 251;
  int64_t samples = int64_t{1} << 21;
  std::vector<std::string> functions;
};

template <class T>
auto pairs_of(const Reference& reference) {
  const bool powers = std::strcmp(reference.name, "pow") == 0;
  return [powers](int64_t i, T& x, T& y) {
    (powers ? sample_power<T> : sample_pair<T>)(static_cast<uint64_t>(i), x, y);
  };
}

Worst measure_single(const MathFunction& f, const Reference& reference, const Options& options) {
  if (f.arguments == 2)
    return measure<float, double>(f.single, reference.twice, options.samples,
                                  pairs_of<float>(reference));
  const int64_t step = options.step;
  return measure<float, double>(f.single, reference.twice, (int64_t{1} << 32) / step,
                                [step](int64_t i, float& x, float& y) {
                                  x = std::bit_cast<float>(static_cast<uint32_t>(i * step));
                                  y = 0;
                                });
}

Worst measure_twice(const MathFunction& f, const Reference& reference, const Options& options) {
  return measure<double, long double>(f.twice, reference.extended, options.samples,
                                      pairs_of<double>(reference));
}

struct Build {
  const char* name;
  MathFunctions functions;
};

std::vector<Build> builds() {
  std::vector<Build> result;
#ifdef TENON_CPU_HAS_AVX512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    result.push_back({"avx512", tenon::cpu::avx512::math_functions()});
#endif
#ifdef TENON_CPU_HAS_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    result.push_back({"avx2", tenon::cpu::avx2::math_functions()});
#endif
#ifdef TENON_CPU_HAS_BASELINE
  result.push_back({"baseline", tenon::cpu::baseline::math_functions()});
#endif
  return result;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all") == 0)
      options.step = 1;
    else if (std::strcmp(argv[i], "--step") == 0 && i + 1 < argc)
      options.step = std::max(1ll, std::atoll(argv[++i]));
    else if (std::strcmp(argv[i], "--samples") == 0 && i + 1 < argc)
      options.samples = std::atoll(argv[++i]);
    else
      options.functions.push_back(argv[i]);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::vector<Build> all = builds();
  std::printf("| function |");
  for (const Build& build : all) std::printf(" float, %s | double, %s |", build.name, build.name);
  std::printf("\n|---|");
  for (size_t i = 0; i < all.size(); ++i) std::printf("---|---|");
  std::printf("\n");
  bool good = true;
  const auto check = [&good](const char* build, const char* name, const Worst& worst,
                             double limit) {
    if (worst.ulps <= limit) return;
    std::fprintf(stderr, "%s %s: %g ulp at %.17g, %.17g\n", build, name, worst.ulps, worst.x,
                 worst.y);
    good = false;
  };
  for (const Reference& reference : kReferences) {
    const auto row = &reference - kReferences;
    const auto& wanted = options.functions;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), reference.name) == wanted.end())
      continue;
    std::printf("| %s |", reference.name);
    for (const Build& build : all) {
      const MathFunction& f = build.functions.begin[row];
      const Worst single = measure_single(f, reference, options);
      const Worst twice = measure_twice(f, reference, options);
      std::printf(" %.2f | %.2f |", single.ulps, twice.ulps);
      std::fflush(stdout);
      check(build.name, f.name, single, 4);
      check(build.name, f.name, twice, reference.double_limit);
    }
    std::printf("\n");
  }
  return good ? 0 : 1;
}
