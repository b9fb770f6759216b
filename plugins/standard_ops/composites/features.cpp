// SPDX-License-Identifier: Apache-2.0
// Features of recommenders: normalisation by running sums, a layer for each slot, negative classes, tags, pools and hashes.
#include <optional>

#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// A vector of `count` elements, or an error that names it.
tenon_status expect_vector(const char* op, const char* name, const Tensor& x, int64_t count,
                           tenon_err* err) {
  if (x->ndim == 1 && x->shape[0] == count) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of shape [%lld], got shape %s",
                      name, ll(count), shape_text(*x.get()).c_str());
}

// Lengths [N] of at least 0 whose sum is `total`; their ends.
tenon_status read_ends(Scope& scope, const char* op, const char* name, const char* sum_text,
                       Tensor lengths, int64_t total, Tensor* ends, tenon_err* err) {
  TENON_TRY(expect_integers(op, name, lengths, err));
  if (lengths->ndim != 1 || (lengths->shape[0] == 0 && total > 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected %s [N] of %lld elements, got shape %s", name, ll(total),
                        shape_text(*lengths.get()).c_str());
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, name, lengths, 0, static_cast<double>(total),
                           err));
  *ends = ops::cumsum(scope, as_int64(scope, lengths), 0);
  if (!scope.ok()) return scope.status();
  const int64_t count = lengths->shape[0];
  if (count == 0) return TENON_OK;
  Tensor last = ops::narrow(scope, *ends, 0, count - 1, 1);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, sum_text, last, static_cast<double>(total),
                           static_cast<double>(total), err));
  // A recording checks what is computed from `last` alone.
  *ends = ops::concat(scope, {ops::narrow(scope, *ends, 0, 0, count - 1), last}, 0);
  return scope.status();
}

// XXH64 (Collet, 2012) in int64 tensors, which wrap around, as devices need not serve unsigned numbers.
class RowHash {
 public:
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                            kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                            kPrime5 = 0x27D4EB2F165667C5;

  RowHash(Scope& scope, int32_t device) : scope_(scope), device_(device) {}

  // Of rows of `words` [rows, count] of 8 bytes, behind which `rest` [rows] of 4 bytes may stand.
  Tensor of(const Tensor& words, const Tensor& rest, uint64_t seed) {
    const int64_t rows = words->shape[0], count = words->shape[1];
    const uint64_t bytes = 8 * static_cast<uint64_t>(count) + (rest ? 4 : 0);
    int64_t at = 0;
    Tensor hash;
    if (count >= 4) {
      Tensor lanes[4] = {filled(rows, seed + kPrime1 + kPrime2), filled(rows, seed + kPrime2),
                         filled(rows, seed), filled(rows, seed - kPrime1)};
      for (; at + 4 <= count && scope_.ok(); at += 4)
        for (int64_t lane = 0; lane < 4; ++lane)
          lanes[lane] = round(lanes[lane], ops::select(scope_, words, 1, at + lane));
      const int64_t turns[4] = {1, 7, 12, 18};
      hash = rotated(lanes[0], turns[0]);
      for (int lane = 1; lane < 4; ++lane)
        hash = ops::add(scope_, hash, rotated(lanes[lane], turns[lane]));
      for (const Tensor& lane : lanes) {
        hash = ops::bitwise_xor(scope_, hash, round(number(0), lane));
        hash = plus(times(hash, kPrime1), kPrime4);
      }
    } else {
      hash = filled(rows, seed + kPrime5);
    }
    hash = plus(hash, bytes);
    for (; at < count && scope_.ok(); ++at) {
      hash = ops::bitwise_xor(scope_, hash, round(number(0), ops::select(scope_, words, 1, at)));
      hash = plus(times(rotated(hash, 27), kPrime1), kPrime4);
    }
    if (rest) {
      hash = ops::bitwise_xor(scope_, hash, times(rest, kPrime1));
      hash = plus(times(rotated(hash, 23), kPrime2), kPrime3);
    }
    hash = times(folded(hash, 33), kPrime2);
    hash = times(folded(hash, 29), kPrime3);
    return folded(hash, 32);
  }

