// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths and decoding, a step at a time for all sequences.
#include "composites/data_reads.hpp"
#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

bool is_integer(const Tensor& x) {
  return x->dtype != TENON_DTYPE_BOOL && x->dtype <= TENON_DTYPE_I64;
}

// A length for each of `batch` sequences; any number of them if that is negative.
tenon_status expect_lengths(const char* op, const Tensor& lengths, int64_t batch, tenon_err* err) {
  if (is_integer(lengths) && lengths->ndim == 1 && (batch < 0 || lengths->shape[0] == batch))
    return TENON_OK;
  const std::string wanted = batch < 0 ? "[N]" : "[" + std::to_string(batch) + "]";
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected integer lengths of shape %s, got %s of shape %s", wanted.c_str(),
                      host->dtype_name(lengths->dtype), shape_text(*lengths.get()).c_str());
}

// x [N, T, ...] and lengths from 0 to T.
tenon_status expect_sequences(const char* op, const Tensor& x, Tensor& lengths, tenon_err* err) {
  if (x->ndim < 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected x [N, T, ...], got shape %s",
                        shape_text(*x.get()).c_str());
  TENON_TRY(expect_lengths(op, lengths, x->shape[0], err));
  return expect_between(TENON_INVALID_ARGUMENT, op, "lengths", lengths, 0,
                        static_cast<double>(x->shape[1]), err);
}

// The numbers of the elements of a mask that are true.
Tensor flat_true_indices(Scope& scope, const Tensor& mask) {
  return ops::select(scope, ops::nonzero(scope, ops::reshape(scope, mask, {-1})), 1, 0);
}

// [N, count]: is an element before the end of its sequence?
Tensor before_end(Scope& scope, const Tensor& lengths, int64_t count) {
  return ops::less(scope, numbers_to(scope, count, lengths), ops::unsqueeze(scope, lengths, {1}));
}

}  // namespace

TENON_DECOMPOSE(viterbi_decode) {
  const char* op = "viterbi_decode";
  Scope scope(err);
  Tensor potentials = operand(scope, args[0]), transition = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const bool has_ends = bool_of(args[3]);
  TENON_TRY(expect_ndim(op, "potentials", *potentials.get(), 3, "[N, T, tags]", err));
  const int64_t batch = potentials->shape[0], steps = potentials->shape[1],
                tags = potentials->shape[2];
  if (transition->ndim != 2 || transition->shape[0] != tags || transition->shape[1] != tags ||
      tags < (has_ends ? 2 : 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected potentials [N, T, tags] and transition [tags, tags], got shapes "
                        "%s and %s",
                        shape_text(*potentials.get()).c_str(),
                        shape_text(*transition.get()).c_str());
  Tensor lengths = operand(scope, args[2]);
  TENON_TRY(expect_lengths(op, lengths, batch, err));
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "lengths", lengths, 1,
                           static_cast<double>(steps), err));
  if (steps == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected at least one step, got potentials of shape %s",
                        shape_text(*potentials.get()).c_str());
  lengths = ops::unsqueeze(scope, as_int64(scope, lengths), {1});
  Tensor score = ops::select(scope, potentials, 1, 0);
  if (has_ends) score = ops::add(scope, score, ops::select(scope, transition, 0, tags - 1));
  std::vector<Tensor> from;  // the best tag before each one, from step 1 on
  for (int64_t t = 1; t < steps && scope.ok(); ++t) {
    Tensor ways = ops::add(scope, ops::unsqueeze(scope, score, {2}), transition);
    from.push_back(ops::argmax(scope, ways, 1));
    Tensor best = ops::squeeze(
        scope, ops::gather(scope, ways, ops::unsqueeze(scope, from.back(), {1}), 1), {1});
    best = ops::add(scope, best, ops::select(scope, potentials, 1, t));
    score = ops::where(scope, ops::greater(scope, lengths, t), best, score);
  }
  if (has_ends) score = ops::add(scope, score, ops::select(scope, transition, 1, tags - 2));
  Tensor tag = ops::argmax(scope, score, 1, true);
  Tensor total = ops::squeeze(scope, ops::gather(scope, score, tag, 1), {1});
  std::vector<Tensor> path(static_cast<size_t>(steps));
  for (int64_t t = steps - 1; t >= 0 && scope.ok(); --t) {
    Tensor counts = ops::greater(scope, lengths, t);
    path[static_cast<size_t>(t)] = ops::where(scope, counts, tag, int64_t{0});
    if (t == 0) break;
    Tensor earlier = ops::gather(scope, from[static_cast<size_t>(t - 1)], tag, 1);
    tag = ops::where(scope, counts, earlier, tag);
  }
  return finish(scope, outs, total, scope.ok() ? ops::concat(scope, path, 1) : Tensor());
}

