// SPDX-License-Identifier: Apache-2.0
// Losses over classes, and the gated activation that shares their slicing.
#include <tenon/ops/interior.hpp>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

enum class Reduction { kNone, kSum, kMean };

tenon_status read_reduction(const char* op, std::string_view text, Reduction* reduction,
                            tenon_err* err) {
  if (text == "none")
    *reduction = Reduction::kNone;
  else if (text == "sum")
    *reduction = Reduction::kSum;
  else if (text == "mean")
    *reduction = Reduction::kMean;
  else
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected reduction 'mean', 'sum' or 'none', got '%.*s'",
                        static_cast<int>(text.size()), text.data());
  return TENON_OK;
}

// Axis of classes: [N, C, ...], or [C] alone.
int64_t class_axis(const Tensor& x) { return x->ndim > 1 ? 1 : 0; }

struct Targets {
  Tensor numbers;  // as they were given, in int64
  Tensor indices;  // what to gather with, classes' axis kept with length 1
  Tensor counts;   // true where the target is not the ignored one
};

// Where the target is not the ignored one. An unsigned dtype cannot hold a negative number to
// ignore.
Tensor counted(Scope& scope, const Tensor& target, int64_t ignore) {
  constexpr uint64_t kUnsigned = shapes::bit(TENON_DTYPE_U8) | shapes::bit(TENON_DTYPE_U16) |
                                 shapes::bit(TENON_DTYPE_U32) | shapes::bit(TENON_DTYPE_U64);
  bool widen = ignore < 0 && shapes::bit(target->dtype) & kUnsigned;
  return ops::not_equal(scope, widen ? ops::cast(scope, target, TENON_DTYPE_I64) : target, ignore);
}

// Class numbers to gather with: a class where none counts, and outside where the number is no
// class, although gather counts negative ones from the end.
Targets read_targets(Scope& scope, const Tensor& x, const Tensor& target, int64_t ignore) {
  Tensor numbers =
      target->dtype == TENON_DTYPE_I64 ? target : ops::cast(scope, target, TENON_DTYPE_I64);
  Tensor counts = ops::not_equal(scope, numbers, ignore);
  Tensor safe = ops::where(scope, counts, numbers, 0);
  int64_t axis = class_axis(x);
  safe = ops::where(scope, ops::less(scope, safe, 0), x->shape[axis], safe);
  return {numbers, ops::unsqueeze(scope, safe, {axis}), counts};
}

// The error of gathering from `x` with a number that is no class. Which one, only the host can
// tell.
tenon_status fail_outside(const char* op, const Tensor& x, const Targets& targets, int64_t ignore,
                          tenon_err* err) {
  const long long last = x->shape[class_axis(x)] - 1;
  host->err_clear(err);
  Scope scope(err);
  Tensor numbers = ops::reshape(scope, targets.numbers, {-1});
  if (scope.ok() && numbers->device == host->device_host() &&
      !(numbers->flags & TENON_TENSOR_COMPOSED)) {
    const auto* from = static_cast<const int64_t*>(numbers->data);
    for (int64_t i = 0; i < numbers->numel; ++i) {
      const int64_t number = from[i * numbers->strides[0]];
      if (number == ignore || (number >= 0 && number <= last)) continue;
      return shapes::fail(err, TENON_OUT_OF_RANGE, op,
                          "expected classes from 0 to %lld or ignore_index %lld, got %lld", last,
                          static_cast<long long>(ignore), static_cast<long long>(number));
    }
  }
  return shapes::fail(err, TENON_OUT_OF_RANGE, op,
                      "expected classes from 0 to %lld or ignore_index %lld", last,
                      static_cast<long long>(ignore));
}

// What each element weighs: its class's weight, and nothing where it does not count.
Tensor weights_of(Scope& scope, const Tensor& loss, int64_t axis, const Targets& targets,
                  const Tensor& weight) {
  if (!weight) return scope.ok() ? ops::cast(scope, targets.counts, loss->dtype) : Tensor();
  Tensor classes = ops::squeeze(scope, targets.indices, {axis});
  return ops::multiply(scope, ops::index_select(scope, weight, classes), targets.counts);
}

// -x at the targets, 0 where they do not count (even if x is infinite there).
Tensor picked_loss(Scope& scope, const Tensor& x, int64_t axis, const Targets& targets) {
  Tensor picked = ops::squeeze(scope, ops::gather(scope, x, targets.indices, axis), {axis});
  return ops::where(scope, targets.counts, ops::negative(scope, picked), 0);
}

Tensor reduce(Scope& scope, const Tensor& loss, const Tensor& weight, Reduction reduction) {
  if (reduction == Reduction::kNone) return loss;
  Tensor total = ops::sum(scope, loss);
  return reduction == Reduction::kSum ? total : ops::divide(scope, total, ops::sum(scope, weight));
}

// A loss that was computed in float32, in the dtype of its arguments.
Tensor rounded(Scope& scope, const Tensor& loss, int32_t dtype) {
  return scope.ok() && loss->dtype != dtype ? ops::cast(scope, loss, dtype) : loss;
}