  Tensor number(uint64_t value) {
    return ops::full(scope_, IntList(), static_cast<int64_t>(value), TENON_DTYPE_I64, device_);
  }

  // Of the unsigned number with these bits; `modulus` is 2^62 at most.
  Tensor remainder(const Tensor& x, uint64_t modulus) {
    const Tensor divisor = number(modulus);
    const Tensor half = ops::remainder(scope_, right(x, 1), divisor);
    const Tensor last = ops::bitwise_and(scope_, x, number(1));
    return ops::remainder(scope_, ops::add(scope_, times(half, 2), last), divisor);
  }

  Tensor left(const Tensor& x, int64_t bits) {
    return ops::bitwise_left_shift(scope_, x, number(static_cast<uint64_t>(bits)));
  }

 private:
  Tensor filled(int64_t rows, uint64_t value) { return ops::expand(scope_, number(value), {rows}); }
  Tensor times(const Tensor& x, uint64_t factor) {
    return ops::multiply(scope_, x, number(factor));
  }
  Tensor plus(const Tensor& x, uint64_t term) { return ops::add(scope_, x, number(term)); }
  // Zeros come in from the left, whatever the sign.
  Tensor right(const Tensor& x, int64_t bits) {
    return ops::bitwise_and(
        scope_, ops::bitwise_right_shift(scope_, x, number(static_cast<uint64_t>(bits))),
        number(~uint64_t{0} >> bits));
  }
  Tensor rotated(const Tensor& x, int64_t bits) {
    return ops::bitwise_or(scope_, left(x, bits), right(x, 64 - bits));
  }
  Tensor folded(const Tensor& x, int64_t bits) {
    return ops::bitwise_xor(scope_, x, right(x, bits));
  }
  Tensor round(const Tensor& state, const Tensor& word) {
    return times(rotated(ops::add(scope_, state, times(word, kPrime2)), 31), kPrime1);
  }

  Scope& scope_;
  int32_t device_;
};

}  // namespace

TENON_DECOMPOSE(data_norm) {
  const char* op = "data_norm";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), size = operand(scope, args[1]), sum = operand(scope, args[2]),
         square_sum = operand(scope, args[3]), weight = operand(scope, args[4]),
         bias = operand(scope, args[5]);
  if (!scope.ok()) return scope.status();
  const int64_t slot = int_of(args[6]);
  if (x->ndim != 2 || !is_real_floating(x->dtype))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a floating x [N, C], got %s of shape %s",
                        host->dtype_name(x->dtype), shape_text(*x.get()).c_str());
  const int64_t rows = x->shape[0], columns = x->shape[1];
  TENON_TRY(expect_vector(op, "batch_size", size, columns, err));
  TENON_TRY(expect_vector(op, "batch_sum", sum, columns, err));
  TENON_TRY(expect_vector(op, "batch_square_sum", square_sum, columns, err));
  if (weight) TENON_TRY(expect_vector(op, "weight", weight, columns, err));
  if (bias) TENON_TRY(expect_vector(op, "bias", bias, columns, err));
  if (slot > 0 && columns % slot != 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a slot_dim that divides the %lld columns, got %lld", ll(columns),
                        ll(slot));
  Tensor mean = ops::divide(scope, sum, size);
  Tensor scale = ops::sqrt(scope, ops::divide(scope, size, square_sum));
  Tensor out = ops::multiply(scope, ops::subtract(scope, x, mean), scale);
  if (weight) out = ops::multiply(scope, out, weight);
  if (bias) out = ops::add(scope, out, bias);
  if (slot > 0) {
    const Shape slots = {rows, columns / slot, slot};
    Tensor shows = ops::narrow(scope, ops::reshape(scope, x, slots), 2, 0, 1);
    // NaN shows are no zeros.
    Tensor unseen = ops::less(scope, ops::abs(scope, shows), 1e-7);
    out = ops::where(scope, unseen, zero_of(scope, x), ops::reshape(scope, out, slots));
    out = ops::reshape(scope, out, {rows, columns});
  }
  return finish(scope, outs, std::move(out), std::move(mean), std::move(scale));
}