TENON_DECOMPOSE(gather_tree) {
  const char* op = "gather_tree";
  Scope scope(err);
  Tensor ids = operand(scope, args[0]), parents = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_ndim(op, "ids", *ids.get(), 3, "[T, N, beams]", err));
  if (sizes_of(ids) != sizes_of(parents) || !is_integer(parents))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected integer parents of the shape of ids, got %s and %s",
                        shape_text(*parents.get()).c_str(), shape_text(*ids.get()).c_str());
  const int64_t steps = ids->shape[0];
  if (ids->numel == 0) return finish(scope, outs, full_with(scope, ids, shape_of(*ids.get()), 0));
  std::vector<Tensor> sequence(static_cast<size_t>(steps));
  sequence.back() = ops::select(scope, ids, 0, steps - 1);
  Tensor beam = ops::select(scope, parents, 0, steps - 1);
  for (int64_t t = steps - 2; t >= 0 && scope.ok(); --t) {
    sequence[static_cast<size_t>(t)] = ops::gather(scope, ops::select(scope, ids, 0, t), beam, -1);
    beam = ops::gather(scope, ops::select(scope, parents, 0, t), beam, -1);
  }
  return finish(scope, outs, scope.ok() ? ops::stack(scope, sequence, 0) : Tensor());
}

// Anti-diagonals of the table of distances between beginnings: element i of diagonal d is the
// distance between the first i labels of x and the first d - i of the target.
TENON_DECOMPOSE(edit_distance) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]);
  Tensor input_lengths = operand(scope, args[2]), target_lengths = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  const char* op = "edit_distance";
  const int64_t batch = x->shape[0], rows = x->shape[1], columns = target->shape[1];
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "input_lengths", input_lengths, 0,
                           static_cast<double>(rows), err));
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "target_lengths", target_lengths, 0,
                           static_cast<double>(columns), err));
  input_lengths = ops::unsqueeze(scope, as_int64(scope, input_lengths), {1});
  target_lengths = ops::unsqueeze(scope, as_int64(scope, target_lengths), {1});
  const int64_t beyond = rows + columns + 1;  // more than any distance
  Tensor i = numbers_to(scope, rows + 1, x);
  const auto moved = [&](const Tensor& distances) {  // element i - 1 in the place of i
    Tensor first = full_with(scope, distances, Shape{batch, 1}, beyond);
    return ops::concat(scope, {first, ops::narrow(scope, distances, 1, 0, rows)}, 1);
  };
  // Labels of x before place i; a first one that no label equals is never looked at.
  Tensor label = rows > 0 ? ops::concat(scope, {ops::narrow(scope, x, 1, 0, 1), x}, 1) : Tensor();
  Tensor last = ops::full(scope, {batch, rows + 1}, beyond, TENON_DTYPE_I64, x->device);
  Tensor before = last, total = ops::full(scope, {batch}, int64_t{0}, TENON_DTYPE_I64, x->device);
  for (int64_t d = 0; d <= rows + columns && scope.ok(); ++d) {
    Tensor j = ops::subtract(scope, d, i);
    Tensor best = ops::add(scope, ops::minimum(scope, last, moved(last)), 1);
    if (rows > 0 && columns > 0) {
      Tensor at = ops::clip(scope, ops::subtract(scope, j, 1), int64_t{0}, columns - 1);
      Tensor other = ops::gather(
          scope, target, ops::expand(scope, ops::unsqueeze(scope, at, {0}), {batch, rows + 1}), 1);
      Tensor replaced = ops::cast(scope, ops::not_equal(scope, label, other), TENON_DTYPE_I64);
      best = ops::minimum(scope, best, ops::add(scope, moved(before), replaced));
    }
    best = ops::where(scope, ops::equal(scope, j, 0), i, best);
    best = ops::where(scope, ops::equal(scope, i, 0), d, best);
    Tensor is_inside = ops::logical_and(scope, ops::greater_equal(scope, j, 0),
                                        ops::less_equal(scope, j, columns));
    best = ops::where(scope, is_inside, best, beyond);
    Tensor is_end = ops::logical_and(scope, ops::equal(scope, i, input_lengths),
                                     ops::equal(scope, j, target_lengths));
    total =
        ops::add(scope, total, ops::sum(scope, ops::where(scope, is_end, best, int64_t{0}), {1}));
    before = last;
    last = best;
  }
  Tensor distance = ops::cast(scope, total, TENON_DTYPE_F32);
  if (bool_of(args[4])) {
    Tensor length = ops::squeeze(scope, target_lengths, {1});
    distance = ops::divide(scope, distance, ops::cast(scope, length, TENON_DTYPE_F32));
    distance = ops::where(scope, ops::equal(scope, total, 0), 0, distance);
  }
  return finish(scope, outs, distance);
}