tenon_status expect_classes(const char* op, const Tensor& x, const Tensor& target, tenon_err* err) {
  Shape wanted = x ? sizes_of(x) : Shape();
  if (!wanted.empty()) wanted.erase(wanted.begin() + class_axis(x));
  if (x->ndim > 0 && std::ranges::equal(shape_of(*target.get()), wanted)) return TENON_OK;
  return shapes::fail(
      err, TENON_INVALID_ARGUMENT, op,
      "expected x [batch, classes, ...] and target [batch, ...] with class numbers, got shapes %s "
      "and %s",
      shape_text(*x.get()).c_str(), shape_text(*target.get()).c_str());
}

}  // namespace

TENON_DECOMPOSE(reduce_loss) {
  Scope scope(err);
  Reduction reduction = Reduction::kMean;
  TENON_TRY(read_reduction("loss", text_of(args[1]), &reduction, err));
  if (reduction == Reduction::kNone) return finish(scope, outs, operand(scope, args[0]));
  bool mean = reduction == Reduction::kMean;
  return finish(scope, outs, mean ? ops::mean(scope, args[0]) : ops::sum(scope, args[0]));
}

TENON_DECOMPOSE(smooth_l1_loss) {
  Scope scope(err);
  const double beta = float_of(args[3]);
  if (!(beta >= 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "smooth_l1_loss",
                        "expected beta of at least 0, got %g", beta);
  Tensor loss = beta > 0 ? ops::smooth_absolute(scope, args[0], args[1], beta)
                         : ops::abs(scope, ops::subtract(scope, args[0], args[1]));
  if (beta > 0 && beta != 1) loss = ops::divide(scope, loss, beta);
  return finish(scope, outs, ops::reduce_loss(scope, loss, text_of(args[2])));
}

TENON_DECOMPOSE(huber_loss) {
  Scope scope(err);
  const double delta = float_of(args[3]);
  if (!(delta > 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "huber_loss", "expected delta above 0, got %g",
                        delta);
  Tensor loss = ops::smooth_absolute(scope, args[0], args[1], delta);
  return finish(scope, outs, ops::reduce_loss(scope, loss, text_of(args[2])));
}

TENON_DECOMPOSE(nll_loss) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  Reduction reduction = Reduction::kMean;
  TENON_TRY(read_reduction("nll_loss", text_of(args[4]), &reduction, err));
  TENON_TRY(expect_classes("nll_loss", x, target, err));
  Targets targets = read_targets(scope, x, target, int_of(args[3]));
  Tensor loss = picked_loss(scope, x, class_axis(x), targets);
  if (scope.status() == TENON_OUT_OF_RANGE)
    return fail_outside("nll_loss", x, targets, int_of(args[3]), err);
  if (!scope.ok()) return scope.status();
  // What was picked is summed in float32, so that many losses do not leave a smaller dtype's range.
  const int32_t dtype = weight ? host->dtype_promote(x->dtype, weight->dtype) : x->dtype;
  loss = interior::widened(scope, loss);
  if (reduction != Reduction::kMean && !weight)
    return finish(scope, outs, rounded(scope, reduce(scope, loss, {}, reduction), dtype));
  Tensor weights =
      weights_of(scope, loss, class_axis(x), targets, interior::widened(scope, weight));
  if (weight) loss = ops::multiply(scope, loss, weights);
  return finish(scope, outs, rounded(scope, reduce(scope, loss, weights, reduction), dtype));
}

TENON_DECOMPOSE(softmax_cross_entropy) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Reduction reduction = Reduction::kMean;
  TENON_TRY(read_reduction("cross_entropy", text_of(args[3]), &reduction, err));
  Targets targets = read_targets(scope, x, target, int_of(args[2]));
  int64_t axis = class_axis(x);
  Tensor loss = picked_loss(scope, ops::log_softmax(scope, x, axis), axis, targets);
  if (scope.status() == TENON_OUT_OF_RANGE)
    return fail_outside("cross_entropy", x, targets, int_of(args[2]), err);
  return finish(scope, outs, reduce(scope, loss, targets.counts, reduction));
}

TENON_DECOMPOSE(softmax_cross_entropy_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), x = operand(scope, args[1]),
         target = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  Reduction reduction = Reduction::kMean;
  TENON_TRY(read_reduction("cross_entropy", text_of(args[4]), &reduction, err));
  int64_t axis = class_axis(x), classes = x->shape[axis];
  Tensor numbers = ops::arange(scope, classes, std::nullopt, 1, TENON_DTYPE_I64, x->device);
  if (x->ndim > 1) numbers = ops::channel_view(scope, numbers, x->ndim);
  Tensor hit = ops::equal(scope, ops::unsqueeze(scope, target, {axis}), numbers);
  Tensor counts = counted(scope, target, int_of(args[3]));
  Tensor share = ops::multiply(scope, grad_out, counts);
  // Where no target counts, the gradient is 0 / 1, although the loss is 0 / 0.
  if (reduction == Reduction::kMean)
    share = ops::divide(scope, share, ops::maximum(scope, ops::sum(scope, counts), 1));
  Tensor away = ops::subtract(scope, ops::softmax(scope, x, axis), hit);
  return finish(scope, outs, ops::multiply(scope, away, ops::unsqueeze(scope, share, {axis})));
}