TENON_DECOMPOSE(batch_fc) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), weight = operand(scope, args[1]),
         bias = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  if (x->ndim != 3 || weight->ndim != 3 || bias->ndim != 2 || weight->shape[0] != x->shape[0] ||
      weight->shape[1] != x->shape[2] || bias->shape[0] != x->shape[0] ||
      bias->shape[1] != weight->shape[2])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "batch_fc",
                        "expected x [slots, N, inputs], weight [slots, inputs, outputs] and bias "
                        "[slots, outputs], got shapes %s, %s and %s",
                        shape_text(*x.get()).c_str(), shape_text(*weight.get()).c_str(),
                        shape_text(*bias.get()).c_str());
  return finish(scope, outs,
                ops::add(scope, ops::matmul(scope, x, weight), ops::unsqueeze(scope, bias, {1})));
}

TENON_DECOMPOSE(nce) {
  const char* op = "nce";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]),
         weight = operand(scope, args[2]), bias = operand(scope, args[3]),
         probabilities = operand(scope, args[4]), factors = operand(scope, args[5]),
         negatives = operand(scope, args[6]);
  if (!scope.ok()) return scope.status();
  if (x->ndim != 2 || target->ndim != 2 || weight->ndim != 2 || target->shape[0] != x->shape[0] ||
      weight->shape[1] != x->shape[1])
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected x [N, D], target [N, T] and weight [classes, D], got shapes %s, %s and %s",
        shape_text(*x.get()).c_str(), shape_text(*target.get()).c_str(),
        shape_text(*weight.get()).c_str());
  const int64_t rows = x->shape[0], features = x->shape[1], classes = weight->shape[0],
                targets = target->shape[1];
  if (bias) TENON_TRY(expect_vector(op, "bias", bias, classes, err));
  if (probabilities) TENON_TRY(expect_vector(op, "probabilities", probabilities, classes, err));
  if (factors) TENON_TRY(expect_vector(op, "sample_weight", factors, rows, err));
  int64_t count = is_none(args[7]) ? 10 : int_of(args[7]);
  if (classes < 1 || count < 0 || (negatives && !is_none(args[7])))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected at least one class, and a count of at least 0 or negatives, got "
                        "%lld classes, %s and negatives %s",
                        ll(classes), is_none(args[7]) ? "no count" : std::to_string(count).c_str(),
                        negatives ? shape_text(*negatives.get()).c_str() : "none");
  if (negatives) {
    if (negatives->ndim != 2 || negatives->shape[0] != rows)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected negatives of shape [%lld, count], got shape %s", ll(rows),
                          shape_text(*negatives.get()).c_str());
    count = negatives->shape[1];
  } else if (!probabilities || rows * count == 0) {
    negatives = ops::randint(scope, 0, classes, {rows, count}, TENON_DTYPE_I64, x->device);
  } else {
    Tensor drawn =
        ops::multinomial(scope, ops::stop_gradient(scope, probabilities), rows * count, true);
    negatives = ops::reshape(scope, drawn, {rows, count});
  }
  const int64_t all = targets + count;
  Tensor index = ops::concat(scope, {as_int64(scope, target), as_int64(scope, negatives)}, 1);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "classes", index, 0,
                           static_cast<double>(classes - 1), err));
  Tensor flat = ops::reshape(scope, index, {-1});
  Tensor chosen =
      ops::reshape(scope, ops::index_select(scope, weight, flat, 0), {rows, all, features});
  Tensor logits =
      ops::squeeze(scope, ops::matmul(scope, chosen, ops::unsqueeze(scope, x, {2})), {2});
  if (bias)
    logits = ops::add(scope, logits,
                      ops::reshape(scope, ops::index_select(scope, bias, flat, 0), {rows, all}));
  Tensor noise;
  if (probabilities)
    noise = ops::multiply(
        scope, ops::reshape(scope, ops::index_select(scope, probabilities, flat, 0), {rows, all}),
        static_cast<double>(count));
  else
    noise = full_with(scope, logits, Shape{rows, all},
                      static_cast<double>(count) / static_cast<double>(classes));
  // log(s / (s + b)) and log(b / (s + b)) by logarithms of both parts, so that neither underflows: also s + b is
  // s alone where the noise is 0.
  Tensor both = ops::logaddexp(scope, ops::log_sigmoid(scope, logits), ops::log(scope, noise));
  Tensor part = ops::concat(scope,
                            {ops::log_sigmoid(scope, ops::narrow(scope, logits, 1, 0, targets)),
                             ops::log(scope, ops::narrow(scope, noise, 1, targets, count))},
                            1);
  Tensor cost = ops::sum(scope, ops::subtract(scope, both, part), {1}, true);
  if (factors) cost = ops::multiply(scope, cost, ops::unsqueeze(scope, factors, {1}));
  return finish(scope, outs, std::move(cost));
}

