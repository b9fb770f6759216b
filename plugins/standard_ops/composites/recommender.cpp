// SPDX-License-Identifier: Apache-2.0
// Recommendation: features that count, tables of ranks, trees of items.
#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// Column `index` of a matrix.
Tensor column(Scope& scope, const Tensor& x, int64_t index) {
  return ops::select(scope, x, 1, index);
}

// Every second column of a matrix from `first` on, `count` of them.
Tensor alternate(Scope& scope, const Tensor& x, int64_t first, int64_t count) {
  return ops::slice(scope, x, {1}, {first}, {first + 2 * count}, {2});
}

// `count` different numbers below `range` for each of `rows` rows, by Floyd's rule: step by step a number up to a bound, or the
// bound itself where the number has been drawn.
Tensor draw_distinct(Scope& scope, int64_t rows, int64_t count, int64_t range, const Tensor& like) {
  if (!scope.ok()) return {};
  Tensor drawn;
  for (int64_t i = 0; i < count && scope.ok(); ++i) {
    const int64_t bound = range - count + i;
    Tensor next = ops::randint(scope, 0, bound + 1, {rows, 1}, TENON_DTYPE_I64, like->device);
    if (drawn) {
      Tensor taken = ops::any(scope, ops::equal(scope, drawn, next), {1}, true);
      next = ops::where(scope, taken, bound, next);
      drawn = ops::concat(scope, {drawn, next}, 1);
    } else {
      drawn = next;
    }
  }
  return drawn;
}

}  // namespace

TENON_DECOMPOSE(cvm) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim != 2 || x->shape[1] < 2)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "cvm",
        "expected x [N, D] with shows and clicks in its first two columns, got shape %s",
        shape_text(*x.get()).c_str());
  Tensor rest = ops::narrow(scope, x, 1, 2, x->shape[1] - 2);
  if (!bool_of(args[1])) return finish(scope, outs, ops::clone(scope, rest));
  Tensor shows = ops::log1p(scope, ops::narrow(scope, x, 1, 0, 1));
  Tensor clicks = ops::subtract(scope, ops::log1p(scope, ops::narrow(scope, x, 1, 1, 1)), shows);
  return finish(scope, outs, ops::concat(scope, {shows, clicks, rest}, 1));
}

TENON_DECOMPOSE(rank_attention) {
  const char* op = "rank_attention";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), offset = operand(scope, args[1]),
         param = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const int64_t ranks = int_of(args[3]);
  TENON_TRY(expect_integers(op, "rank_offset", offset, err));
  if (ranks < 1 || x->ndim != 2 || offset->ndim != 2 || param->ndim != 2 ||
      offset->shape[0] != x->shape[0] || (offset->shape[1] - 1) % 2 != 0 ||
      (offset->shape[1] - 1) / 2 != ranks || param->shape[0] % ranks != 0 ||
      param->shape[0] / ranks % ranks != 0 || param->shape[0] / ranks / ranks != x->shape[1])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [N, D], rank_offset [N, 1 + 2 * max_rank] and rank_param "
                        "[max_rank * max_rank * D, C] with max_rank "
                        "%lld, got shapes %s, %s and %s",
                        ll(ranks), shape_text(*x.get()).c_str(), shape_text(*offset.get()).c_str(),
                        shape_text(*param.get()).c_str());
  const int64_t items = x->shape[0], features = x->shape[1], results = param->shape[1];
  offset = as_int64(scope, offset);
  Tensor own = ops::narrow(scope, offset, 1, 0, 1), others = alternate(scope, offset, 1, ranks),
         rows = alternate(scope, offset, 2, ranks);
  if (!scope.ok()) return scope.status();
  const auto most = static_cast<double>(ranks);
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "ranks", own, 0, most, err));
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "ranks of others", others, 0, most, err));
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "rows", rows, 0,
                           static_cast<double>(std::max<int64_t>(items - 1, 0)), err));
  own = ops::subtract(scope, own, 1);
  others = ops::subtract(scope, others, 1);
  Tensor counts = ops::logical_and(scope, ops::greater_equal(scope, own, 0),
                                   ops::greater_equal(scope, others, 0));
  Tensor block =
      ops::where(scope, counts, ops::add(scope, ops::multiply(scope, own, ranks), others), 0);
  // [N, max_rank, D] and the matrices for them, [N, max_rank * D, C].
  Tensor neighbours =
      ops::index_select(scope, x, ops::reshape(scope, ops::where(scope, counts, rows, 0), {-1}), 0);
  neighbours = ops::reshape(scope, neighbours, {items, ranks, features});
  neighbours = ops::where(scope, ops::unsqueeze(scope, counts, {2}), neighbours, zero_of(scope, x));
  Tensor blocks = ops::reshape(scope, param, {ranks * ranks, features, results});
  blocks = ops::index_select(scope, blocks, ops::reshape(scope, block, {items * ranks}), 0);
  Tensor out = ops::matmul(scope, ops::reshape(scope, neighbours, {items, 1, ranks * features}),
                           ops::reshape(scope, blocks, {items, ranks * features, results}));
  return finish(scope, outs, ops::squeeze(scope, out, {1}));
}

