// SPDX-License-Identifier: Apache-2.0
// Derivatives of digamma: psi^(n)(x) = (-1)^(n + 1) n! zeta(n + 1, x), with the Hurwitz zeta
// function.
#include <tenon/signatures/elementwise_functions.h>
#include <tenon/zeta_series.hpp>

#include <cmath>
#include <limits>

#include "kernel.hpp"
#include "math/gamma.hpp"

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Polygamma {
 public:
  explicit Polygamma(int64_t n) : series_(static_cast<double>(n) + 1), n_(n), odd_(n % 2 != 0) {
    long double product = 1;
    for (int64_t k = 2; k <= n && k <= kLastFactorial; ++k) product *= static_cast<long double>(k);
    factorial_ = static_cast<double>(product);
    int sign;
    const auto s = static_cast<long double>(n) + 1;
    root_ = std::exp(::lgammal_r(s, &sign) / s);
  }

  double operator()(double x) const {
    if (n_ == 0) return math::digamma(x);
    if (x > 0) return x < kInfinity ? signed_by_order(scaled(x, zeta(x, x))) : signed_by_order(0.0);
    const double nearest = std::nearbyint(x), r = x - nearest;
    if (r != 0) return signed_by_order(below_zero(x, r));
    // At a pole both sides go to +inf for odd n, and to different infinities for even n.
    if (odd_) return kInfinity;
    return x == 0 ? std::copysign(kInfinity, -x) : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  static constexpr int64_t kLastFactorial = 170;  // the largest that float64 holds

  double signed_by_order(double value) const { return odd_ ? value : -value; }

  // All (x + k)^-s, k from minus to plus infinity, are those of r = x - round(x); what lies on the
  // other side of x is taken off. s is n + 1, so odd where n is even.
  double below_zero(double x, double r) const {
    if (!(std::abs(r) <= 0.5)) return r;  // x is infinite or NaN
    const double unit = std::abs(r), mirror = odd_ ? 1.0 : -1.0;
    const double middle = r > 0 ? 1.0 : mirror;
    return scaled(unit,
                  middle + zeta(1 + r, unit) + mirror * (zeta(1 - r, unit) - zeta(1 - x, unit)));
  }

  // unit^s * zeta(s, a): in units of the largest term nothing overflows.
  double zeta(double a, double unit) const {
    double sum = 0, k = 0;
    for (; a + k < series_.reach; ++k) {
      const double term = power(unit, a, k);
      sum += term;
      // The terms that are left add up to less than this one times a + k + 1.
      // All terms are 0 where the first one is too small for float64.
      if (term * (a + k + 1) <= 0x1p-60 * sum) return sum;
    }
    const double z = a + k;
    const double tail = z / (series_.s - 1) + 0.5 + series_.correction(series_.scale / z);
    return sum + power(unit, a, k) * tail;
  }

  // (unit / (a + k))^s. The power multiplies the rounding errors of the sum and the quotient by s,
  // so they are taken off.
  double power(double unit, double a, double k) const {
    const double z = a + k, rounded = z - a, lost = (a - (z - rounded)) + (k - rounded);
    const double q = unit / z, rest = std::fma(-q, z, unit) - q * lost;
    return std::pow(q, series_.s) * (1 + series_.s * rest / unit);
  }

  // n! / unit^s * sum
  double scaled(double unit, double sum) const {
    const double inverse = std::pow(unit, -series_.s);
    if (inverse > 1e-280 && n_ <= kLastFactorial) return factorial_ * inverse * sum;
    // n! or the power leaves the range of float64 where their product need not.
    const long double ratio = root_ / static_cast<long double>(unit);
    return static_cast<double>(std::pow(ratio, static_cast<long double>(series_.s)) * sum);
  }

  ZetaSeries series_;
  int64_t n_;
  bool odd_;
  double factorial_;
  long double root_;  // (n!)^(1 / s)
};

tenon_status polygamma(tenon_ctx* ctx, int64_t n, const tenon_tensor* x, tenon_tensor* out,
                       tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(polygamma, ctx, err, n, x, out);
  const Polygamma function(n);
  const auto run = [&]<class T>(T) {
    parallel(x->numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        data_of<T>(out)[i] = static_cast<T>(function(static_cast<double>(data_of<T>(x)[i])));
    });
  };
  x->dtype == TENON_DTYPE_F32 ? run(float()) : run(double());
  return TENON_OK;
}
TENON_BOX_polygamma(polygamma_boxed, polygamma);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_polygamma(polygamma, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList polygamma_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