TENON_DECOMPOSE(ctc_align) {
  const char* op = "ctc_align";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (!is_integer(x))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected integer labels, got %s",
                        host->dtype_name(x->dtype));
  TENON_TRY(expect_ndim(op, "x", *x.get(), 2, "[N, T]", err));
  const int64_t batch = x->shape[0], steps = x->shape[1];
  Tensor keep = ops::not_equal(scope, x, int_of(args[2]));
  if (lengths) {
    TENON_TRY(expect_sequences(op, x, lengths, err));
    keep = ops::logical_and(scope, keep, before_end(scope, lengths, steps));
  }
  if (bool_of(args[3]) && steps > 0) {
    Tensor is_new = ops::not_equal(scope, x, ops::roll(scope, x, {1}, {1}));
    is_new = ops::logical_or(scope, is_new, ops::equal(scope, numbers_to(scope, steps, x), 0));
    keep = ops::logical_and(scope, keep, is_new);
  }
  // Labels to keep go to the place that their number gives; the others to one behind the row.
  Tensor place = ops::subtract(scope, ops::cumsum(scope, keep, 1), 1);
  place = ops::where(scope, keep, place, steps);
  Tensor rows = full_with(scope, x, Shape{batch, steps + 1}, int_of(args[4]));
  Tensor labels = ops::narrow(scope, ops::scatter(scope, rows, place, x, 1), 1, 0, steps);
  return finish(scope, outs, ops::clone(scope, labels), ops::sum(scope, keep, {1}));
}

TENON_DECOMPOSE(ctc_greedy_decode) {
  const char* op = "ctc_greedy_decode";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_ndim(op, "x", *x.get(), 3, "[N, T, classes]", err));
  const int64_t classes = x->shape[2], blank = int_of(args[2]);
  if (blank < 0 || blank >= classes)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a blank from 0 to %lld, got %lld", ll(classes - 1), ll(blank));
  if (lengths) TENON_TRY(expect_sequences(op, x, lengths, err));
  Tensor likeliest =
      x->numel > 0 ? ops::argmax(scope, x, -1)
                   : ops::zeros(scope, {x->shape[0], x->shape[1]}, TENON_DTYPE_I64, x->device);
  auto [labels, counts] =
      ops::ctc_align(scope, likeliest, lengths, blank, bool_of(args[3]), int_of(args[4]));
  return finish(scope, outs, std::move(labels), std::move(counts));
}