TENON_DECOMPOSE(tdm_child) {
  const char* op = "tdm_child";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), tree = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[2]);
  TENON_TRY(expect_integers(op, "x", x, err));
  TENON_TRY(expect_integers(op, "tree_info", tree, err));
  if (count < 1 || tree->ndim != 2 || tree->shape[0] < 1 || tree->shape[1] != 3 + count)
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected tree_info [nodes, 3 + count] with node 0 and count %lld, got shape %s", ll(count),
        shape_text(*tree.get()).c_str());
  Tensor nodes = ops::reshape(scope, as_int64(scope, x), {-1});
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "nodes", nodes, 0,
                           static_cast<double>(tree->shape[0] - 1), err));
  tree = as_int64(scope, tree);
  Tensor child = ops::index_select(scope, ops::narrow(scope, tree, 1, 3, count), nodes, 0);
  // Node 0 is no node, whatever its row says; a node whose first child is 0 has none.
  Tensor has = ops::logical_and(scope, ops::unsqueeze(scope, ops::not_equal(scope, nodes, 0), {1}),
                                ops::not_equal(scope, ops::narrow(scope, child, 1, 0, 1), 0));
  child = ops::where(scope, has, child, 0);
  Tensor flat = ops::reshape(scope, child, {-1});
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "children", flat, 0,
                           static_cast<double>(tree->shape[0] - 1), err));
  Tensor item = ops::index_select(scope, column(scope, tree, 0), flat, 0);
  Tensor leaf =
      ops::logical_and(scope, ops::not_equal(scope, item, 0), ops::not_equal(scope, flat, 0));
  Shape shape = sizes_of(x);
  shape.push_back(count);
  return finish(scope, outs, ops::reshape(scope, child, shape),
                ops::reshape(scope, ops::cast(scope, leaf, TENON_DTYPE_I64), shape));
}

