// SPDX-License-Identifier: Apache-2.0
// Conditional random fields, beams, and features of sequences [N, T, ...] of different lengths.
#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// The sizes of the arguments of a conditional random field, after they have been checked.
struct TagField {
  int64_t batch = 0, steps = 0, tags = 0;
};

tenon_status expect_lengths(const char* op, Tensor& lengths, int64_t batch, int64_t least,
                            int64_t most, tenon_err* err) {
  if (lengths->dtype == TENON_DTYPE_BOOL || lengths->dtype > TENON_DTYPE_I64 ||
      lengths->ndim != 1 || lengths->shape[0] != batch)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected integer lengths of shape [%lld], got %s of shape %s", ll(batch),
                        host->dtype_name(lengths->dtype), shape_text(*lengths.get()).c_str());
  return expect_between(TENON_INVALID_ARGUMENT, op, "lengths", lengths, static_cast<double>(least),
                        static_cast<double>(most), err);
}

tenon_status expect_field(const char* op, const Tensor& emission, const Tensor& transition,
                          Tensor& lengths, TagField* field, tenon_err* err) {
  if (emission->ndim != 3 || transition->ndim != 2 || emission->shape[1] < 1 ||
      emission->shape[2] < 1 || transition->shape[1] != emission->shape[2] ||
      transition->shape[0] != emission->shape[2] + 2)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected emission [N, T, tags] and transition [tags + 2, tags], got shapes %s and %s",
        shape_text(*emission.get()).c_str(), shape_text(*transition.get()).c_str());
  *field = {emission->shape[0], emission->shape[1], emission->shape[2]};
  return expect_lengths(op, lengths, field->batch, 1, field->steps, err);
}

tenon_status expect_tags(const char* op, const Tensor& target, const TagField& field,
                         tenon_err* err) {
  if (target->dtype != TENON_DTYPE_BOOL && target->dtype <= TENON_DTYPE_I64 && target->ndim == 2 &&
      target->shape[0] == field.batch && target->shape[1] == field.steps)
    return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected integer tags of shape [%lld, %lld], got %s of shape %s",
                      ll(field.batch), ll(field.steps), host->dtype_name(target->dtype),
                      shape_text(*target.get()).c_str());
}

// What sequences begin with, end with, and go from tag to tag by.
struct Transition {
  Tensor first, last, between;
};

Transition parts_of(Scope& scope, const Tensor& transition, int64_t tags) {
  return {ops::select(scope, transition, 0, 0), ops::select(scope, transition, 0, 1),
          ops::narrow(scope, transition, 0, 2, tags)};
}

// [N, T]: does a step come before the end of its sequence?
Tensor counted_steps(Scope& scope, const Tensor& lengths, int64_t steps) {
  return ops::less(scope, numbers_to(scope, steps, lengths), ops::unsqueeze(scope, lengths, {1}));
}

// x[n, index[n]] of a matrix and a vector.
Tensor picked(Scope& scope, const Tensor& x, const Tensor& index) {
  return ops::squeeze(scope, ops::gather(scope, x, ops::unsqueeze(scope, index, {1}), 1), {1});
}

}  // namespace

