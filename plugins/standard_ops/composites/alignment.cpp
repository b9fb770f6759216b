// SPDX-License-Identifier: Apache-2.0
// Losses that sum over alignments, in the logarithmic domain, a step at a time.
#include <limits>

#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// Stands for log(0). It is finite, so that gradients of logsumexp are zero rather than NaN.
constexpr double kImpossible = -1e30;
constexpr double kUnreachable = std::numeric_limits<double>::infinity();

// `x` moved along its last axis by `shift` elements, which are impossible.
Tensor shifted(Scope& scope, const Tensor& x, int64_t shift) {
  if (!scope.ok()) return {};
  const int64_t length = x->shape[x->ndim - 1], moved = std::abs(shift);
  if (moved >= length) return full_with(scope, x, shape_of(*x.get()), kImpossible);
  Shape beside = sizes_of(x);
  beside.back() = moved;
  Tensor empty = full_with(scope, x, beside, kImpossible);
  if (shift > 0)
    return ops::concat(scope, {empty, ops::narrow(scope, x, -1, 0, length - moved)}, -1);
  return ops::concat(scope, {ops::narrow(scope, x, -1, moved, length - moved), empty}, -1);
}

// log(sum(exp(x))) of two or three tensors; impossible ones stay impossible.
Tensor log_sum(Scope& scope, std::initializer_list<Tensor> ways) {
  return ops::logsumexp(scope, ops::stack(scope, TensorList(ways), 0), {0});
}

Tensor impossible_unless(Scope& scope, const Tensor& condition, const Tensor& x) {
  return ops::where(scope, condition, x, kImpossible);
}

// The states of ctc: the labels of a target, with blanks before, between and behind them.
struct States {
  Tensor labels;          // [N, states], int64
  Tensor skips;           // may a state be reached from the one two before?
  Tensor ends;            // is it one of the last two of its target?
  Tensor emitted;         // log-probabilities of their labels, [T, N, states]
  Tensor steps;           // of each sequence, [N, 1]
  int64_t count, length;  // states, T
};

States states_of(Scope& scope, const Tensor& log_probs, const Tensor& targets,
                 const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank) {
  if (!scope.ok()) return {};
  States result;
  const int64_t batch = targets->shape[0], longest = targets->shape[1];
  const int64_t classes = log_probs->shape[2];
  result.count = 2 * longest + 1;
  result.length = log_probs->shape[0];
  // Labels behind a target's length count nothing, but have to be classes.
  Tensor labels = ops::clip(scope, as_int64(scope, targets), int64_t{0}, classes - 1);
  Tensor blanks = full_with(scope, labels, shape_of(*targets.get()), blank);
  Tensor pairs = ops::reshape(scope, ops::stack(scope, {blanks, labels}, 2), {batch, 2 * longest});
  result.labels = ops::concat(scope, {pairs, full_with(scope, labels, Shape{batch, 1}, blank)}, 1);
  Tensor numbers = numbers_to(scope, result.count, log_probs);
  Tensor before = ops::roll(scope, result.labels, {2}, {1});
  result.skips = ops::logical_and(scope, ops::not_equal(scope, result.labels, before),
                                  ops::not_equal(scope, result.labels, blank));
  result.skips = ops::logical_and(scope, result.skips, ops::greater(scope, numbers, 1));
  Tensor last =
      ops::multiply(scope, ops::unsqueeze(scope, as_int64(scope, target_lengths), {1}), 2);
  result.ends = ops::logical_and(scope, ops::less_equal(scope, numbers, last),
                                 ops::greater_equal(scope, ops::add(scope, numbers, 1), last));
  Tensor index = ops::expand(scope, ops::unsqueeze(scope, result.labels, {0}),
                             {result.length, batch, result.count});
  result.emitted = ops::gather(scope, log_probs, index, 2);
  result.steps = ops::unsqueeze(scope, as_int64(scope, input_lengths), {1});
  return result;
}

// The log-probability of all beginnings of alignments that are in a state after step t.
std::vector<Tensor> forward(Scope& scope, const States& states) {
  std::vector<Tensor> alphas;
  if (!scope.ok() || states.length == 0) return alphas;
  Tensor numbers = numbers_to(scope, states.count, states.labels);
  Tensor alpha = impossible_unless(scope, ops::less(scope, numbers, 2),
                                   ops::select(scope, states.emitted, 0, 0));
  alphas.push_back(alpha);
  for (int64_t t = 1; t < states.length && scope.ok(); ++t) {
    Tensor skipped = impossible_unless(scope, states.skips, shifted(scope, alpha, 2));
    Tensor moved = ops::add(scope, log_sum(scope, {alpha, shifted(scope, alpha, 1), skipped}),
                            ops::select(scope, states.emitted, 0, t));
    alpha = ops::where(scope, ops::greater(scope, states.steps, t), moved, alpha);
    alphas.push_back(alpha);
  }
  return alphas;
}

