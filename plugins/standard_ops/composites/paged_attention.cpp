// SPDX-License-Identifier: Apache-2.0
// Attention to keys and values in blocks, for devices without a kernel and for gradients: the blocks of each row's
// sequence are gathered, and attention is a softmax of products over all that they hold.
#include <cmath>
#include <limits>

#include "composites/domain.hpp"
#include "shapes/infer.hpp"

namespace tenon::standard_ops {
namespace {

constexpr const char* kOp = "paged_attention";

bool is_integer(const tenon_tensor& tensor) {
  return (shapes::bit(tensor.dtype) & shapes::kIntegers) != 0;
}

// Rows of int8 end in the four bytes of a float32, by which their codes are multiplied.
constexpr int64_t kScaleBytes = 4;

int64_t numbers_of_row(const tenon_tensor& pool) {
  return pool.shape[3] - (pool.dtype == TENON_DTYPE_I8 ? kScaleBytes : 0);
}

// The numbers of rows [..., n] of int8, in `dtype`.
Tensor scaled_codes(Scope& scope, const Tensor& rows, int64_t n, int32_t dtype) {
  Tensor bytes = ops::contiguous(scope, ops::narrow(scope, rows, -1, n, kScaleBytes));
  Tensor scales = ops::cast(scope, ops::view_dtype(scope, bytes, TENON_DTYPE_F32), dtype);
  Tensor codes = ops::cast(scope, ops::narrow(scope, rows, -1, 0, n), dtype);
  return ops::multiply(scope, codes, scales);
}

// The sequence of each row, and the position of the last key that it sees.
struct RaggedRows {
  Tensor sequence, last;  // [T]
};

tenon_status read_rows(Scope& scope, int64_t count, const Tensor& query, Tensor& lengths,
                       const tenon_value& given, RaggedRows* out, tenon_err* err) {
  const int64_t sequences = lengths->shape[0];
  Tensor row = numbers_to(scope, count, query);
  if (is_none(given)) {
    *out = {row, ops::subtract(scope, as_int64(scope, lengths), int64_t{1})};
    return scope.status();
  }
  Tensor offsets = operand(scope, given);
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, kOp, "offsets", offsets, 0,
                           static_cast<double>(count), err));
  offsets = as_int64(scope, offsets);
  Tensor first = ops::narrow(scope, offsets, 0, 0, 1);
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, kOp, "a first offset", first, 0, 0, err));
  Tensor end = ops::narrow(scope, offsets, 0, sequences, 1);
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, kOp, "a last offset", end,
                           static_cast<double>(count), static_cast<double>(count), err));
  Tensor ends = ops::narrow(scope, offsets, 0, 1, sequences);
  Tensor rows = ops::subtract(scope, ends, ops::narrow(scope, offsets, 0, 0, sequences));
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, kOp, "rows of sequences", rows, 0,
                           static_cast<double>(count), err));
  Tensor before = ops::subtract(scope, as_int64(scope, lengths), rows);  // keys of earlier steps
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, kOp, "lengths less the rows of their sequences",
                           before, 0, std::numeric_limits<double>::infinity(), err));
  Tensor sequence = ops::searchsorted(scope, ends, row, true);
  // The last key of a sequence belongs to its last row.
  Tensor behind = ops::subtract(scope, as_int64(scope, lengths), ends);
  Tensor last = ops::add(scope, row, ops::index_select(scope, behind, sequence, 0));
  *out = {sequence, last};
  return scope.status();
}

tenon_status check_paged_attention(const tenon_value* args, tenon_err* err) {
  for (int i = 0; i < 5; ++i)
    if (args[i].tag != TENON_VALUE_TENSOR)
      return shapes::fail(err, TENON_TYPE_MISMATCH, kOp,
                          "expected tensors, got a number as argument %d", i);
  const tenon_tensor &query = tensor_of(args[0]), &keys = tensor_of(args[1]),
                     &values = tensor_of(args[2]), &table = tensor_of(args[3]),
                     &lengths = tensor_of(args[4]);
  const tenon_tensor* offsets = optional_tensor(args[6]);
  const bool fits = query.ndim == 3 && keys.ndim == 4 && values.ndim == 4 && lengths.ndim == 1 &&
                    (offsets || lengths.shape[0] == query.shape[0]) &&
                    std::equal(keys.shape, keys.shape + 3, values.shape) &&
                    numbers_of_row(keys) == query.shape[2] && numbers_of_row(values) >= 0 &&
                    keys.shape[1] > 0 && query.shape[1] % keys.shape[1] == 0 && is_integer(lengths);
  if (!fits)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, kOp,
        "expected query [%s, heads, features], keys and values [..., kv_heads, "
        "positions, features], 4 more of int8, whose last bytes are a float32, with a "
        "number of kv_heads that divides heads, and integer lengths [N], got shapes %s, %s, %s and "
        "%s",
        offsets ? "T" : "N", shape_text(query).c_str(), shape_text(keys).c_str(),
        shape_text(values).c_str(), shape_text(lengths).c_str());
  if (table.ndim != 2 || table.shape[0] != lengths.shape[0] || !is_integer(table))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp,
                        "expected block_table [N, blocks of a sequence], got shape %s",
                        shape_text(table).c_str());
  if (offsets &&
      (offsets->ndim != 1 || offsets->shape[0] != lengths.shape[0] + 1 || !is_integer(*offsets)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp,
                        "expected integer offsets [%lld], one more than there are sequences, got "
                        "%s of shape %s",
                        ll(lengths.shape[0] + 1), host->dtype_name(offsets->dtype),
                        shape_text(*offsets).c_str());
  if (!is_none(args[7]) && int_of(args[7]) < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp,
                        "expected a window of at least 1, got %lld", ll(int_of(args[7])));
  if (!is_none(args[8]) && !(float_of(args[8]) > 0))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, kOp, "expected a softcap above 0, got %g",
                        float_of(args[8]));
  return TENON_OK;
}

}  // namespace

