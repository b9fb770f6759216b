// SPDX-License-Identifier: Apache-2.0
// The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x): a power series below
// x = a + 1, a continued fraction above it, and for small x and a the series of Q itself (Gautschi, A
// computational procedure for incomplete gamma functions, 1979). All in float64, with as many terms as the result's dtype needs:
// the expansions end at a relative `tolerance`.
#include <tenon/signatures/special.h>

#include <cmath>
#include <limits>

#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// The expansions take a few times sqrt(a) terms where x is close to a.
constexpr double kMaxOrder = 1e10;
constexpr int64_t kMaxTerms = 10'000'000;

double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// lgamma(1 + a), with a small relative error for small a, too.
double log_gamma_of_1_plus(double a) {
  if (a > 0.5) return log_gamma(1 + a);
  // zeta(k) - 1 for k from 2 on: a (1 - Euler's constant) - log(1 + a) + the sum of
  // (-a)^k (zeta(k) - 1) / k.
  static constexpr double kZeta[] = {
      0.6449340668482264,     0.2020569031595943,     0.08232323371113819,   0.03692775514336993,
      0.01734306198444914,    0.008349277381922827,   0.00407735619794434,   0.0020083928260822143,
      0.0009945751278180853,  0.0004941886041194645,  0.0002460865533080483, 0.00012271334757848915,
      6.124813505870483e-05,  3.058823630702049e-05,  1.528225940865187e-05, 7.637197637899763e-06,
      3.81729326499984e-06,   1.908212716553939e-06,  9.539620338727962e-07, 4.769329867878064e-07,
      2.38450502727733e-07,   1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08,
      1.4901554828365043e-08, 7.45071178983543e-09,   3.725334024788457e-09, 1.862659723513049e-09};
  double sum = 0;
  for (size_t i = std::size(kZeta); i-- > 0;) sum = kZeta[i] / static_cast<double>(i + 2) - a * sum;
  return a * 0.42278433509846713 - std::log1p(a) + a * a * sum;
}

// x / a - 1 - log(x / a)
double distance_from_log(double a, double x) {
  const double m = (x - a) / a;
  if (std::abs(m) > 0.4) return m - std::log(x / a);
  // With r = m / (2 + m), log(1 + m) = 2 (r + r^3 / 3 + r^5 / 5 + ...) and m = 2 r / (1 - r).
  const double r = m / (2 + m), square = r * r;
  double sum = 0;
  for (int k = 25; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return r * (m - 2 * sum);
}

// x^a exp(-x) / Gamma(a + 1)
double prefix(double a, double x) {
  if (a < 1) return std::exp(a * std::log(x) - x - log_gamma_of_1_plus(a));
  if (a < 20) return std::exp(a * std::log(x) - x - log_gamma(a + 1));
  // Stirling's series of Gamma, so that the large terms cancel before they are rounded.
  const double inverse = 1 / a, square = inverse * inverse;
  const double series =
      inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  const double exponent = -a * distance_from_log(a, x) - series;
  return std::exp(exponent) / std::sqrt(2 * 3.141592653589793 * a);
}

double lower_series(double a, double x, double tolerance) {
  double term = 1, sum = 1;
  for (int64_t n = 1; n < kMaxTerms; ++n) {
    term *= x / (a + static_cast<double>(n));
    sum += term;
    if (term <= tolerance * sum) break;
  }
  return prefix(a, x) * sum;
}

// Lentz's algorithm for 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))).
double upper_fraction(double a, double x, double tolerance) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, value = d;
  for (int64_t n = 1; n < kMaxTerms; ++n) {
    const auto k = static_cast<double>(n);
    const double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = d * c;
    value *= factor;
    if (std::abs(factor - 1) <= 2 * tolerance) break;
  }
  return prefix(a, x) * a * value;
}

// 1 - x^a / Gamma(a + 1) (1 + a (-x / (a + 1) + x^2 / (2 (a + 2)) - ...)), in which nothing cancels.
double upper_series(double a, double x, double tolerance) {
  double term = 1, sum = 0;
  for (int n = 1; n < 200; ++n) {
    term *= -x / n;
    sum += term / (a + n);
    if (std::abs(term) <= tolerance * std::abs(sum)) break;
  }
  const double exponent = a * std::log(x) - log_gamma_of_1_plus(a);
  return -std::expm1(exponent) - std::exp(exponent) * a * sum;
}

// Temme's uniform expansion (The asymptotic expansion of the incomplete gamma functions, 1979), of which
// its first term is exact where `a` is as large as here. Far from `a` the result is 0 or 1.
double upper_of_large_order(double a, double x) {
  const double distance = distance_from_log(a, x);
  const double eta = std::copysign(std::sqrt(2 * distance), x - a);
  const double first = -1.0 / 3 + eta / 12 - 2 * eta * eta / 135;
  const double rest = std::exp(-a * distance) / std::sqrt(6.283185307179586 * a) * first;
  return 0.5 * std::erfc(eta * std::sqrt(a / 2)) + (std::abs(eta) < 0.1 ? rest : 0);
}

double regularized(double a, double x, bool upper, double tolerance) {
  if (!(a >= 0) || !(x >= 0)) return kNaN;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : upper ? 1 : 0;
  if (std::isinf(x)) return upper ? 0 : 1;
  if (a == 0) return x == 0 ? kNaN : upper ? 0 : 1;
  if (x == 0) return upper ? 1 : 0;
  if (a < 1 && x <= 1.1) {
    // P is the larger part where x is not small beside a.
    if (upper) return upper_series(a, x, tolerance);
    return x < 0.5 || x < a ? lower_series(a, x, tolerance) : 1 - upper_series(a, x, tolerance);
  }
  if (a > kMaxOrder) {
    const double above = upper_of_large_order(a, x);
    return upper ? above : 1 - above;
  }
  if (x < a + 1) {
    const double lower = lower_series(a, x, tolerance);
    return upper ? 1 - lower : lower;
  }
  const double rest = upper_fraction(a, x, tolerance);
  return upper ? rest : 1 - rest;
}

// Terms near x = a fall so slowly that those behind the last one add up to about sqrt(a) of it.
template <class T>
double tolerance_for(double a) {
  return sizeof(T) == 4 ? 0x1p-32 / (1 + std::sqrt(a)) : 0x1p-55;
}

tenon_status incomplete_gamma(tenon_ctx* ctx, const tenon_tensor* a, const tenon_tensor* x,
                              int32_t upper, tenon_tensor* out, tenon_err* err) {
  if (is_low_precision(x->dtype))
    return run_as_float32(incomplete_gamma, ctx, err, a, x, upper, out);
  const auto run = [&]<class T>(T) {
    parallel(x->numel, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto order = static_cast<double>(data_of<T>(a)[i]);
        data_of<T>(out)[i] = static_cast<T>(regularized(
            order, static_cast<double>(data_of<T>(x)[i]), upper != 0, tolerance_for<T>(order)));
      }
    });
  };
  x->dtype == TENON_DTYPE_F32 ? run(float()) : run(double());
  return TENON_OK;
}
TENON_BOX_incomplete_gamma(incomplete_gamma_boxed, incomplete_gamma);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_incomplete_gamma(incomplete_gamma, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList incomplete_gamma_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
