// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions of whole orders, for the gradients of i1 and i1e. Those of order 0 and 1
// are expressions in opdefs/special.yaml.
#include <tenon/signatures/special.h>
#include <tenon/bessel_series.hpp>

#include <cmath>

#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

class BesselIe {
 public:
  explicit BesselIe(int64_t n) : series_(n, true), n_(n) {}

  double operator()(double x) const {
    const double a = std::abs(x), value = a <= series_.limit ? power(a) : asymptotic(a);
    return x < 0 && n_ % 2 != 0 ? -value : value;
  }

 private:
  double power(double a) const {
    const double y = a * a / 4;
    double sum = 1, first = std::exp(-a);
    for (int64_t k = series_.power_terms; k > 0; --k) sum = 1 + y * series_.power_factor(k) * sum;
    for (int64_t k = 1; k <= n_; ++k) first *= a / (2 * static_cast<double>(k));
    return first * sum;
  }

  double asymptotic(double a) const {
    double sum = 1;
    for (int64_t k = BesselSeries::kAsymptoticTerms; k > 0; --k)
      sum = 1 + series_.asymptotic_factor(k) / a * sum;
    return sum * 0.3989422804014327 / std::sqrt(a);
  }

  BesselSeries series_;
  int64_t n_;
};

tenon_status bessel_ie(tenon_ctx* ctx, int64_t n, const tenon_tensor* x, tenon_tensor* out,
                       tenon_err* err) {
  if (is_low_precision(x->dtype)) return run_as_float32(bessel_ie, ctx, err, n, x, out);
  const BesselIe function(n);
  const auto run = [&]<class T>(T) {
    parallel(x->numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        data_of<T>(out)[i] = static_cast<T>(function(static_cast<double>(data_of<T>(x)[i])));
    });
  };
  x->dtype == TENON_DTYPE_F32 ? run(float()) : run(double());
  return TENON_OK;
}
TENON_BOX_bessel_ie(bessel_ie_boxed, bessel_ie);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_bessel_ie(bessel_ie, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList bessel_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
