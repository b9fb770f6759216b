// SPDX-License-Identifier: Apache-2.0
// Random choice: uniform numbers compared with probabilities. The numbers are float32 or float64
// whatever the dtype of the probabilities, since those of smaller floats are too coarse: float16
// has none between 0 and 6e-8, and most of its numbers below 1 lie 5e-4 apart.
#include <bit>
#include <limits>

#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// Probabilities and weights as the floats that they are compared in.
Tensor in_wide_floats(Scope& scope, const Tensor& x) {
  if (!scope.ok() || x->dtype == TENON_DTYPE_F32 || x->dtype == TENON_DTYPE_F64) return x;
  return ops::cast(scope, x, TENON_DTYPE_F32);
}

tenon_status expect_real(const char* op, const char* what, const Tensor& x, tenon_err* err) {
  if (!(shapes::bit(x->dtype) & shapes::kComplex)) return TENON_OK;
  return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected real %s, got %s", what,
                      host->dtype_name(x->dtype));
}

// A uniform number below the sum of all weights falls into the share of one of them. Kept below the
// sum, it never falls behind the last weight that is not zero; rounding might carry it there.
Tensor draw_with_replacement(Scope& scope, const Tensor& weights, int64_t count) {
  if (!scope.ok()) return {};
  Shape shape = sizes_of(weights);
  const int64_t classes = shape.back();
  shape.back() = count;
  Tensor bounds = ops::cumsum(scope, weights, -1);
  Tensor total = ops::narrow(scope, bounds, -1, classes - 1, 1);
  Tensor draws = ops::uniform(scope, shape, 0.0, 1.0, weights->dtype, weights->device);
  draws =
      ops::minimum(scope, ops::multiply(scope, draws, total), ops::nextafter(scope, total, 0.0));
  Tensor passed = ops::less_equal(scope, ops::unsqueeze(scope, bounds, {-2}),
                                  ops::unsqueeze(scope, draws, {-1}));
  // Weights of no meaning, which devices do not report, give some position nevertheless.
  return ops::clip(scope, ops::sum(scope, passed, {-1}), nullptr, classes - 1);
}

// The largest of log(weight) + Gumbel noise order like successive draws (Vieira, 2014). A uniform
// number of zero would be noise of -inf, which is what weights of zero get.
Tensor draw_without_replacement(Scope& scope, const Tensor& weights, int64_t count) {
  if (!scope.ok()) return {};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Tensor noise = ops::uniform(scope, sizes_of(weights), 0.0, 1.0, weights->dtype, weights->device);
  noise = ops::maximum(scope, noise, 0x1p-25);
  noise = ops::negative(scope, ops::log(scope, ops::negative(scope, ops::log(scope, noise))));
  Tensor order = ops::add(scope, ops::log(scope, weights), noise);
  order = ops::where(scope, ops::greater(scope, weights, 0), order, -kInfinity);
  return ops::topk(scope, order, count, -1).indices;
}

// Up to 2^20 numbers are sorted with their random keys in one word. The keys have 42 bits and more, so that two of
// them are hardly ever equal.
constexpr int kPackedWidth = 21;

}  // namespace

TENON_DECOMPOSE(randperm) {
  Scope scope(err);
  const int64_t count = int_of(args[0]);
  const int32_t dtype =
      is_none(args[1]) ? int32_t{TENON_DTYPE_I64} : static_cast<int32_t>(args[1].v.i);
  if (count < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "randperm",
                        "expected a count of at least 0, got %lld", ll(count));
  TENON_TRY(expect_integer("randperm", dtype, count - 1, err));
  const int32_t device = tenon_arg_id(&args[2]);
  const auto width = static_cast<int>(std::bit_width(static_cast<uint64_t>(count)));
  Tensor order;
  if (width <= kPackedWidth) {
    const int64_t below = int64_t{1} << width;  // as all numbers are
    Tensor keys = ops::randint(scope, 0, std::numeric_limits<int64_t>::max() / below, {count},
                               TENON_DTYPE_I64, device);
    Tensor number = ops::arange(scope, count, std::nullopt, 1, TENON_DTYPE_I64, device);
    Tensor sorted =
        ops::sort(scope, ops::add(scope, ops::multiply(scope, keys, below), number), -1);
    order = ops::bitwise_and(scope, sorted, below - 1);
  } else {
    order =
        ops::argsort(scope, ops::uniform(scope, {count}, 0.0, 1.0, TENON_DTYPE_F64, device), -1);
  }
  return finish(scope, outs, ops::cast(scope, order, dtype));
}

TENON_DECOMPOSE(dropout) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const double p = float_of(args[1]);
  if (!(p >= 0 && p <= 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "dropout",
                        "expected a probability from 0 to 1, got %g", p);
  if (!bool_of(args[2]) || p == 0) return finish(scope, outs, x);
  if (p == 1) return finish(scope, outs, ops::where(scope, false, x, 0));
  Tensor draws = ops::uniform(scope, sizes_of(x), 0.0, 1.0, TENON_DTYPE_F32, x->device);
  Tensor kept = ops::multiply(scope, x, 1 / (1 - p));
  return finish(scope, outs, ops::where(scope, ops::greater_equal(scope, draws, p), kept, 0));
}

TENON_DECOMPOSE(bernoulli) {
  Scope scope(err);
  Tensor p = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_real("bernoulli", "probabilities", p, err));
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, "bernoulli", "probabilities", p, 0, 1, err));
  Tensor wide = in_wide_floats(scope, ops::stop_gradient(scope, p));
  if (!scope.ok()) return scope.status();
  Tensor draws = ops::uniform(scope, sizes_of(p), 0.0, 1.0, wide->dtype, wide->device);
  return finish(scope, outs, ops::cast(scope, ops::less(scope, draws, wide), p->dtype));
}

TENON_DECOMPOSE(multinomial) {
  Scope scope(err);
  Tensor weights = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[1]);
  const bool replacement = bool_of(args[2]);
  if (weights->ndim < 1 || weights->shape[weights->ndim - 1] < 1 || count < 0)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "multinomial",
        "expected weights along a last axis and a count of at least 0, got shape %s and %lld",
        shape_text(*weights.get()).c_str(), ll(count));
  const int64_t classes = weights->shape[weights->ndim - 1];
  if (!replacement && count > classes)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "multinomial",
        "expected at most %lld draws without replacement, got %lld; pass replacement=true",
        ll(classes), ll(count));
  TENON_TRY(expect_real("multinomial", "weights", weights, err));
  TENON_TRY(expect_weights(weights, replacement ? 1 : count, err));
  Tensor wide = in_wide_floats(scope, ops::stop_gradient(scope, weights));
  return finish(scope, outs,
                replacement ? draw_with_replacement(scope, wide, count)
                            : draw_without_replacement(scope, wide, count));
}

}  // namespace tenon::standard_ops