TENON_DECOMPOSE(linear_chain_crf) {
  const char* op = "linear_chain_crf";
  Scope scope(err);
  Tensor emission = operand(scope, args[0]), transition = operand(scope, args[1]),
         target = operand(scope, args[2]), lengths = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TagField field;
  TENON_TRY(expect_field(op, emission, transition, lengths, &field, err));
  TENON_TRY(expect_tags(op, target, field, err));
  lengths = as_int64(scope, lengths);
  Tensor counts = counted_steps(scope, lengths, field.steps);
  target = ops::where(scope, counts, as_int64(scope, target), 0);
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "tags", target, 0,
                           static_cast<double>(field.tags - 1), err));
  const Transition rule = parts_of(scope, transition, field.tags);

  // The score of the given tags.
  Tensor chosen =
      ops::squeeze(scope, ops::gather(scope, emission, ops::unsqueeze(scope, target, {2}), 2), {2});
  Tensor score =
      ops::sum(scope, ops::where(scope, counts, chosen, ops::zeros_like(scope, chosen)), {1});
  score = ops::add(scope, score,
                   ops::index_select(scope, rule.first, ops::select(scope, target, 1, 0), 0));
  Tensor end = picked(scope, target, ops::subtract(scope, lengths, 1));
  score = ops::add(scope, score, ops::index_select(scope, rule.last, end, 0));
  if (field.steps > 1) {
    Tensor from = ops::narrow(scope, target, 1, 0, field.steps - 1),
           to = ops::narrow(scope, target, 1, 1, field.steps - 1);
    Tensor pair = ops::add(scope, ops::multiply(scope, from, field.tags), to);
    Tensor steps = ops::index_select(scope, ops::reshape(scope, rule.between, {-1}),
                                     ops::reshape(scope, pair, {-1}), 0);
    steps = ops::reshape(scope, steps, {field.batch, field.steps - 1});
    Tensor later = ops::narrow(scope, counts, 1, 1, field.steps - 1);
    score = ops::add(
        scope, score,
        ops::sum(scope, ops::where(scope, later, steps, ops::zeros_like(scope, steps)), {1}));
  }

  // The logarithm of the sum over all tags, step by step.
  Tensor total = ops::add(scope, ops::select(scope, emission, 1, 0), rule.first);
  for (int64_t t = 1; t < field.steps && scope.ok(); ++t) {
    Tensor ways = ops::add(scope, ops::unsqueeze(scope, total, {2}), rule.between);
    Tensor next =
        ops::add(scope, ops::logsumexp(scope, ways, {1}), ops::select(scope, emission, 1, t));
    total = ops::where(scope, ops::narrow(scope, counts, 1, t, 1), next, total);
  }
  total = ops::logsumexp(scope, ops::add(scope, total, rule.last), {1});
  return finish(scope, outs, ops::subtract(scope, total, score));
}

TENON_DECOMPOSE(crf_decoding) {
  const char* op = "crf_decoding";
  Scope scope(err);
  Tensor emission = operand(scope, args[0]), transition = operand(scope, args[1]),
         lengths = operand(scope, args[2]), target = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TagField field;
  TENON_TRY(expect_field(op, emission, transition, lengths, &field, err));
  if (target) TENON_TRY(expect_tags(op, target, field, err));
  lengths = as_int64(scope, lengths);
  const Transition rule = parts_of(scope, transition, field.tags);
  Tensor counts = counted_steps(scope, lengths, field.steps);
  // The first tag and the last one cost what is added here to the steps that they are in.
  Tensor numbers = numbers_to(scope, field.steps, lengths);
  Tensor starts = ops::unsqueeze(scope, ops::equal(scope, numbers, 0), {1});
  Tensor ends =
      ops::equal(scope, numbers, ops::unsqueeze(scope, ops::subtract(scope, lengths, 1), {1}));
  Tensor nothing = full_with(scope, transition, Shape(), 0);
  Tensor scores = ops::add(scope, emission, ops::where(scope, starts, rule.first, nothing));
  scores = ops::add(scope, scores,
                    ops::where(scope, ops::unsqueeze(scope, ends, {2}), rule.last, nothing));
  Tensor paths = ops::viterbi_decode(scope, scores, rule.between, lengths, false).paths;
  if (!target) return finish(scope, outs, paths);
  Tensor agree = ops::logical_and(scope, ops::equal(scope, paths, as_int64(scope, target)), counts);
  return finish(scope, outs, ops::cast(scope, agree, TENON_DTYPE_I64));
}