TENON_DECOMPOSE(paged_attention) {
  TENON_TRY(check_paged_attention(args, err));
  Scope scope(err);
  Tensor query = operand(scope, args[0]), keys = operand(scope, args[1]),
         values = operand(scope, args[2]), table = operand(scope, args[3]),
         lengths = operand(scope, args[4]);
  const int64_t rows = query->shape[0], heads = query->shape[1], features = query->shape[2],
                kv_heads = keys->shape[1], size = keys->shape[2], width = table->shape[1],
                made = numbers_of_row(tensor_of(args[2])), positions = width * size,
                group = heads / kv_heads;
  TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, kOp, "lengths", lengths, 0,
                           static_cast<double>(positions), err));
  RaggedRows of_rows;
  TENON_TRY(read_rows(scope, rows, query, lengths, args[6], &of_rows, err));
  if (rows == 0 || positions == 0 || heads == 0)
    return finish(scope, outs, full_with(scope, query, Shape{rows, heads, made}, 0));
  // Entries that no length reaches are block 0, which is masked.
  Tensor first = ops::multiply(scope, numbers_to(scope, width, query), size);
  Tensor used = ops::less(scope, first, ops::unsqueeze(scope, as_int64(scope, lengths), {1}));
  Tensor blocks = ops::where(scope, used, as_int64(scope, table), int64_t{0});
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, kOp, "blocks of block_table", blocks, 0,
                           static_cast<double>(keys->shape[0] - 1), err));
  blocks = ops::index_select(scope, blocks, of_rows.sequence, 0);  // [T, width]
  // [T, width, kv_heads, size, n] to [T, kv_heads, positions, n].
  const auto gathered = [&](const Tensor& pool, int64_t n) {
    const bool scaled = pool->dtype == TENON_DTYPE_I8;
    Tensor rows_of_pool = scaled ? pool : ops::cast(scope, pool, query->dtype);
    Tensor picked = ops::index_select(scope, rows_of_pool, blocks, 0);
    if (scaled) picked = scaled_codes(scope, picked, n, query->dtype);
    return ops::reshape(scope, ops::permute(scope, picked, {0, 2, 1, 3, 4}),
                        {rows, kv_heads, positions, n});
  };
  Tensor key = numbers_to(scope, positions, query);
  Tensor last = ops::unsqueeze(scope, of_rows.last, {1});
  Tensor seen = ops::less_equal(scope, key, last);  // [T, positions]
  if (!is_none(args[7]))
    seen = ops::logical_and(scope, seen,
                            ops::greater(scope, key, ops::subtract(scope, last, int_of(args[7]))));
  Tensor is_seen = ops::unsqueeze(scope, seen, {1, 2});
  const double scale =
      is_none(args[5]) ? 1 / std::sqrt(static_cast<double>(features)) : float_of(args[5]);
  Tensor scores = ops::matmul(scope, ops::reshape(scope, query, {rows, kv_heads, group, features}),
                              ops::permute(scope, gathered(keys, features), {0, 1, 3, 2}));
  scores = ops::multiply(scope, scores, scale);
  if (!is_none(args[8])) {
    const double cap = float_of(args[8]);
    scores = ops::multiply(scope, ops::tanh(scope, ops::divide(scope, scores, cap)), cap);
  }
  // What is hidden may be anything, NaN too. It counts as a finite number, so that a row that sees nothing has gradients.
  Tensor weights = ops::softmax(scope, ops::where(scope, is_seen, scores, -1e30), -1);
  weights = ops::where(scope, is_seen, weights, 0.0);
  Tensor value = gathered(values, made);
  value = ops::where(scope, ops::unsqueeze(scope, seen, {1, 3}), value, 0.0);
  Tensor out = ops::matmul(scope, weights, value);
  return finish(scope, outs, ops::reshape(scope, out, {rows, heads, made}));
}

TENON_INFER(paged_attention) {
  TENON_TRY(check_paged_attention(args, err));
  const tenon_tensor& query = tensor_of(args[0]);
  set_new(outs[0], query.dtype, shape_of(query).first(2));
  add_axis(outs[0], numbers_of_row(tensor_of(args[2])));
  return TENON_OK;
}

}  // namespace tenon::standard_ops