// The log-probability of all endings of alignments that are in a state after step t.
std::vector<Tensor> backward(Scope& scope, const States& states) {
  std::vector<Tensor> betas;
  if (!scope.ok()) return betas;
  Tensor start = impossible_unless(
      scope, states.ends, full_with(scope, states.emitted, shape_of(*states.ends.get()), 0));
  Tensor beta = start;
  Tensor skips_next = scope.ok() ? ops::roll(scope, states.skips, {-2}, {1}) : Tensor();
  for (int64_t t = states.length - 1; t >= 0 && scope.ok(); --t) {
    if (t < states.length - 1) {
      Tensor next = ops::add(scope, beta, ops::select(scope, states.emitted, 0, t + 1));
      Tensor skipped = impossible_unless(scope, skips_next, shifted(scope, next, -2));
      Tensor moved = log_sum(scope, {next, shifted(scope, next, -1), skipped});
      beta = ops::where(scope, ops::greater(scope, states.steps, t + 1), moved, start);
    }
    betas.push_back(beta);
  }
  return {betas.rbegin(), betas.rend()};
}

// [N]; far below zero where there is no alignment.
Tensor log_likelihood(Scope& scope, const States& states, const std::vector<Tensor>& alphas) {
  if (!scope.ok()) return {};
  // Without steps, the empty target alone is possible.
  Tensor last = alphas.empty()
                    ? full_with(scope, states.emitted, shape_of(*states.ends.get()), kImpossible)
                    : alphas.back();
  Tensor total = ops::logsumexp(scope, impossible_unless(scope, states.ends, last), {1});
  Tensor is_empty =
      ops::logical_and(scope, ops::less_equal(scope, ops::squeeze(scope, states.steps, {1}), 0),
                       ops::select(scope, states.ends, 1, 0));
  Tensor has_steps = ops::greater(scope, ops::squeeze(scope, states.steps, {1}), 0);
  total = impossible_unless(scope, has_steps, total);
  return ops::where(scope, is_empty, 0, total);
}

tenon_status check_lengths(const char* op, Tensor& lengths, const char* name, int64_t most,
                           tenon_err* err) {
  return expect_between(TENON_INVALID_ARGUMENT, op, name, lengths, 0, static_cast<double>(most),
                        err);
}

}  // namespace

TENON_DECOMPOSE(ctc_loss) {
  Scope scope(err);
  Tensor log_probs = operand(scope, args[0]), targets = operand(scope, args[1]);
  Tensor input_lengths = operand(scope, args[2]), target_lengths = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(check_lengths("ctc_loss", input_lengths, "input_lengths", log_probs->shape[0], err));
  TENON_TRY(check_lengths("ctc_loss", target_lengths, "target_lengths", targets->shape[1], err));
  const States states =
      states_of(scope, log_probs, targets, input_lengths, target_lengths, int_of(args[4]));
  Tensor total = log_likelihood(scope, states, forward(scope, states));
  Tensor is_possible = ops::greater(scope, total, kImpossible / 2);
  Tensor loss = ops::where(scope, is_possible, ops::negative(scope, total),
                           bool_of(args[5]) ? 0.0 : kUnreachable);
  return finish(scope, outs, ops::where(scope, ops::isnan(scope, total), total, loss));
}

// How probable each state is after each step, given the target, is the gradient of its label's
// log-probability.
TENON_DECOMPOSE(ctc_loss_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), log_probs = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Tensor zeros = full_with(scope, log_probs, shape_of(*log_probs.get()), 0);
  if (log_probs->numel == 0) return finish(scope, outs, zeros);
  const States states =
      states_of(scope, log_probs, operand(scope, args[2]), operand(scope, args[3]),
                operand(scope, args[4]), int_of(args[5]));
  const std::vector<Tensor> alphas = forward(scope, states), betas = backward(scope, states);
  Tensor total = log_likelihood(scope, states, alphas);
  Tensor is_possible = ops::greater(scope, total, kImpossible / 2);
  total = ops::unsqueeze(scope, ops::where(scope, is_possible, total, 0), {1});
  Tensor joint = ops::add(scope, ops::stack(scope, alphas, 0), ops::stack(scope, betas, 0));
  Tensor probability = ops::exp(scope, ops::subtract(scope, joint, total));
  Tensor step = numbers_to(scope, states.length, log_probs);
  Tensor counts = ops::less(scope, ops::unsqueeze(scope, step, {1, 2}), states.steps);
  counts = ops::logical_and(scope, counts, ops::unsqueeze(scope, is_possible, {1}));
  Tensor grad =
      ops::multiply(scope, ops::unsqueeze(scope, ops::negative(scope, grad_out), {1}), probability);
  grad = ops::where(scope, counts, grad, 0);
  if (!scope.ok()) return scope.status();
  Tensor index = ops::expand(scope, ops::unsqueeze(scope, states.labels, {0}), sizes_of(grad));
  return finish(scope, outs, ops::scatter_add(scope, zeros, index, grad, 2));
}