TENON_DECOMPOSE(sequence_pool) {
  const char* op = "sequence_pool";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected x [rows, ...], got shape []");
  TENON_TRY(expect_lengths(op, lengths, -1, err));
  const std::string_view reduce = text_of(args[2]);
  const bool is_average = reduce == "mean" || reduce == "sqrt";
  if (!is_average && reduce != "sum" && reduce != "max" && reduce != "min" && reduce != "first" &&
      reduce != "last")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected reduce 'sum', 'mean', 'sqrt', 'max', 'min', 'first' or 'last', "
                        "got '%.*s'",
                        static_cast<int>(reduce.size()), reduce.data());
  if (is_average && !is_real_floating(x->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected a floating x for reduce '%.*s', got %s; convert it with "
                        ".to(float32)",
                        static_cast<int>(reduce.size()), reduce.data(), host->dtype_name(x->dtype));
  const int64_t rows = x->shape[0], batch = lengths->shape[0];
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "lengths", lengths, 0,
                           static_cast<double>(rows), err));
  lengths = as_int64(scope, lengths);
  Tensor ends = ops::cumsum(scope, lengths, 0);
  if (!scope.ok()) return scope.status();
  if (batch > 0) {
    Tensor last = ops::narrow(scope, ends, 0, batch - 1, 1);
    if (!scope.ok()) return scope.status();
    TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "lengths whose sum is the number of rows,",
                             last, static_cast<double>(rows), static_cast<double>(rows), err));
    // A recording checks what is computed from `last` alone.
    ends = ops::concat(scope, {ops::narrow(scope, ends, 0, 0, batch - 1), last}, 0);
  } else if (rows > 0) {
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected lengths of %lld rows, got no lengths", ll(rows));
  }
  Shape shape = sizes_of(x), beside(static_cast<size_t>(x->ndim), 1);
  shape[0] = beside[0] = batch;
  Tensor padding = ops::full(scope, IntList(), ScalarArg(args[3]), x->dtype, x->device);
  if (x->numel == 0 || batch == 0)
    return finish(scope, outs, full_with(scope, x, shape, ScalarArg(args[3])));
  Tensor pooled;
  if (reduce == "first" || reduce == "last") {
    Tensor at =
        reduce == "first" ? ops::subtract(scope, ends, lengths) : ops::subtract(scope, ends, 1);
    pooled = ops::index_select(scope, x, ops::clip(scope, at, int64_t{0}, rows - 1), 0);
  } else {
    // The sequence of a row is the number of sequences that end before it or at it.
    Tensor index = ops::searchsorted(scope, ends, numbers_to(scope, rows, x), true);
    pooled = reduce == "mean"  ? ops::segment_mean(scope, x, index, batch)
             : reduce == "max" ? ops::segment_max(scope, x, index, batch)
             : reduce == "min" ? ops::segment_min(scope, x, index, batch)
                               : ops::segment_sum(scope, x, index, batch);
  }
  if (!scope.ok()) return scope.status();
  if (reduce == "sqrt") {
    Tensor root = ops::sqrt(
        scope, ops::cast(scope, ops::clip(scope, lengths, int64_t{1}, nullptr), x->dtype));
    pooled = ops::divide(scope, pooled, ops::reshape(scope, root, beside));
  }
  Tensor is_empty = ops::reshape(scope, ops::equal(scope, lengths, 0), beside);
  return finish(scope, outs, ops::where(scope, is_empty, padding, pooled));
}

TENON_DECOMPOSE(sequence_pad) {
  const char* op = "sequence_pad";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected x [rows, ...], got shape []");
  TENON_TRY(expect_lengths(op, lengths, -1, err));
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "lengths", lengths, 0,
                           static_cast<double>(x->shape[0]), err));
  lengths = as_int64(scope, lengths);
  int64_t count = is_none(args[2]) ? 0 : int_of(args[2]);
  if (count < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a count of at least 0, got %lld",
                        ll(count));
  if (is_none(args[2]) && lengths->numel > 0) {
    TENON_TRY(expect_readable(
        op, lengths,
        " gives a result as long as the longest of its lengths, and a program has fixed shapes; "
        "pass the count",
        err));
    Tensor longest = ops::to_device(scope, ops::max(scope, lengths), host->device_host());
    if (!has_elements(scope, longest)) return scope.status();
    count = *static_cast<const int64_t*>(longest->data);
  }
  const int64_t batch = lengths->shape[0];
  Shape shape = {batch, count};
  shape.insert(shape.end(), x->shape + 1, x->shape + x->ndim);
  if (x->shape[0] == 0 || batch == 0 || count == 0)
    return finish(scope, outs, full_with(scope, x, shape, ScalarArg(args[3])));
  Tensor begin = ops::subtract(scope, ops::cumsum(scope, lengths, 0), lengths);
  Tensor index = ops::add(scope, ops::unsqueeze(scope, begin, {1}), numbers_to(scope, count, x));
  Tensor mask = before_end(scope, lengths, count);
  index = ops::where(scope, mask, index, int64_t{0});
  Tensor rows = ops::index_select(scope, x, index, 0);
  Shape beside = {batch, count};
  beside.insert(beside.end(), static_cast<size_t>(x->ndim - 1), 1);
  Tensor value = ops::full(scope, IntList(), ScalarArg(args[3]), x->dtype, x->device);
  return finish(scope, outs, ops::where(scope, ops::reshape(scope, mask, beside), rows, value));
}

