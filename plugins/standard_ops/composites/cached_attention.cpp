// SPDX-License-Identifier: Apache-2.0
// Attention in packed sequences and in caches: gathers around scaled_dot_product_attention.
#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

std::optional<double> optional_scale(const tenon_value& value) {
  return is_none(value) ? std::nullopt : std::optional<double>(float_of(value));
}

// Sequences that lie one after another.
struct Packed {
  Tensor begin, length;  // [N]
  int64_t most;

  // Rows [total, heads, features] as [N, heads, most, features]; what is behind a sequence's end is
  // some other row.
  Tensor padded(Scope& scope, const Tensor& rows) const {
    Tensor index =
        ops::add(scope, ops::unsqueeze(scope, begin, {1}), numbers_to(scope, most, rows));
    index = ops::clip(scope, index, int64_t{0}, std::max<int64_t>(rows->shape[0] - 1, 0));
    return ops::permute(scope, ops::index_select(scope, rows, index, 0), {0, 2, 1, 3});
  }
};

tenon_status read_packed(Scope& scope, const char* name, const Tensor& rows,
                         const tenon_value& given, int64_t most, Packed* out, tenon_err* err) {
  const char* op = "varlen_attention";
  Tensor offsets = operand(scope, given);
  if (!scope.ok()) return scope.status();
  if (!(shapes::bit(offsets->dtype) & shapes::kIntegers) || offsets->ndim != 1 ||
      offsets->shape[0] < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected integer %s_offsets [N + 1], got %s of shape %s", name,
                        host->dtype_name(offsets->dtype), shape_text(*offsets.get()).c_str());
  if (most < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected max_%s of at least 0, got %lld",
                        name, ll(most));
  const int64_t count = offsets->shape[0] - 1;
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "offsets", offsets, 0,
                           static_cast<double>(rows->shape[0]), err));
  offsets = as_int64(scope, offsets);
  out->begin = ops::narrow(scope, offsets, 0, 0, count);
  out->length = ops::subtract(scope, ops::narrow(scope, offsets, 0, 1, count), out->begin);
  out->most = most;
  if (!scope.ok()) return scope.status();
  return expect_between(TENON_INVALID_ARGUMENT, op, "lengths of sequences", out->length, 0,
                        static_cast<double>(most), err);
}

tenon_status check_rows(const Tensor& query, const Tensor& key, const Tensor& value,
                        tenon_err* err) {
  const bool fits = query->ndim == 3 && key->ndim == 3 && value->ndim == 3 &&
                    key->shape[0] == value->shape[0] && key->shape[1] == value->shape[1] &&
                    query->shape[2] == key->shape[2] && key->shape[1] > 0 &&
                    query->shape[1] % key->shape[1] == 0;
  if (fits) return TENON_OK;
  return shapes::fail(
      err, TENON_INVALID_ARGUMENT, "varlen_attention",
      "expected query [total, heads, features], and key and value [total, kv_heads, "
      "features] with a number of kv_heads that divides heads, got shapes %s, %s "
      "and %s",
      shape_text(*query.get()).c_str(), shape_text(*key.get()).c_str(),
      shape_text(*value.get()).c_str());
}

}  // namespace

