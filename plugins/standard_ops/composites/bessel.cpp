// SPDX-License-Identifier: Apache-2.0
// Modified Bessel functions of whole orders, for devices without a kernel for them.
#include <tenon/bessel_series.hpp>

#include "composites/compose.hpp"

namespace tenon::standard_ops {

TENON_DECOMPOSE(bessel_ie) {
  Scope scope(err);
  const int64_t n = int_of(args[0]);
  Tensor given = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int32_t dtype = shapes::float_dtype(given->dtype);
  const bool is_float64 = dtype == TENON_DTYPE_F64;
  const BesselSeries series(n, is_float64);
  Tensor x = ops::cast(scope, given, is_float64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32);
  Tensor a = ops::abs(scope, x);

  // Each series of arguments for which it is right, so that the other one does not overflow.
  Tensor small = ops::minimum(scope, a, series.limit), half = ops::multiply(scope, small, 0.5);
  Tensor y = ops::multiply(scope, half, half), power = ops::full_like(scope, y, 1.0);
  for (int64_t k = series.power_terms; k > 0; --k) {
    Tensor term = ops::multiply(scope, ops::multiply(scope, y, series.power_factor(k)), power);
    power = ops::add(scope, term, 1.0);
  }
  power = ops::multiply(scope, power, ops::exp(scope, ops::negative(scope, small)));
  for (int64_t k = 1; k <= n; ++k)
    power = ops::multiply(scope, power, ops::multiply(scope, half, 1 / static_cast<double>(k)));

  Tensor large = ops::maximum(scope, a, series.limit), far = ops::full_like(scope, y, 1.0);
  Tensor inverse = ops::reciprocal(scope, large);
  for (int64_t k = BesselSeries::kAsymptoticTerms; k > 0; --k) {
    Tensor term = ops::multiply(scope, inverse, series.asymptotic_factor(k));
    far = ops::add(scope, ops::multiply(scope, term, far), 1.0);
  }
  far =
      ops::multiply(scope, ops::multiply(scope, far, ops::rsqrt(scope, large)), 0.3989422804014327);

  Tensor result = ops::where(scope, ops::less_equal(scope, a, series.limit), power, far);
  if (n % 2 != 0)
    result = ops::where(scope, ops::less(scope, x, 0.0), ops::negative(scope, result), result);
  if (scope.ok() && result->dtype != dtype) result = ops::cast(scope, result, dtype);
  return finish(scope, outs, result);
}

}  // namespace tenon::standard_ops