TENON_DECOMPOSE(beam_search_step) {
  const char* op = "beam_search_step";
  Scope scope(err);
  Tensor log_probs = operand(scope, args[0]), scores = operand(scope, args[1]),
         words = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t beams = int_of(args[3]), end = int_of(args[4]);
  if (log_probs->ndim != 3 || scores->ndim != 2 || words->ndim != 2 ||
      words->dtype == TENON_DTYPE_BOOL || words->dtype > TENON_DTYPE_I64 ||
      sizes_of(scores) != sizes_of(words) || scores->shape[0] != log_probs->shape[0] ||
      scores->shape[1] != log_probs->shape[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected log_probs [N, beams, words], scores [N, beams] and integer words "
                        "[N, beams], got shapes %s, %s and %s",
                        shape_text(*log_probs.get()).c_str(), shape_text(*scores.get()).c_str(),
                        shape_text(*words.get()).c_str());
  const int64_t batch = log_probs->shape[0], before = log_probs->shape[1],
                size = log_probs->shape[2];
  if (beams < 1 || beams > before * size || end < 0 || end >= size)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected beams from 1 to %lld and end from 0 to %lld, got %lld and %lld",
                        ll(before * size), ll(size - 1), ll(beams), ll(end));
  Tensor finished = ops::unsqueeze(scope, ops::equal(scope, as_int64(scope, words), end), {2});
  Tensor is_end = ops::equal(scope, numbers_to(scope, size, words), end);
  Tensor idle = ops::where(scope, is_end, full_with(scope, log_probs, Shape(), 0),
                           full_with(scope, log_probs, Shape(), -INFINITY));
  Tensor sums = ops::add(scope, ops::where(scope, finished, idle, log_probs),
                         ops::unsqueeze(scope, scores, {2}));
  auto [best, place] =
      ops::topk(scope, ops::reshape(scope, sums, {batch, before * size}), beams, 1);
  return finish(scope, outs, best, ops::remainder(scope, place, size),
                ops::floor_divide(scope, place, size));
}

TENON_DECOMPOSE(beam_search) {
  const char* op = "beam_search";
  Scope scope(err);
  Tensor words = operand(scope, args[0]), scores = operand(scope, args[1]),
         candidates = operand(scope, args[2]), offered = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const int64_t beams = int_of(args[4]), end = int_of(args[5]);
  TENON_TRY(expect_integers(op, "words", words, err));
  if (candidates) TENON_TRY(expect_integers(op, "candidates", candidates, err));
  if (offered->ndim != 3 || scores->ndim != 2 || sizes_of(scores) != sizes_of(words) ||
      scores->shape[0] != offered->shape[0] || scores->shape[1] != offered->shape[1] ||
      (candidates && sizes_of(candidates) != sizes_of(offered)))
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected words and scores [N, beams], and candidates and candidate_scores [N, beams, K], "
        "got shapes %s, %s, %s and %s",
        shape_text(*words.get()).c_str(), shape_text(*scores.get()).c_str(),
        candidates ? shape_text(*candidates.get()).c_str() : "none",
        shape_text(*offered.get()).c_str());
  if (!is_real_floating(scores->dtype) || !is_real_floating(offered->dtype))
    return shapes::fail(
        err, TENON_TYPE_MISMATCH, op,
        "expected floating scores and candidate_scores, got %s and %s; convert them "
        "with .to(float32)",
        host->dtype_name(scores->dtype), host->dtype_name(offered->dtype));
  const int64_t batch = offered->shape[0], before = offered->shape[1], size = offered->shape[2];
  if (beams < 1 || beams > before * size)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected beams from 1 to %lld, got %lld",
                        ll(before * size), ll(beams));
  Tensor so_far = ops::unsqueeze(scope, scores, {2});
  Tensor totals =
      bool_of(args[6]) ? std::move(offered) : ops::add(scope, ops::log(scope, offered), so_far);
  Tensor numbers = numbers_to(scope, size, words);
  Tensor named =
      candidates ? as_int64(scope, candidates) : ops::expand(scope, numbers, {batch, before, size});
  // A finished beam offers one candidate: its end, for what it has cost.
  Tensor finished = ops::unsqueeze(scope, ops::equal(scope, as_int64(scope, words), end), {2});
  Tensor idle = ops::where(scope, ops::equal(scope, numbers, 0), so_far,
                           full_with(scope, totals, Shape(), -INFINITY));
  totals = ops::where(scope, finished, idle, totals);
  named = ops::where(scope, finished, end, named);
  auto [best, place] =
      ops::topk(scope, ops::reshape(scope, totals, {batch, before * size}), beams, 1);
  Tensor chosen = ops::gather(scope, ops::reshape(scope, named, {batch, before * size}), place, 1);
  return finish(scope, outs, std::move(best), std::move(chosen),
                ops::floor_divide(scope, place, size));
}