namespace {

// Targets that are distributions over classes.
Tensor soft_cross_entropy(Scope& scope, const Tensor& logs, Tensor target, const Tensor& weight,
                          double smoothing, Reduction reduction) {
  int64_t axis = class_axis(logs), classes = logs->shape[axis];
  if (smoothing > 0) {
    target = ops::multiply(scope, target, 1 - smoothing);
    target = ops::add(scope, target, smoothing / static_cast<double>(classes));
  }
  Tensor parts = ops::multiply(scope, logs, target);
  if (weight) {
    Tensor along = logs->ndim > 1 ? ops::channel_view(scope, weight, logs->ndim) : weight;
    parts = ops::multiply(scope, parts, along);
  }
  Tensor loss = ops::negative(scope, ops::sum(scope, parts, {axis}));
  if (reduction == Reduction::kNone) return loss;
  return reduction == Reduction::kSum ? ops::sum(scope, loss) : ops::mean(scope, loss);
}

// The uniform part of smoothed targets: every class's log-probability, weighed. 0 where the target
// does not count, even if a log-probability is infinite there.
Tensor uniform_loss(Scope& scope, const Tensor& logs, const Tensor& weight, const Tensor& counted) {
  int64_t axis = class_axis(logs), classes = logs->shape[axis];
  Tensor parts = logs;
  if (weight)
    parts = ops::multiply(scope, logs,
                          logs->ndim > 1 ? ops::channel_view(scope, weight, logs->ndim) : weight);
  Tensor total = ops::negative(scope, ops::sum(scope, parts, {axis}));
  return ops::where(scope, counted, ops::divide(scope, total, classes), 0);
}

}  // namespace

TENON_DECOMPOSE(cross_entropy) {
  const char* op = "cross_entropy";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  int64_t ignore = int_of(args[3]);
  double smoothing = float_of(args[5]);
  Reduction reduction = Reduction::kMean;
  TENON_TRY(read_reduction(op, text_of(args[4]), &reduction, err));
  if (!(smoothing >= 0 && smoothing <= 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected label_smoothing from 0 to 1, got %g", smoothing);
  bool soft = std::ranges::equal(shape_of(*x.get()), shape_of(*target.get()));
  if (!soft) TENON_TRY(expect_classes(op, x, target, err));
  if (x->ndim == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [batch, classes, ...], got a single number");

  if (!soft && !weight && smoothing == 0)
    return finish(scope, outs,
                  ops::softmax_cross_entropy(scope, x, target, ignore, text_of(args[4])));
  int32_t dtype = x->dtype;
  for (const Tensor& other : {soft ? target : Tensor(), weight})
    if (other && other->dtype > TENON_DTYPE_I64) dtype = host->dtype_promote(dtype, other->dtype);
  weight = interior::widened(scope, weight);
  Tensor logs = ops::log_softmax(scope, interior::widened(scope, x), class_axis(x));
  if (!scope.ok()) return scope.status();
  if (soft) {
    target = interior::widened(scope, target);
    return finish(
        scope, outs,
        rounded(scope, soft_cross_entropy(scope, logs, target, weight, smoothing, reduction),
                dtype));
  }
  Tensor hard =
      ops::nll_loss(scope, logs, target, weight, ignore, smoothing > 0 ? "none" : text_of(args[4]));
  if (smoothing == 0) return finish(scope, outs, rounded(scope, hard, dtype));

  Targets targets = read_targets(scope, logs, target, ignore);
  Tensor even = uniform_loss(scope, logs, weight, targets.counts);
  // Not hard + smoothing * (even - hard): that is NaN where both are infinite.
  Tensor loss = ops::multiply(scope, even, smoothing);
  if (smoothing < 1) loss = ops::add(scope, ops::multiply(scope, hard, 1 - smoothing), loss);
  Tensor weights = weights_of(scope, logs, class_axis(logs), targets, weight);
  return finish(scope, outs, rounded(scope, reduce(scope, loss, weights, reduction), dtype));
}

TENON_DECOMPOSE(glu) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("glu", int_of(args[1]), x->ndim, &axis, err));
  int64_t half = x->shape[axis] / 2;
  if (x->shape[axis] % 2 != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "glu",
                        "expected an even length along axis %d, got shape %s", axis,
                        shape_text(*x.get()).c_str());
  Tensor gate = ops::sigmoid(scope, ops::narrow(scope, x, axis, half, half));
  return finish(scope, outs, ops::multiply(scope, ops::narrow(scope, x, axis, 0, half), gate));
}

}  // namespace tenon::standard_ops
