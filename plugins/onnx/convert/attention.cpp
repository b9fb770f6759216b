// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

// [N, length, heads * features] -> [N, heads, length, features]
Tensor split_heads(Conversion& c, const Tensor& x, int64_t heads) {
  if (heads < 1 || x->shape[2] % heads != 0)
    c.fail("expected a number of heads that divides " + std::to_string(x->shape[2]) + ", got " +
           std::to_string(heads));
  const Tensor parts =
      c.call("reshape", {x, Ints{x->shape[0], x->shape[1], heads, x->shape[2] / heads}});
  return c.call("permute", {parts, Ints{0, 2, 1, 3}});
}

Tensor join_heads(Conversion& c, const Tensor& x) {
  const Tensor rows = c.call("permute", {x, Ints{0, 2, 1, 3}});
  return c.call("reshape", {rows, Ints{x->shape[0], x->shape[2], x->shape[1] * x->shape[3]}});
}

Tensor grouped(Conversion& c, const Tensor& x, int64_t heads) {
  return x->shape[1] == heads ? x : c.call("repeat", {x, heads / x->shape[1], 1});
}

class AttentionNode {
 public:
  explicit AttentionNode(Conversion& c) : c_(c) {}

  Values run() {
    Tensor q = c_.tensor("Q"), k = c_.tensor("K"), v = c_.tensor("V");
    const bool is_flat = q->ndim == 3;
    if (is_flat) {
      q = split_heads(c_, q, c_.integer("q_num_heads"));
      k = split_heads(c_, k, c_.integer("kv_num_heads"));
      v = split_heads(c_, v, c_.integer("kv_num_heads"));
    }
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) c_.fail("expected Q, K and V of 3 or 4 axes");
    int64_t past = 0;
    if (c_.has("past_key") != c_.has("past_value"))
      c_.fail("expected both of past_key and past_value");
    if (c_.has("past_key")) {
      past = c_.tensor("past_key")->shape[2];
      k = c_.call("concat", {Values{c_.tensor("past_key"), k}, 2});
      v = c_.call("concat", {Values{c_.tensor("past_value"), v}, 2});
    }
    const Tensor present_key = k, present_value = v;
    const int64_t heads = q->shape[1];
    if (k->shape[1] < 1 || heads % k->shape[1] != 0)
      c_.fail("expected heads of K that divide those of Q");
    const int32_t dtype = q->dtype;
    const double scale = c_.number("scale", 1 / std::sqrt(static_cast<double>(q->shape[3])));
    // Both factors have the root of the scale, which keeps products of small dtypes in range.
    const double root = std::sqrt(scale);
    const Tensor keys =
        c_.call("transpose", {c_.call("multiply", {grouped(c_, k, heads), root}), -2, -1});
    Tensor scores = c_.call("matmul", {c_.call("multiply", {q, root}), keys});
    const int64_t mode = c_.integer("qk_matmul_output_mode");
    Tensor shown = scores;
    const Tensor bias = bias_of(q->shape[0], q->shape[2], k->shape[2], past, scores->dtype);
    const double cap = c_.number("softcap");
    const auto add_bias = [&] {
      if (bias) scores = c_.call("add", {scores, bias});
    };
    const auto add_cap = [&] {
      if (cap != 0)
        scores = c_.call("multiply", {c_.call("tanh", {c_.call("divide", {scores, cap})}), cap});
    };
    add_cap();
    if (mode == 1) shown = scores;
    add_bias();
    if (mode == 2) shown = scores;
    const int64_t precision = c_.integer("softmax_precision");
    Tensor wide = precision ? c_.cast(scores, dtype_of(precision, "softmax_precision")) : scores;
    Tensor weights = c_.call("softmax", {wide, -1});
    if (bias) {  // a row that sees nothing weighs nothing
      const Tensor highest = c_.call("max", {wide, Ints{-1}, true}),
                   is_blind = c_.call("equal", {highest, -std::numeric_limits<double>::infinity()});
      weights = c_.call("where", {is_blind, c_.call("zeros_like", {weights}), weights});
    }
    weights = c_.cast(weights, dtype);
    if (mode == 3) shown = weights;
    Tensor out = c_.call("matmul", {weights, grouped(c_, v, heads)});
    if (is_flat) out = join_heads(c_, out);
    return {out, present_key, present_value, shown};
  }

 private:
  // What is added to the scores: a mask, and -inf where nothing may be seen; empty: nothing.
  Tensor bias_of(int64_t batches, int64_t rows, int64_t columns, int64_t past, int32_t dtype) {
    Tensor bias;
    const double low = -std::numeric_limits<double>::infinity();
    const auto hide = [&](const Tensor& is_seen) {
      const Tensor none = c_.call("full", {Ints{}, low, {"dtype", Dtype{dtype}}}),
                   zero = c_.call("full", {Ints{}, 0.0, {"dtype", Dtype{dtype}}});
      const Tensor more = c_.call("where", {is_seen, zero, none});
      bias = bias ? c_.call("add", {bias, more}) : more;
    };
    const Tensor column = c_.call("arange", {0, columns});
    if (c_.has("attn_mask")) {
      Tensor mask = c_.tensor("attn_mask");
      const int64_t width = mask->shape[mask->ndim - 1];
      const bool is_truth = mask->dtype == TENON_DTYPE_BOOL;
      if (width < columns) {  // keys behind the mask are not seen
        Ints padding(2 * static_cast<size_t>(mask->ndim), 0);
        padding.back() = columns - width;
        mask = c_.call("pad_constant", {mask, padding, is_truth ? Value(false) : Value(low)});
      }
      if (is_truth)
        hide(mask);
      else
        bias = mask;
    }
    const bool has_lengths = c_.schema.since >= 24 && c_.has("nonpad_kv_seqlen");
    Tensor lengths;
    if (has_lengths)
      lengths = c_.call("reshape", {c_.cast(c_.tensor("nonpad_kv_seqlen"), TENON_DTYPE_I64),
                                    Ints{batches, 1, 1, 1}});
    if (has_lengths) hide(c_.call("less", {column, lengths}));
    const int64_t left = c_.integer("left_window_size", -1),
                  right = c_.integer("right_window_size", -1);
    const bool is_causal = c_.integer("is_causal") != 0;
    if (!is_causal && left < 0 && right < 0) return bias;
    // The row of a query among the keys.
    Tensor row = c_.call("reshape", {c_.call("arange", {0, rows}), Ints{rows, 1}});
    if (has_lengths)
      row = c_.call("add", {row, c_.call("subtract", {lengths, rows})});
    else if (past != 0)
      row = c_.call("add", {row, past});
    if (is_causal) hide(c_.call("less_equal", {column, row}));
    if (left >= 0) hide(c_.call("greater_equal", {column, c_.call("subtract", {row, left})}));
    if (right >= 0) hide(c_.call("less_equal", {column, c_.call("add", {row, right})}));
    return bias;
  }

  Conversion& c_;
};

}  // namespace