TENON_DECOMPOSE(filter_by_instag) {
  const char* op = "filter_by_instag";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), tags = operand(scope, args[1]),
         lengths = operand(scope, args[2]), wanted = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_integers(op, "tags", tags, err));
  TENON_TRY(expect_integers(op, "filter_tags", wanted, err));
  if (x->ndim < 1 || tags->ndim != 1 || wanted->ndim != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [N, ...], tags [total] and filter_tags [F], got shapes %s, %s "
                        "and %s",
                        shape_text(*x.get()).c_str(), shape_text(*tags.get()).c_str(),
                        shape_text(*wanted.get()).c_str());
  const int64_t rows = x->shape[0], total = tags->shape[0];
  TENON_TRY(expect_vector(op, "tag_lengths", lengths, rows, err));
  Tensor ends;
  TENON_TRY(read_ends(scope, op, "tag_lengths", "tag_lengths whose sum is the number of tags,",
                      lengths, total, &ends, err));
  Tensor kept;
  if (total > 0) {
    Tensor fits = ops::any(scope,
                           ops::equal(scope, ops::unsqueeze(scope, as_int64(scope, tags), {1}),
                                      as_int64(scope, wanted)),
                           {1});
    Tensor owner = ops::searchsorted(scope, ends, numbers_to(scope, total, tags), true);
    Tensor found = ops::segment_sum(scope, ops::cast(scope, fits, TENON_DTYPE_I64), owner, rows);
    kept = ops::select(scope, ops::nonzero(scope, ops::greater(scope, found, 0)), 1, 0);
    if (!scope.ok()) return scope.status();
  }
  int32_t weight_dtype = TENON_DTYPE_F32;
  if (x->dtype == TENON_DTYPE_F64) weight_dtype = x->dtype;
  Shape weights = {1, 1};
  if (!kept || kept->shape[0] == 0) {
    Shape shape = sizes_of(x);
    shape[0] = 1;
    return finish(scope, outs, full_with(scope, x, shape, ScalarArg(args[4])),
                  ops::zeros(scope, list_of(weights), weight_dtype, x->device),
                  ops::full(scope, {1}, int64_t{-1}, TENON_DTYPE_I64, x->device));
  }
  weights[0] = kept->shape[0];
  Tensor out = ops::index_select(scope, x, kept, 0);
  return finish(scope, outs, std::move(out),
                ops::ones(scope, list_of(weights), weight_dtype, x->device),
                ops::clone(scope, kept));
}