TENON_DECOMPOSE(sequence_unpad) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_sequences("sequence_unpad", x, lengths, err));
  Shape shape = {x->shape[0] * x->shape[1]};
  shape.insert(shape.end(), x->shape + 2, x->shape + x->ndim);
  Tensor rows = flat_true_indices(scope, before_end(scope, lengths, x->shape[1]));
  return finish(scope, outs, ops::index_select(scope, ops::reshape(scope, x, shape), rows, 0));
}

TENON_DECOMPOSE(sequence_reverse) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), lengths = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_sequences("sequence_reverse", x, lengths, err));
  const int64_t batch = x->shape[0], steps = x->shape[1];
  Tensor at = numbers_to(scope, steps, x);
  Tensor length = ops::unsqueeze(scope, as_int64(scope, lengths), {1});
  Tensor reversed = ops::subtract(scope, ops::subtract(scope, length, 1), at);
  Tensor index = ops::where(scope, ops::less(scope, at, length), reversed, at);
  Tensor first = ops::multiply(scope, numbers_to(scope, batch, x), steps);
  index = ops::add(scope, index, ops::unsqueeze(scope, first, {1}));
  Shape flat = {batch * steps};
  flat.insert(flat.end(), x->shape + 2, x->shape + x->ndim);
  return finish(scope, outs, ops::index_select(scope, ops::reshape(scope, x, flat), index, 0));
}

TENON_DECOMPOSE(top_p_sampling) {
  const char* op = "top_p_sampling";
  Scope scope(err);
  Tensor probabilities = operand(scope, args[0]), p = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  Shape rows = sizes_of(probabilities);
  if (!rows.empty()) rows.pop_back();
  if (probabilities->ndim < 1 || probabilities->shape[probabilities->ndim - 1] < 1 ||
      sizes_of(p) != rows || !is_real_floating(probabilities->dtype))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected floating probabilities [..., classes] and p [...], got %s of "
                        "shape %s and %s",
                        host->dtype_name(probabilities->dtype),
                        shape_text(*probabilities.get()).c_str(), shape_text(*p.get()).c_str());
  Tensor plain = ops::stop_gradient(scope, probabilities);
  auto [values, indices] = ops::sort_with_indices(scope, plain, -1, true);
  // Summed in float32: float16 cannot count many small probabilities.
  Tensor wide = values;
  if (scope.ok() && values->dtype != TENON_DTYPE_F64)
    wide = ops::cast(scope, values, TENON_DTYPE_F32);
  Tensor before = ops::subtract(scope, ops::cumsum(scope, wide, -1), wide);
  Tensor is_first =
      ops::equal(scope, numbers_to(scope, probabilities->shape[probabilities->ndim - 1], wide), 0);
  Tensor choice =
      ops::logical_or(scope, ops::less(scope, before, ops::unsqueeze(scope, p, {-1})), is_first);
  Tensor drawn = ops::multinomial(scope, ops::where(scope, choice, wide, 0), 1);
  const auto at_drawn = [&](const Tensor& x) {
    return ops::squeeze(scope, ops::gather(scope, x, drawn, -1), {-1});
  };
  return finish(scope, outs, at_drawn(values), at_drawn(indices));
}

}  // namespace tenon::standard_ops