Values convert_attention(Conversion& c) { return AttentionNode(c).run(); }

Values convert_rotary_embedding(Conversion& c) {
  Tensor x = c.tensor("X"), cosine = c.tensor("cos_cache"), sine = c.tensor("sin_cache");
  const bool is_flat = x->ndim == 3;
  if (is_flat) x = split_heads(c, x, c.integer("num_heads"));
  if (x->ndim != 4) c.fail("expected X of 3 or 4 axes");
  if (c.has("position_ids")) {
    cosine = c.call("index_select", {cosine, c.tensor("position_ids"), 0});
    sine = c.call("index_select", {sine, c.tensor("position_ids"), 0});
  }
  // [N, length, features / 2], the same for every head
  cosine = c.call("unsqueeze", {cosine, Ints{1}});
  sine = c.call("unsqueeze", {sine, Ints{1}});
  const int64_t features = x->shape[3], given = c.integer("rotary_embedding_dim");
  const int64_t turned = given > 0 ? given : features;
  if (turned > features || turned % 2 != 0)
    c.fail("expected an even rotary_embedding_dim of at most the features");
  Tensor out = turned == features ? x : c.call("narrow", {x, 3, 0, turned});
  out = c.call("rotary_embedding", {out, cosine, sine, c.integer("interleaved") != 0});
  if (turned != features)
    out = c.call("concat", {Values{out, c.call("narrow", {x, 3, turned, features - turned})}, 3});
  return {is_flat ? join_heads(c, out) : out};
}

}  // namespace tenon::onnx