TENON_DECOMPOSE(varlen_attention) {
  Scope scope(err);
  Tensor query = operand(scope, args[0]), key = operand(scope, args[1]),
         value = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(check_rows(query, key, value, err));
  Packed queries, keys;
  TENON_TRY(read_packed(scope, "query", query, args[3], int_of(args[5]), &queries, err));
  TENON_TRY(read_packed(scope, "key", key, args[4], int_of(args[6]), &keys, err));
  const int64_t batch = queries.begin->shape[0], total = query->shape[0];
  if (keys.begin->shape[0] != batch)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "varlen_attention",
                        "expected offsets of as many sequences of keys as of queries, got %lld and "
                        "%lld",
                        ll(keys.begin->shape[0]), ll(batch));
  const Shape shape = {total, query->shape[1], value->shape[2]};
  if (batch == 0 || total == 0 || key->shape[0] == 0 || queries.most == 0 || keys.most == 0)
    return finish(scope, outs, full_with(scope, query, shape, 0));
  Tensor key_number = numbers_to(scope, keys.most, query);
  const auto beside = [&](const Tensor& lengths) {
    return ops::unsqueeze(scope, lengths, {1, 2, 3});
  };
  Tensor mask = ops::less(scope, key_number, beside(keys.length));  // [N, 1, 1, keys]
  if (bool_of(args[7])) {
    Tensor row = ops::unsqueeze(scope, numbers_to(scope, queries.most, query), {1});
    Tensor last =
        ops::add(scope, row, ops::subtract(scope, beside(keys.length), beside(queries.length)));
    mask = ops::logical_and(scope, mask, ops::less_equal(scope, key_number, last));
  }
  Tensor out = ops::scaled_dot_product_attention(scope, queries.padded(scope, query),
                                                 keys.padded(scope, key), keys.padded(scope, value),
                                                 mask, 0.0, false, optional_scale(args[8]), true);
  out = ops::reshape(scope, ops::permute(scope, out, {0, 2, 1, 3}),
                     {batch * queries.most, shape[1], shape[2]});
  // Back to where the rows came from.
  Tensor row = numbers_to(scope, total, query);
  Tensor ends = ops::add(scope, queries.begin, queries.length);
  Tensor sequence = ops::searchsorted(scope, ends, row, true);
  Tensor is_inside = ops::less(scope, sequence, batch);
  sequence = ops::clip(scope, sequence, nullptr, batch - 1);
  Tensor place = ops::subtract(scope, row, ops::index_select(scope, queries.begin, sequence, 0));
  is_inside = ops::logical_and(scope, is_inside, ops::greater_equal(scope, place, 0));
  Tensor index = ops::add(scope, ops::multiply(scope, sequence, queries.most), place);
  index = ops::where(scope, is_inside, index, int64_t{0});
  out = ops::index_select(scope, out, index, 0);
  // Rows that belong to no sequence.
  return finish(scope, outs, ops::where(scope, ops::unsqueeze(scope, is_inside, {1, 2}), out, 0));
}

namespace {

tenon_status check_step(const char* op, const Tensor& query, const Tensor& keys,
                        const Tensor& values, const Tensor& lengths, tenon_err* err) {
  const bool fits = query->ndim == 3 && keys->ndim == 4 && values->ndim == 4 &&
                    lengths->ndim == 1 && lengths->shape[0] == query->shape[0] &&
                    std::equal(keys->shape, keys->shape + 3, values->shape) &&
                    keys->shape[3] == query->shape[2] && keys->shape[1] > 0 &&
                    query->shape[1] % keys->shape[1] == 0 &&
                    (shapes::bit(lengths->dtype) & shapes::kIntegers);
  if (fits) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected query [N, heads, features], keys and values [..., kv_heads, "
                      "positions, features] with a number of kv_heads that divides heads, and "
                      "integer lengths [N], got shapes %s, %s, %s and %s",
                      shape_text(*query.get()).c_str(), shape_text(*keys.get()).c_str(),
                      shape_text(*values.get()).c_str(), shape_text(*lengths.get()).c_str());
}

Tensor attend_step(Scope& scope, const Tensor& query, const Tensor& keys, const Tensor& values,
                   const Tensor& lengths, const tenon_value& scale) {
  if (!scope.ok()) return {};
  Tensor mask = ops::less(scope, numbers_to(scope, keys->shape[2], query),
                          ops::unsqueeze(scope, lengths, {1, 2, 3}));
  Tensor out =
      ops::scaled_dot_product_attention(scope, ops::unsqueeze(scope, query, {2}), keys, values,
                                        mask, 0.0, false, optional_scale(scale), true);
  return ops::squeeze(scope, out, {2});
}

}  // namespace

TENON_DECOMPOSE(cached_attention) {
  const char* op = "cached_attention";
  Scope scope(err);
  Tensor query = operand(scope, args[0]), keys = operand(scope, args[1]),
         values = operand(scope, args[2]), lengths = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(check_step(op, query, keys, values, lengths, err));
  if (keys->shape[0] != query->shape[0])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected keys of %lld sequences, got shape %s", ll(query->shape[0]),
                        shape_text(*keys.get()).c_str());
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "lengths", lengths, 0,
                           static_cast<double>(keys->shape[2]), err));
  return finish(scope, outs, attend_step(scope, query, keys, values, lengths, args[4]));
}

}  // namespace tenon::standard_ops
