// SPDX-License-Identifier: Apache-2.0
// Reductions and sorting made of simpler reductions.
#include "composites/matrices.hpp"

namespace tenon::standard_ops {
namespace {

// Axes of a reduction as a list, and how many elements each result sums up.
tenon_status read_axes(const char* op, const tenon_value& axis, const tenon_tensor& x, Shape* axes,
                       int64_t* count, tenon_err* err) {
  uint32_t mask;
  TENON_TRY(resolve_reduced(op, axis, x.ndim, &mask, err));
  *count = 1;
  for (int32_t i = 0; i < x.ndim; ++i) {
    if (!(mask >> i & 1)) continue;
    axes->push_back(i);
    *count *= x.shape[i];
  }
  return TENON_OK;
}

// The mean over `axes`, kept, of `count` elements each. The sum of large numbers may overflow where
// their mean does not, so that it is one of numbers divided by a power of two, which is exact;
// reduced floats are added up in float32.
Tensor safe_mean(Scope& scope, const Tensor& x, const Shape& axes, int64_t count) {
  const int32_t dtype = x->dtype;
  if ((dtype != TENON_DTYPE_F32 && dtype != TENON_DTYPE_F64) || count < 2)
    return ops::mean(scope, x, axes, true);
  const double scale = std::exp2(std::ceil(std::log2(static_cast<double>(count))));
  Tensor total = ops::sum(scope, ops::multiply(scope, x, 1 / scale), axes, true);
  return ops::multiply(scope, total, scale / static_cast<double>(count));
}

Tensor drop_axes(Scope& scope, const Tensor& x, const Shape& axes, bool keepdim) {
  return keepdim ? x : ops::squeeze(scope, x, axes);
}

}  // namespace

TENON_DECOMPOSE(var) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Shape axes;
  int64_t count;
  TENON_TRY(read_axes("var", args[1], *x.get(), &axes, &count, err));
  double correction = float_of(args[2]);
  Tensor away = ops::subtract(scope, x, safe_mean(scope, x, axes, count));
  // Of complex numbers the distance's square is that of its parts together.
  Tensor square = is_complex(x) ? ops::add(scope, ops::square(scope, ops::real(scope, away)),
                                           ops::square(scope, ops::imag(scope, away)))
                                : ops::square(scope, away);
  Tensor total = ops::sum(scope, square, axes, bool_of(args[3]));
  return finish(scope, outs,
                ops::divide(scope, total, std::max(static_cast<double>(count) - correction, 0.0)));
}

TENON_DECOMPOSE(max_or_zero) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Shape axes;
  int64_t count;
  TENON_TRY(read_axes("max", args[1], *x.get(), &axes, &count, err));
  if (count == 0) {
    Shape shape = sizes_of(x);
    for (int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
    return finish(scope, outs, full_with(scope, x, shape, 0));
  }
  Tensor largest = ops::max(scope, ops::stop_gradient(scope, x), axes, true);
  return finish(scope, outs, ops::where(scope, ops::isfinite(scope, largest), largest, 0));
}

TENON_DECOMPOSE(logsumexp) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Shape axes;
  int64_t count;
  TENON_TRY(read_axes("logsumexp", args[1], *x.get(), &axes, &count, err));
  Tensor size = is_complex(x) ? ops::real(scope, x) : x;
  Tensor largest = ops::max_or_zero(scope, size, axes);
  Tensor total = ops::sum(scope, ops::exp(scope, ops::subtract(scope, x, largest)), axes, true);
  Tensor result = ops::add(scope, ops::log(scope, total), largest);
  return finish(scope, outs, drop_axes(scope, result, axes, bool_of(args[2])));
}

// sum(|x|^p)^(1/p), with elements divided by one of them, the largest or for negative p the
// smallest, so that no power leaves the range of the dtype, as LAPACK's nrm2 does for p = 2. The
// divisor is a constant to gradients: the norm does not depend on it.
static Tensor power_norm(Scope& scope, const Tensor& magnitudes, double p, const Shape& axes) {
  Tensor fixed = ops::stop_gradient(scope, magnitudes);
  Tensor unit = p > 0 ? ops::max(scope, fixed, axes, true) : ops::min(scope, fixed, axes, true);
  Tensor usable = ops::logical_and(scope, ops::isfinite(scope, unit), ops::greater(scope, unit, 0));
  unit = ops::where(scope, usable, unit, 1.0);
  Tensor powers = ops::flat_pow(scope, ops::divide(scope, magnitudes, unit), p);
  Tensor total = ops::sum(scope, powers, axes, true);
  return ops::multiply(scope, ops::flat_pow(scope, total, 1 / p), unit);
}

TENON_DECOMPOSE(norm) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const double p = float_of(args[1]);
  const OptionalInts axis = optional_ints(args[2]);
  const bool keepdim = bool_of(args[3]);
  if (p == 0)
    return finish(scope, outs,
                  ops::cast(scope, ops::count_nonzero(scope, x, axis, keepdim),
                            shapes::real_dtype(x->dtype)));
  if (shapes::bit(x->dtype) & shapes::kComplex) x = ops::abs(scope, x);
  if (!scope.ok()) return scope.status();
  if (p == 2) return finish(scope, outs, ops::norm2(scope, x, axis, keepdim));
  Tensor magnitudes = ops::abs(scope, x);
  if (p == 1) return finish(scope, outs, ops::sum(scope, magnitudes, axis, keepdim));
  if (p == kInfinity) return finish(scope, outs, ops::max(scope, magnitudes, axis, keepdim));
  if (p == -kInfinity) return finish(scope, outs, ops::min(scope, magnitudes, axis, keepdim));
  Shape axes;
  int64_t count;
  TENON_TRY(read_axes("norm", args[2], *x.get(), &axes, &count, err));
  if (count == 0) {  // there is no largest element to divide by
    Tensor total = ops::sum(scope, ops::pow(scope, magnitudes, p), axis, keepdim);
    return finish(scope, outs, ops::pow(scope, total, 1 / p));
  }
  return finish(scope, outs,
                drop_axes(scope, power_norm(scope, magnitudes, p, axes), axes, keepdim));
}

TENON_DECOMPOSE(topk) {
  Scope scope(err);
  int64_t count = int_of(args[1]), axis = int_of(args[2]);
  auto sorted = ops::sort_with_indices(scope, args[0], axis, bool_of(args[3]));
  if (!scope.ok()) return scope.status();
  if (sorted.values->ndim == 0) return finish(scope, outs, sorted.values, sorted.indices);
  return finish(scope, outs, ops::clone(scope, ops::narrow(scope, sorted.values, axis, 0, count)),
                ops::clone(scope, ops::narrow(scope, sorted.indices, axis, 0, count)));
}

// Counts the smaller elements: slow, but made of what every device has. NaN is the largest number.
TENON_DECOMPOSE(searchsorted) {
  Scope scope(err);
  const bool right = bool_of(args[2]);
  Tensor column = ops::unsqueeze(scope, operand(scope, args[1]), {-1});
  Tensor before =
      right ? ops::less_equal(scope, args[0], column) : ops::less(scope, args[0], column);
  if (scope.ok() && column->dtype >= TENON_DTYPE_F8E4M3) {
    Tensor last = ops::isnan(scope, column);
    if (!right)
      last = ops::logical_and(scope, last, ops::logical_not(scope, ops::isnan(scope, args[0])));
    before = ops::logical_or(scope, before, last);
  }
  return finish(scope, outs, ops::sum(scope, before, {-1}));
}

}  // namespace tenon::standard_ops
