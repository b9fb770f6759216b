// SPDX-License-Identifier: Apache-2.0
// Derivatives of digamma, which no mathematical library has, by the Hurwitz zeta function:
// psi^(n)(x) = (-1)^(n + 1) n! zeta(n + 1, x).
#include <tenon/zeta_series.hpp>

#include <algorithm>
#include <limits>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Terms of the series that are added one by one. Where more are needed to reach the Euler-Maclaurin
// formula (orders above 108), those after them are below exp(-120) of the first one.
constexpr double kMaxSteps = 64;

// unit^s * zeta(s, a): in units of the largest term nothing overflows.
Tensor zeta(Scope& scope, const ZetaSeries& series, const Tensor& a, const Tensor& unit) {
  const auto power = [&](const Tensor& z) {
    return ops::pow(scope, ops::divide(scope, unit, z), series.s);
  };
  Tensor sum = power(a);
  const double steps = std::min(std::ceil(series.reach), kMaxSteps);
  for (double k = 1; k < steps; ++k) sum = ops::add(scope, sum, power(ops::add(scope, a, k)));
  Tensor z = ops::add(scope, a, steps), ratio = ops::divide(scope, series.scale, z);
  Tensor square = ops::multiply(scope, ratio, ratio), correction;
  for (size_t j = series.coefficient.size(); j-- > 0;) {
    const double term = series.coefficient[j];
    correction = correction ? ops::add(scope, ops::multiply(scope, correction, square), term)
                            : ops::full_like(scope, square, term);
  }
  Tensor tail = ops::add(scope, ops::divide(scope, z, series.s - 1), 0.5);
  tail = ops::add(scope, tail, ops::multiply(scope, correction, ratio));
  Tensor rest = ops::multiply(scope, power(z), tail);
  if (series.reach > kMaxSteps)
    rest = ops::where(scope, ops::less(scope, z, series.reach), 0.0, rest);
  return ops::add(scope, sum, rest);
}

}  // namespace

TENON_DECOMPOSE(polygamma) {
  Scope scope(err);
  const int64_t n = int_of(args[0]);
  Tensor given = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (n == 0) return finish(scope, outs, ops::digamma(scope, given));
  const int32_t dtype = shapes::float_dtype(given->dtype);
  Tensor x = ops::cast(scope, given, dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32);
  const ZetaSeries series(static_cast<double>(n) + 1);
  const bool odd = n % 2 != 0;
  const double mirror = odd ? 1 : -1;

  // Below zero all (x + k)^-s, k from minus to plus infinity, are those of r = x - round(x); what
  // lies on the other side of x is taken off.
  Tensor negative = ops::less(scope, x, 0.0);
  Tensor r = ops::subtract(scope, x, ops::round(scope, x)), pole = ops::equal(scope, r, 0.0);
  Tensor positive = ops::where(scope, negative, 1.0, x);
  Tensor unit = ops::where(scope, pole, 1.0, ops::abs(scope, r));
  Tensor values =
      zeta(scope, series,
           ops::stack(scope, {positive, ops::add(scope, r, 1.0), ops::subtract(scope, 1.0, r),
                              ops::subtract(scope, 1.0, x)}),
           ops::stack(scope, {positive, unit, unit, unit}));
  const auto value = [&](int64_t i) { return ops::select(scope, values, 0, i); };
  Tensor below =
      ops::add(scope, value(1), ops::where(scope, ops::less(scope, r, 0.0), mirror, 1.0));
  below = ops::add(scope, below,
                   ops::multiply(scope, ops::subtract(scope, value(2), value(3)), mirror));
  Tensor sum = ops::where(scope, negative, below, value(0));

  // n! / unit^s as one power, which overflows only where the result does.
  const double root = std::exp(std::lgamma(series.s) / series.s);
  Tensor largest = ops::where(scope, negative, unit, positive);
  Tensor factor = ops::pow(scope, ops::divide(scope, root, largest), series.s);
  Tensor result = ops::multiply(scope, ops::multiply(scope, factor, sum), mirror);

  // At a pole both sides go to +inf for odd n, and to different infinities for even n.
  Tensor at_zero = odd ? ops::full_like(scope, x, kInfinity)
                       : ops::copysign(scope, kInfinity, ops::negative(scope, x));
  Tensor at_pole = ops::where(scope, negative, odd ? kInfinity : std::nan(""), at_zero);
  Tensor on_left = ops::less_equal(scope, x, 0.0);
  result = ops::where(scope, ops::logical_and(scope, pole, on_left), at_pole, result);
  result = ops::where(scope, ops::equal(scope, x, kInfinity), mirror * 0.0, result);
  result = ops::where(scope, ops::equal(scope, x, -kInfinity), std::nan(""), result);
  if (scope.ok() && result->dtype != dtype) result = ops::cast(scope, result, dtype);
  return finish(scope, outs, result);
}

}  // namespace tenon::standard_ops