TENON_DECOMPOSE(shuffle_batch) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "shuffle_batch",
                        "expected x [..., D], got shape []");
  const Shape shape = sizes_of(x);
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  Tensor order = ops::randperm(scope, rows, TENON_DTYPE_I64, x->device);
  Tensor vectors = ops::reshape(scope, x, {rows, shape.back()});
  Tensor out = ops::reshape(scope, ops::index_select(scope, vectors, order, 0), list_of(shape));
  return finish(scope, outs, std::move(out), std::move(order));
}

TENON_DECOMPOSE(fused_embedding_seq_pool) {
  const char* op = "fused_embedding_seq_pool";
  Scope scope(err);
  Tensor weight = operand(scope, args[0]), indices = operand(scope, args[1]),
         lengths = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  if (weight->ndim != 2 || (indices->ndim != 1 && indices->ndim != 2) ||
      (indices->ndim == 2 && indices->shape[1] < 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected weight [rows, features] and indices [n] or [n, K], got shapes %s "
                        "and %s",
                        shape_text(*weight.get()).c_str(), shape_text(*indices.get()).c_str());
  Tensor ends;
  TENON_TRY(read_ends(scope, op, "lengths", "lengths whose sum is the number of positions,",
                      lengths, indices->shape[0], &ends, err));
  Tensor zero = full_with(scope, ends, Shape{1}, 0);
  Tensor offsets = ops::concat(scope, {zero, ends}, 0);
  const int64_t columns = indices->ndim == 2 ? indices->shape[1] : 1;
  std::optional<int64_t> padding;
  if (!is_none(args[4])) padding = int_of(args[4]);
  std::vector<Tensor> pools;
  for (int64_t k = 0; k < columns && scope.ok(); ++k) {
    Tensor column = indices->ndim == 2 ? ops::contiguous(scope, ops::select(scope, indices, 1, k))
                                       : Tensor::borrow(indices.get());
    pools.push_back(
        ops::embedding_bag(scope, weight, column, offsets, nullptr, text_of(args[3]), padding));
  }
  if (!scope.ok()) return scope.status();
  return finish(scope, outs, columns == 1 ? std::move(pools[0]) : ops::concat(scope, pools, 1));
}

TENON_DECOMPOSE(hash) {
  const char* op = "hash";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[1]), modulus = int_of(args[2]);
  if (x->ndim < 1 || count < 1 || modulus < 1 || modulus > int64_t{1} << 62)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected x [..., D], num_hash of at least 1 and mod_by from 1 to 2^62, got "
        "shape %s, %lld and %lld",
        shape_text(*x.get()).c_str(), ll(count), ll(modulus));
  Shape shape = sizes_of(x);
  const int64_t words = shape.back();
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  Tensor flat = ops::reshape(scope, x, {rows, words});
  RowHash hasher(scope, x->device);
  Tensor whole, rest;
  if (x->dtype == TENON_DTYPE_I64) {
    whole = flat;
  } else {  // two numbers of 4 bytes are a word, the first one its lower half
    Tensor half =
        ops::bitwise_and(scope, ops::cast(scope, flat, TENON_DTYPE_I64), hasher.number(0xFFFFFFFF));
    Tensor pairs =
        ops::reshape(scope, ops::narrow(scope, half, 1, 0, words / 2 * 2), {rows, words / 2, 2});
    whole = ops::bitwise_or(scope, ops::select(scope, pairs, 2, 0),
                            hasher.left(ops::select(scope, pairs, 2, 1), 32));
    if (words % 2 != 0) rest = ops::select(scope, half, 1, words - 1);
  }
  if (!scope.ok()) return scope.status();
  std::vector<Tensor> hashes;
  for (int64_t seed = 0; seed < count && scope.ok(); ++seed)
    hashes.push_back(hasher.remainder(hasher.of(whole, rest, static_cast<uint64_t>(seed)),
                                      static_cast<uint64_t>(modulus)));
  if (!scope.ok()) return scope.status();
  Tensor out = ops::stack(scope, hashes, 1);
  shape.back() = count;
  shape.push_back(1);
  return finish(scope, outs, ops::reshape(scope, out, list_of(shape)));
}

}  // namespace tenon::standard_ops