namespace {

tenon_status check_transducer(const Tensor& log_probs, const Tensor& targets, Tensor& input_lengths,
                              Tensor& target_lengths, int64_t blank, tenon_err* err) {
  const char* op = "rnnt_loss";
  TENON_TRY(expect_ndim(op, "log_probs", *log_probs.get(), 4, "[N, T, S + 1, C]", err));
  if (!is_real_floating(log_probs->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected floating log_probs, got %s",
                        host->dtype_name(log_probs->dtype));
  const int64_t batch = log_probs->shape[0], labels = log_probs->shape[2] - 1;
  const int64_t wanted[] = {batch, labels};
  if (!std::ranges::equal(shape_of(*targets.get()), wanted) || input_lengths->ndim != 1 ||
      target_lengths->ndim != 1 || input_lengths->shape[0] != batch ||
      target_lengths->shape[0] != batch)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected targets of shape %s and lengths of shape [%lld], got %s, %s and "
                        "%s",
                        list_text(wanted).c_str(), ll(batch), shape_text(*targets.get()).c_str(),
                        shape_text(*input_lengths.get()).c_str(),
                        shape_text(*target_lengths.get()).c_str());
  const int64_t classes = log_probs->shape[3];
  if (blank < 0 || blank >= classes || log_probs->shape[1] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected at least one step and a blank from 0 to %lld, got shape %s and "
                        "%lld",
                        ll(classes - 1), shape_text(*log_probs.get()).c_str(), ll(blank));
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "input_lengths", input_lengths, 1,
                           static_cast<double>(log_probs->shape[1]), err));
  return check_lengths(op, target_lengths, "target_lengths", labels, err);
}

}  // namespace

// All states with t + u = d at once: [N, S + 1], where element u is at step d - u.
TENON_DECOMPOSE(rnnt_loss) {
  Scope scope(err);
  Tensor log_probs = operand(scope, args[0]), targets = operand(scope, args[1]);
  Tensor input_lengths = operand(scope, args[2]), target_lengths = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const int64_t blank = int_of(args[4]);
  TENON_TRY(check_transducer(log_probs, targets, input_lengths, target_lengths, blank, err));
  const int64_t batch = log_probs->shape[0], steps = log_probs->shape[1],
                columns = log_probs->shape[2], classes = log_probs->shape[3];
  Tensor blanks = ops::select(scope, log_probs, 3, blank);  // [N, T, S + 1]
  // The label after column u; the last column has none.
  Tensor labels = ops::clip(scope, as_int64(scope, targets), int64_t{0}, classes - 1);
  labels = ops::concat(scope, {labels, full_with(scope, labels, Shape{batch, 1}, 0)}, 1);
  Tensor index =
      ops::expand(scope, ops::unsqueeze(scope, labels, {1, 3}), {batch, steps, columns, 1});
  Tensor emitted = ops::squeeze(scope, ops::gather(scope, log_probs, index, 3), {3});
  Tensor u = numbers_to(scope, columns, log_probs);
  Tensor last_step =
      ops::subtract(scope, ops::unsqueeze(scope, as_int64(scope, input_lengths), {1}), 1);
  Tensor last_label = ops::unsqueeze(scope, as_int64(scope, target_lengths), {1});
  // Row d - u of a [N, T, S + 1] tensor in column u; its ends where there is none.
  const auto diagonal = [&](const Tensor& x, int64_t d) {
    Tensor row = ops::clip(scope, ops::subtract(scope, d, u), int64_t{0}, steps - 1);
    row = ops::expand(scope, ops::unsqueeze(scope, row, {0, 1}), {batch, 1, columns});
    return ops::squeeze(scope, ops::gather(scope, x, row, 1), {1});
  };
  const auto exists = [&](int64_t d) {
    Tensor step = ops::subtract(scope, d, u);
    return ops::logical_and(scope, ops::greater_equal(scope, step, 0),
                            ops::less(scope, step, steps));
  };
  Tensor alpha = full_with(scope, log_probs, Shape{batch, columns}, 0);
  alpha = impossible_unless(scope, ops::equal(scope, u, 0), alpha);
  Tensor total;
  for (int64_t d = 0; d < steps + columns - 1 && scope.ok(); ++d) {
    if (d > 0) {
      Tensor waited = ops::add(scope, alpha, diagonal(blanks, d - 1));
      Tensor moved = shifted(scope, ops::add(scope, alpha, diagonal(emitted, d - 1)), 1);
      // At the border of the grid one of the two ways does not exist.
      waited = impossible_unless(scope, exists(d - 1), waited);
      alpha = impossible_unless(scope, exists(d), log_sum(scope, {waited, moved}));
    }
    Tensor is_end =
        ops::logical_and(scope, ops::equal(scope, ops::subtract(scope, d, u), last_step),
                         ops::equal(scope, u, last_label));
    Tensor finished = impossible_unless(scope, is_end, ops::add(scope, alpha, diagonal(blanks, d)));
    finished = ops::max(scope, finished, {1});
    total = total ? ops::maximum(scope, total, finished) : finished;
  }
  return finish(scope, outs, ops::negative(scope, total));
}

}  // namespace tenon::standard_ops