TENON_DECOMPOSE(beam_search_decode) {
  const char* op = "beam_search_decode";
  Scope scope(err);
  Tensor words = operand(scope, args[0]), scores = operand(scope, args[1]),
         parents = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t end = int_of(args[3]);
  TENON_TRY(expect_integers(op, "words", words, err));
  TENON_TRY(expect_integers(op, "parents", parents, err));
  if (words->ndim != 3 || sizes_of(words) != sizes_of(scores) ||
      sizes_of(words) != sizes_of(parents))
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected words, scores and parents [T, N, beams], got shapes %s, %s and %s",
        shape_text(*words.get()).c_str(), shape_text(*scores.get()).c_str(),
        shape_text(*parents.get()).c_str());
  const int64_t steps = words->shape[0];
  words = as_int64(scope, words);
  Tensor traced = ops::permute(scope, ops::gather_tree(scope, words, parents), {1, 2, 0});
  Tensor along = ops::permute(scope, ops::gather_tree(scope, scores, parents), {1, 2, 0});
  // Words before the first end, and that.
  Tensor ends = ops::cast(scope, ops::equal(scope, traced, end), TENON_DTYPE_I64);
  Tensor ended_before =
      ops::greater(scope, ops::subtract(scope, ops::cumsum(scope, ends, 2), ends), 0);
  Tensor lengths = ops::subtract(scope, steps, ops::sum(scope, ended_before, {2}));
  return finish(scope, outs, ops::where(scope, ended_before, end, traced),
                ops::contiguous(scope, along), std::move(lengths));
}

TENON_DECOMPOSE(sequence_conv) {
  const char* op = "sequence_conv";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t length = int_of(args[3]), start = int_of(args[4]);
  // Without features any length would fit the weight, and a tensor is made for each step of it.
  if (x->ndim != 3 || x->shape[2] < 1 || weight->ndim != 2 || length < 1 ||
      weight->shape[0] / length != x->shape[2] || weight->shape[0] % length != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [N, T, D] with D of at least 1 and weight [length * D, C] with "
                        "length %lld, got shapes %s and %s",
                        ll(length), shape_text(*x.get()).c_str(),
                        shape_text(*weight.get()).c_str());
  const int64_t steps = x->shape[1];
  // What is beyond one length before the sequence or behind it is zeros only.
  if (start < -(steps + length) || start > steps)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected start from %lld to %lld, got %lld", ll(-(steps + length)),
                        ll(steps), ll(start));
  TENON_TRY(expect_lengths(op, lengths, x->shape[0], 0, steps, err));
  Tensor counts = ops::unsqueeze(scope, counted_steps(scope, as_int64(scope, lengths), steps), {2});
  Tensor zero = full_with(scope, x, Shape(), 0);
  const int64_t left = std::max<int64_t>(-start, 0),
                right = std::max<int64_t>(start + length - 1, 0);
  Tensor padded =
      ops::pad_constant(scope, ops::where(scope, counts, x, zero), {0, 0, left, right, 0, 0});
  std::vector<Tensor> columns;
  for (int64_t i = 0; i < length && scope.ok(); ++i)
    columns.push_back(ops::narrow(scope, padded, 1, left + start + i, steps));
  Tensor out = ops::matmul(scope, scope.ok() ? ops::concat(scope, columns, 2) : Tensor(), weight);
  return finish(scope, outs, ops::where(scope, counts, out, zero));
}

TENON_DECOMPOSE(add_position_encoding) {
  const char* op = "add_position_encoding";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim != 3 || x->shape[2] % 2 != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [N, T, D] with an even D, got shape %s",
                        shape_text(*x.get()).c_str());
  const int64_t half = x->shape[2] / 2;
  std::vector<double> rates;
  for (int64_t k = 0; k < half; ++k)
    rates.push_back(std::pow(
        10000.0, half > 1 ? -static_cast<double>(k) / static_cast<double>(half - 1) : 0.0));
  Tensor time =
      ops::cast(scope, ops::unsqueeze(scope, numbers_to(scope, x->shape[1], x), {1}), x->dtype);
  Tensor angle = ops::multiply(scope, time, float_tensor(scope, rates, x->dtype, x->device));
  Tensor encoding = ops::concat(scope, {ops::sin(scope, angle), ops::cos(scope, angle)}, 1);
  return finish(scope, outs,
                ops::add(scope, ops::multiply(scope, x, float_of(args[1])),
                         ops::multiply(scope, encoding, float_of(args[2]))));
}

}  // namespace tenon::standard_ops