TENON_DECOMPOSE(tdm_sampler) {
  const char* op = "tdm_sampler";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), travel = operand(scope, args[1]),
         layer = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const Ints counts = ints_of(args[3]), offsets = ints_of(args[4]);
  const bool with_path = bool_of(args[5]);
  TENON_TRY(expect_integers(op, "x", x, err));
  TENON_TRY(expect_integers(op, "travel", travel, err));
  TENON_TRY(expect_integers(op, "layer", layer, err));
  const int64_t layers = static_cast<int64_t>(counts.size());
  if (x->ndim != 1 || travel->ndim != 2 || layer->ndim != 1 || layers < 1 ||
      travel->shape[1] != layers || static_cast<int64_t>(offsets.size()) != layers + 1 ||
      offsets[0] != 0 || offsets.back() != layer->shape[0])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [N], travel [items, layers], layer [nodes], a count for each "
                        "layer and offsets from 0 to the number "
                        "of nodes, got shapes %s, %s and %s, %lld counts and %lld offsets",
                        shape_text(*x.get()).c_str(), shape_text(*travel.get()).c_str(),
                        shape_text(*layer.get()).c_str(), ll(layers),
                        static_cast<long long>(offsets.size()));
  for (size_t l = 0; l < counts.size(); ++l)
    if (offsets[l + 1] <= offsets[l] || counts[l] < 0 || counts[l] >= offsets[l + 1] - offsets[l])
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected counts from 0 to one less than a layer's nodes, got %lld of "
                          "layer %lld with %lld nodes",
                          ll(counts[l]), static_cast<long long>(l),
                          ll(offsets[l + 1] - offsets[l]));
  const int64_t rows = x->shape[0];
  Tensor items = as_int64(scope, x);
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "items", items, 0,
                           static_cast<double>(travel->shape[0] - 1), err));
  Tensor path = ops::index_select(scope, as_int64(scope, travel), items, 0);  // [N, layers]
  layer = as_int64(scope, layer);
  std::vector<Tensor> nodes, labels, masks;
  for (int64_t l = 0; l < layers && scope.ok(); ++l) {
    const size_t at = static_cast<size_t>(l);
    const int64_t size = offsets[at + 1] - offsets[at];
    Tensor own = ops::narrow(scope, path, 1, l, 1);
    Tensor lives = ops::not_equal(scope, own, 0);
    const auto add = [&](const Tensor& node, int64_t label, int64_t width) {
      const Tensor mask =
          ops::cast(scope, ops::expand(scope, lives, {rows, width}), TENON_DTYPE_I64);
      nodes.push_back(ops::multiply(scope, node, mask));
      labels.push_back(ops::multiply(scope, mask, label));
      masks.push_back(mask);
    };
    if (with_path) add(own, 1, 1);
    if (counts[at] == 0) continue;
    // Numbers of the other nodes in ascending order, of which the one on the path is left out.
    Tensor sorted = ops::sort(scope, ops::narrow(scope, layer, 0, offsets[at], size), 0);
    Tensor place = ops::searchsorted(scope, sorted, own);
    Tensor drawn = draw_distinct(scope, rows, counts[at], size - 1, x);
    drawn = ops::add(scope, drawn,
                     ops::cast(scope, ops::greater_equal(scope, drawn, place), TENON_DTYPE_I64));
    add(ops::reshape(scope, ops::index_select(scope, sorted, ops::reshape(scope, drawn, {-1}), 0),
                     {rows, counts[at]}),
        0, counts[at]);
  }
  if (!scope.ok()) return scope.status();
  if (nodes.empty())
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, op,
        "expected output_positive or a count above 0, as the results have no columns otherwise");
  return finish(scope, outs, ops::concat(scope, nodes, 1), ops::concat(scope, labels, 1),
                ops::concat(scope, masks, 1));
}

TENON_DECOMPOSE(embedding_dequantized) {
  const char* op = "embedding_dequantized";
  Scope scope(err);
  Tensor weight = operand(scope, args[0]), indices = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_integers(op, "indices", indices, err));
  if (weight->dtype != TENON_DTYPE_F32)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected a float32 weight, whose bits are bytes, got %s",
                        host->dtype_name(weight->dtype));
  if (weight->ndim != 2 || weight->shape[1] < 3)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a weight [rows, 2 + width] with a width above 0, got shape %s",
                        shape_text(*weight.get()).c_str());
  const int64_t width = weight->shape[1] - 2, padding = int_of(args[2]);
  Tensor rows = ops::reshape(scope, as_int64(scope, indices), {-1});
  Tensor padded = ops::unsqueeze(scope, ops::equal(scope, rows, padding), {1});
  Tensor chosen = ops::contiguous(scope, ops::index_select(scope, weight, rows, 0));
  Tensor low = ops::narrow(scope, chosen, 1, 0, 1), high = ops::narrow(scope, chosen, 1, 1, 1);
  Tensor bits = ops::view_dtype(
      scope, ops::contiguous(scope, ops::narrow(scope, chosen, 1, 2, width)), TENON_DTYPE_U8);
  Tensor step = ops::divide(scope, ops::subtract(scope, high, low), 256.0);
  Tensor values =
      ops::add(scope, ops::multiply(scope, ops::cast(scope, bits, TENON_DTYPE_F32), step), low);
  if (padding >= 0) values = ops::where(scope, padded, 0.0, values);
  Shape shape = sizes_of(indices);
  shape.push_back(4 * width);
  return finish(scope, outs, ops::reshape(scope, values, shape));
}

}  // namespace tenon::standard_ops
