// SPDX-License-Identifier: Apache-2.0
// Segments of rows, and graphs: gathers, scatters and sorts of rows.
#include "composites/compose.hpp"
#include "composites/data_reads.hpp"

namespace tenon::standard_ops {
namespace {

// The one element of an int64 tensor, which the host waits for: a size of the result. `fix`: for those who record a program.
int64_t read_number(Scope& scope, const char* op, const char* fix, const Tensor& x) {
  if (scope.ok() && x->device == TENON_DEVICE_META)
    scope.fail(TENON_UNSUPPORTED,
               "the shape of the result depends on the data, which meta tensors do not have; "
               "use a real device");
  if (!scope.ok()) return 0;
  if (is_recorded()) {
    const std::string rest =
        " has a result whose shape depends on data, and a program has fixed shapes; " +
        std::string(fix);
    if (!scope.check(expect_readable(op, x, rest.c_str(), scope.err()))) return 0;
  }
  Tensor here = ops::to_device(scope, ops::contiguous(scope, x), host->device_host());
  return has_elements(scope, here) ? *static_cast<const int64_t*>(here->data) : 0;
}

tenon_status expect_indices(const char* op, const char* name, const Tensor& index, int64_t rows,
                            tenon_err* err) {
  if (index->dtype == TENON_DTYPE_BOOL || index->dtype > TENON_DTYPE_I64)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected an integer %s, got %s", name,
                        host->dtype_name(index->dtype));
  if (index->ndim == 1 && (rows < 0 || index->shape[0] == rows)) return TENON_OK;
  if (rows < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a vector %s, got shape %s", name,
                        shape_text(*index.get()).c_str());
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected %s of shape [%lld], got %s", name,
                      ll(rows), shape_text(*index.get()).c_str());
}

tenon_status expect_rows(const char* op, const char* name, const Tensor& x, tenon_err* err) {
  if (x->ndim > 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected %s to have a first axis of rows, got shape []", name);
}

enum class Reduce { kSum, kMean, kMax, kMin };

// [rows, ...] as [rows, columns].
Tensor as_matrix(Scope& scope, const Tensor& x) {
  if (!scope.ok()) return {};
  const int64_t columns = product(shape_of(*x.get()).subspan(1));
  return ops::reshape(scope, x, {x->shape[0], columns});
}

Tensor segment_sums(Scope& scope, const Tensor& x, const Tensor& index, int64_t count) {
  if (!scope.ok()) return {};
  Shape shape = sizes_of(x);
  shape[0] = count;
  return ops::reshape(scope, ops::segment_add(scope, as_matrix(scope, x), index, count), shape);
}

Tensor segment_means(Scope& scope, const Tensor& x, const Tensor& index, int64_t count) {
  Tensor sums = segment_sums(scope, x, index, count);
  if (!scope.ok()) return {};
  Tensor ones = full_with(scope, x, shape_of(*index.get()), 1);
  Tensor rows = ops::clip(scope, segment_sums(scope, ones, index, count), 1.0, nullptr);
  Shape beside(static_cast<size_t>(x->ndim), 1);
  beside[0] = count;
  return ops::divide(scope, sums, ops::reshape(scope, rows, beside));
}

Tensor segment_extremes(Scope& scope, const Tensor& x, const Tensor& index, int64_t count,
                        bool largest) {
  if (!scope.ok()) return {};
  Shape shape = sizes_of(x);
  shape[0] = count;
  if (x->numel == 0) return full_with(scope, x, shape, 0);
  return ops::reshape(
      scope, ops::segment_extreme(scope, as_matrix(scope, x), index, count, largest), shape);
}

Tensor reduce_segments(Scope& scope, const Tensor& x, const Tensor& index, int64_t count,
                       Reduce reduce) {
  switch (reduce) {
    case Reduce::kSum:
      return segment_sums(scope, x, index, count);
    case Reduce::kMean:
      return segment_means(scope, x, index, count);
    default:
      return segment_extremes(scope, x, index, count, reduce == Reduce::kMax);
  }
}

tenon_status expect_mean(const char* op, const Tensor& x, Reduce reduce, tenon_err* err) {
  if (reduce != Reduce::kMean || x->dtype > TENON_DTYPE_I64) return TENON_OK;
  return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                      "expected a floating x for a mean, got %s; convert it with .to(float32)",
                      host->dtype_name(x->dtype));
}

// A count of rows that a caller gave.
tenon_status expect_count(const char* op, int64_t count, tenon_err* err) {
  if (count >= 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a count of at least 0, got %lld",
                      ll(count));
}

tenon_status segments(const char* op, const tenon_value* args, tenon_value* outs, Reduce reduce,
                      tenon_err* err) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_rows(op, "x", x, err));
  TENON_TRY(expect_indices(op, "index", index, x->shape[0], err));
  TENON_TRY(expect_mean(op, x, reduce, err));
  int64_t count = is_none(args[2]) ? 0 : int_of(args[2]);
  TENON_TRY(expect_count(op, count, err));
  if (is_none(args[2]) && index->numel > 0)
    count = read_number(scope, op, "pass the count", as_int64(scope, ops::max(scope, index))) + 1;
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_count(op, count, err));
  return finish(scope, outs, reduce_segments(scope, x, index, count, reduce));
}

}  // namespace

TENON_DECOMPOSE(segment_sum) { return segments("segment_sum", args, outs, Reduce::kSum, err); }
TENON_DECOMPOSE(segment_mean) { return segments("segment_mean", args, outs, Reduce::kMean, err); }
TENON_DECOMPOSE(segment_max) { return segments("segment_max", args, outs, Reduce::kMax, err); }
TENON_DECOMPOSE(segment_min) { return segments("segment_min", args, outs, Reduce::kMin, err); }

TENON_DECOMPOSE(segment_extreme) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[2]);
  if (x->numel == 0) return finish(scope, outs, full_with(scope, x, Shape{count, x->shape[1]}, 0));
  Tensor row = ops::segment_argmax(scope, x, index, count, bool_of(args[3]));
  Tensor values = ops::gather(scope, x, ops::clip(scope, row, int64_t{0}, nullptr), 0);
  // A number would make an integer of a boolean.
  Tensor nothing = full_with(scope, x, Shape(), 0);
  return finish(scope, outs, ops::where(scope, ops::less(scope, row, 0), nothing, values));
}

// Sorted by value, then by segment with a stable sort: the first row of each segment is the answer.
TENON_DECOMPOSE(segment_argmax) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = as_int64(scope, operand(scope, args[1]));
  if (!scope.ok()) return scope.status();
  const int64_t count = int_of(args[2]), rows = x->shape[0], columns = x->shape[1];
  const bool largest = bool_of(args[3]);
  Shape shape = {count, columns};
  if (x->numel == 0)
    return finish(scope, outs, ops::full(scope, shape, int64_t{-1}, TENON_DTYPE_I64, x->device));
  index = ops::where(scope, ops::less(scope, index, 0), ops::add(scope, index, count), index);
  // NaN counts as the largest; it comes first in a descending order, and last in an ascending one.
  Tensor order = ops::argsort(scope, x, 0, largest);
  Tensor segment = ops::index_select(scope, index, order, 0);
  Tensor key = segment;
  if (!largest && is_real_floating(x->dtype)) {
    Tensor is_number = ops::logical_not(scope, ops::isnan(scope, ops::gather(scope, x, order, 0)));
    key = ops::add(scope, ops::multiply(scope, segment, 2),
                   ops::cast(scope, is_number, TENON_DTYPE_I64));
  }
  order = ops::gather(scope, order, ops::argsort(scope, key, 0), 0);
  Tensor sorted = ops::sort(scope, index, 0), all = numbers_to(scope, count, x);
  Tensor begin = ops::searchsorted(scope, sorted, all),
         end = ops::searchsorted(scope, sorted, all, true);
  Tensor first = ops::index_select(scope, order, ops::clip(scope, begin, nullptr, rows - 1), 0);
  Tensor is_empty = ops::unsqueeze(scope, ops::equal(scope, begin, end), {1});
  return finish(scope, outs, ops::where(scope, is_empty, int64_t{-1}, first));
}

namespace {

tenon_status read_reduce(const char* op, std::string_view text, Reduce* reduce, tenon_err* err) {
  constexpr std::string_view kNames[] = {"sum", "mean", "max", "min"};
  const auto found = std::ranges::find(kNames, text);
  if (found == std::end(kNames))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected reduce 'sum', 'mean', 'max' or 'min', got '%.*s'",
                        static_cast<int>(text.size()), text.data());
  *reduce = static_cast<Reduce>(found - kNames);
  return TENON_OK;
}

tenon_status combine(Scope& scope, const char* op, std::string_view message, const Tensor& x,
                     const Tensor& y, Tensor* out, tenon_err* err) {
  if (message == "add")
    *out = ops::add(scope, x, y);
  else if (message == "sub")
    *out = ops::subtract(scope, x, y);
  else if (message == "mul")
    *out = ops::multiply(scope, x, y);
  else if (message == "div")
    *out = ops::divide(scope, x, y);
  else
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected message 'add', 'sub', 'mul' or 'div', got '%.*s'",
                        static_cast<int>(message.size()), message.data());
  return scope.status();
}

tenon_status receive(Scope& scope, const char* op, const Tensor& messages, const Tensor& target,
                     const tenon_value& reduce_name, const tenon_value& given, int64_t rows,
                     tenon_value* outs, tenon_err* err) {
  Reduce reduce{};
  TENON_TRY(read_reduce(op, text_of(reduce_name), &reduce, err));
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_mean(op, messages, reduce, err));
  const int64_t count = is_none(given) ? rows : int_of(given);
  TENON_TRY(expect_count(op, count, err));
  return finish(scope, outs, reduce_segments(scope, messages, target, count, reduce));
}

}  // namespace

TENON_DECOMPOSE(send_u_recv) {
  const char* op = "send_u_recv";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), source = operand(scope, args[1]),
         target = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_rows(op, "x", x, err));
  TENON_TRY(expect_indices(op, "source_index", source, -1, err));
  TENON_TRY(expect_indices(op, "target_index", target, source->shape[0], err));
  return receive(scope, op, ops::index_select(scope, x, source, 0), target, args[3], args[4],
                 x->shape[0], outs, err);
}

TENON_DECOMPOSE(send_ue_recv) {
  const char* op = "send_ue_recv";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]), source = operand(scope, args[2]),
         target = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_rows(op, "x", x, err));
  TENON_TRY(expect_indices(op, "source_index", source, -1, err));
  TENON_TRY(expect_indices(op, "target_index", target, source->shape[0], err));
  if (y->ndim != x->ndim || y->shape[0] != source->shape[0])
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected y with %d axes and a row for each of %lld edges, got shape %s",
                        x->ndim, ll(source->shape[0]), shape_text(*y.get()).c_str());
  Tensor messages;
  TENON_TRY(combine(scope, op, text_of(args[4]), ops::index_select(scope, x, source, 0), y,
                    &messages, err));
  return receive(scope, op, messages, target, args[5], args[6], x->shape[0], outs, err);
}

TENON_DECOMPOSE(send_uv) {
  const char* op = "send_uv";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), y = operand(scope, args[1]), source = operand(scope, args[2]),
         target = operand(scope, args[3]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_rows(op, "x", x, err));
  TENON_TRY(expect_rows(op, "y", y, err));
  TENON_TRY(expect_indices(op, "source_index", source, -1, err));
  TENON_TRY(expect_indices(op, "target_index", target, source->shape[0], err));
  Tensor out;
  TENON_TRY(combine(scope, op, text_of(args[4]), ops::index_select(scope, x, source, 0),
                    ops::index_select(scope, y, target, 0), &out, err));
  return finish(scope, outs, out);
}

namespace {

// Indices in bags: which bag each is in, of which one more takes those that do not count.
struct Bags {
  Tensor weight, indices, bag;
  int64_t count = 0;  // without the one more
};

Bags bags_of(Scope& scope, const Tensor& weight, const Tensor& indices, const Tensor& offsets,
             const tenon_value& padding_index) {
  if (!scope.ok()) return {};
  Bags bags{.weight = weight, .indices = as_int64(scope, indices), .count = offsets->shape[0] - 1};
  const int64_t rows = weight->shape[0];
  Tensor ends = ops::narrow(scope, as_int64(scope, offsets), 0, 1, bags.count);
  bags.bag = ops::searchsorted(scope, ends, numbers_to(scope, indices->numel, indices), true);
  if (is_none(padding_index) || !scope.ok()) return bags;
  const int64_t padding = int_of(padding_index) + (int_of(padding_index) < 0 ? rows : 0);
  Tensor is_padding =
      ops::logical_or(scope, ops::equal(scope, bags.indices, padding),
                      ops::equal(scope, bags.indices, padding - rows));  // counted from the end
  bags.bag = ops::where(scope, is_padding, bags.count, bags.bag);
  return bags;
}

// How many indices each bag has, at least 1, as a column like `like`.
Tensor lengths_of(Scope& scope, const Bags& bags, const Tensor& like) {
  if (!scope.ok()) return {};
  Tensor ones = full_with(scope, like, Shape{bags.indices->numel, 1}, 1);
  Tensor lengths = segment_sums(scope, ones, bags.bag, bags.count + 1);
  return ops::clip(scope, ops::narrow(scope, lengths, 0, 0, bags.count), 1.0, nullptr);
}

// For each index the row of [bags, features] of its bag, or zeros.
Tensor rows_of_bags(Scope& scope, const Bags& bags, const Tensor& x) {
  if (!scope.ok()) return {};
  Tensor nothing = full_with(scope, x, Shape{1, x->shape[1]}, 0);
  return ops::index_select(scope, ops::concat(scope, {x, nothing}, 0), bags.bag, 0);
}

}  // namespace

TENON_DECOMPOSE(embedding_bag) {
  Scope scope(err);
  Tensor weight = operand(scope, args[0]), indices = operand(scope, args[1]),
         offsets = operand(scope, args[2]), scale = operand(scope, args[3]);
  const Bags bags = bags_of(scope, weight, indices, offsets, args[5]);
  Tensor rows = ops::index_select(scope, weight, indices, 0);
  if (scale) rows = ops::multiply(scope, rows, ops::unsqueeze(scope, scale, {1}));
  Reduce reduce{};
  TENON_TRY(read_reduce("embedding_bag", text_of(args[4]), &reduce, err));
  if (!scope.ok()) return scope.status();
  Tensor all = reduce_segments(scope, rows, bags.bag, bags.count + 1, reduce);
  return finish(scope, outs, ops::narrow(scope, all, 0, 0, bags.count));
}

TENON_DECOMPOSE(embedding_bag_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), weight = operand(scope, args[1]),
         indices = operand(scope, args[2]), offsets = operand(scope, args[3]),
         scale = operand(scope, args[4]);
  const Bags bags = bags_of(scope, weight, indices, offsets, args[6]);
  const std::string_view reduce = text_of(args[5]);
  if (!scope.ok()) return scope.status();
  if (reduce == "max" && indices->numel > 0) {
    Tensor rows = ops::index_select(scope, ops::stop_gradient(scope, weight), indices, 0);
    Tensor found = ops::segment_argmax(scope, rows, bags.bag, bags.count + 1, true);
    found = ops::narrow(scope, found, 0, 0, bags.count);
    Tensor given = ops::where(scope, ops::less(scope, found, 0), 0, grad_out);
    Tensor row =
        ops::index_select(scope, bags.indices, ops::clip(scope, found, int64_t{0}, nullptr), 0);
    Tensor zeros = full_with(scope, grad_out, sizes_of(weight), 0);
    return finish(scope, outs, ops::scatter_add(scope, zeros, row, given, 0));
  }
  if (reduce == "mean") grad_out = ops::divide(scope, grad_out, lengths_of(scope, bags, grad_out));
  Tensor rows = rows_of_bags(scope, bags, grad_out);
  if (scale) rows = ops::multiply(scope, rows, ops::unsqueeze(scope, scale, {1}));
  return finish(scope, outs, segment_sums(scope, rows, indices, weight->shape[0]));
}

TENON_DECOMPOSE(embedding_bag_scale_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), weight = operand(scope, args[1]),
         indices = operand(scope, args[2]), offsets = operand(scope, args[3]);
  const Bags bags = bags_of(scope, weight, indices, offsets, args[4]);
  Tensor rows = ops::index_select(scope, weight, indices, 0);
  return finish(
      scope, outs,
      ops::sum(scope, ops::multiply(scope, rows, rows_of_bags(scope, bags, grad_out)), {1}));
}

namespace {

// For each of `total` elements of groups that end at `ends`, which group it is in.
Tensor groups_of(Scope& scope, const Tensor& ends, int64_t total) {
  return ops::searchsorted(scope, ends, numbers_to(scope, total, ends), true);
}

// The numbers of the elements of a mask that are true.
Tensor true_indices(Scope& scope, const Tensor& mask) {
  return ops::select(scope, ops::nonzero(scope, mask), 1, 0);
}

}  // namespace

// Equal nodes are side by side once they are sorted; the sort is stable, so that the first of them
// is the first occurrence. First occurrences in order give the new numbers.
TENON_DECOMPOSE(reindex_graph) {
  const char* op = "reindex_graph";
  Scope scope(err);
  Tensor nodes = operand(scope, args[0]), neighbors = operand(scope, args[1]),
         count = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_indices(op, "nodes", nodes, -1, err));
  TENON_TRY(expect_indices(op, "neighbors", neighbors, -1, err));
  TENON_TRY(expect_indices(op, "count", count, nodes->shape[0], err));
  const int64_t known = nodes->shape[0], edges = neighbors->shape[0];
  Tensor all = ops::concat(scope, {nodes, neighbors}, 0);
  auto [values, order] = ops::sort_with_indices(scope, all, 0);
  if (!scope.ok()) return scope.status();
  if (all->numel == 0) {
    Tensor none = ops::full(scope, {0}, int64_t{0}, TENON_DTYPE_I64, all->device);
    return finish(scope, outs, none, none, all);
  }
  const int64_t total = known + edges;
  Tensor before = ops::roll(scope, values, {1}, {0});
  Tensor is_first = ops::logical_or(scope, ops::not_equal(scope, values, before),
                                    ops::equal(scope, numbers_to(scope, total, all), 0));
  Tensor group = ops::subtract(scope, ops::cumsum(scope, is_first, 0), 1);
  Tensor firsts = ops::index_select(scope, order, true_indices(scope, is_first), 0);
  Tensor rank = ops::argsort(scope, ops::argsort(scope, firsts, 0), 0);
  Tensor numbers = ops::index_put(scope, ops::zeros_like(scope, order), {order},
                                  ops::index_select(scope, rank, group, 0));
  Tensor ends = ops::cumsum(scope, as_int64(scope, count), 0);
  Tensor source = ops::clone(scope, ops::narrow(scope, numbers, 0, known, edges));
  Tensor target = groups_of(scope, ends, edges);
  target = ops::index_select(scope, numbers,
                             ops::clip(scope, target, nullptr, std::max<int64_t>(known - 1, 0)), 0);
  Tensor old_nodes = ops::index_select(scope, all, ops::sort(scope, firsts, 0), 0);
  return finish(scope, outs, source, target, old_nodes);
}

// Every edge gets a random key; those with the smallest keys of each node are taken.
TENON_DECOMPOSE(sample_neighbors) {
  const char* op = "sample_neighbors";
  Scope scope(err);
  Tensor row = operand(scope, args[0]), start = operand(scope, args[1]),
         nodes = operand(scope, args[2]), weights = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_indices(op, "row", row, -1, err));
  TENON_TRY(expect_indices(op, "start", start, -1, err));
  TENON_TRY(expect_indices(op, "nodes", nodes, -1, err));
  const int64_t size = int_of(args[3]);
  if (size < -1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a size of at least 0, or -1 for all neighbours, got %lld",
                        ll(size));
  if (weights && (weights->ndim != 1 || weights->shape[0] != row->shape[0]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a weight for each of %lld edges, got shape %s", ll(row->shape[0]),
                        shape_text(*weights.get()).c_str());
  start = as_int64(scope, start);
  nodes = as_int64(scope, nodes);
  Tensor begin = ops::index_select(scope, start, nodes, 0);
  Tensor degree =
      ops::subtract(scope, ops::index_select(scope, start, ops::add(scope, nodes, 1), 0), begin);
  Tensor ends = ops::cumsum(scope, degree, 0);
  if (!scope.ok()) return scope.status();
  const int64_t count = nodes->shape[0];
  const int64_t total = count > 0
                            ? read_number(scope, op, "call it outside of the exported function",
                                          ops::narrow(scope, ends, 0, count - 1, 1))
                            : 0;
  Tensor node = groups_of(scope, ends, total);
  Tensor first = ops::subtract(scope, ends, degree);  // of each node among all edges
  const auto in_node = [&](const Tensor& of_nodes, const Tensor& which) {
    return ops::index_select(scope, of_nodes, which, 0);
  };
  Tensor edges = ops::add(scope, in_node(ops::subtract(scope, begin, first), node),
                          numbers_to(scope, total, row));
  if (size >= 0) {
    // Minus log(u) is exponential; divided by a weight, the smallest are drawn in proportion to it.
    Tensor key = ops::uniform(scope, {total}, 0.0, 1.0, TENON_DTYPE_F32, row->device);
    if (weights)
      key = ops::divide(scope, ops::negative(scope, ops::log1p(scope, ops::negative(scope, key))),
                        ops::index_select(scope, ops::stop_gradient(scope, weights), edges, 0));
    Tensor order = ops::argsort(scope, key, 0);
    Tensor of_node = ops::index_select(scope, node, order, 0);
    order = ops::index_select(scope, order, ops::argsort(scope, of_node, 0), 0);
    // The edges of a node are still at the same indices, in another order.
    Tensor rank = ops::subtract(scope, numbers_to(scope, total, row), in_node(first, node));
    Tensor taken = true_indices(scope, ops::less(scope, rank, size));
    edges = ops::index_select(scope, edges, ops::index_select(scope, order, taken, 0), 0);
    degree = ops::minimum(scope, degree, size);
  }
  return finish(scope, outs, ops::index_select(scope, row, edges, 0), degree, edges);
}

// A hop after the other, by the operators for one.
TENON_DECOMPOSE(sample_edges) {
  Scope scope(err);
  Tensor row = operand(scope, args[0]), start = operand(scope, args[1]),
         known = as_int64(scope, operand(scope, args[2])), weights = operand(scope, args[5]);
  if (!scope.ok()) return scope.status();
  Tensor frontier = known;
  Tensor first = ops::full(scope, {1}, int64_t{0}, TENON_DTYPE_I64, row->device);
  std::vector<Tensor> sources, targets, edges;
  for (const int64_t size : ints_of(args[4])) {
    auto drawn = ops::sample_neighbors(scope, row, start, frontier, size, weights);
    if (!scope.ok()) return scope.status();
    const int64_t before = known->numel, count = frontier->numel;
    if (weights) {  // what weighs nothing comes last, where a node has not enough others
      Tensor keep = ops::greater(scope, ops::index_select(scope, weights, drawn.edges, 0), 0.0);
      Tensor owner = groups_of(scope, ops::cumsum(scope, drawn.counts, 0), drawn.edges->numel);
      drawn.counts = segment_sums(scope, ops::cast(scope, keep, TENON_DTYPE_I64), owner, count);
      Tensor kept = true_indices(scope, keep);
      drawn.neighbors = ops::index_select(scope, drawn.neighbors, kept, 0);
      drawn.edges = ops::index_select(scope, drawn.edges, kept, 0);
    }
    // Nodes that are known, of which only the frontier has neighbours in this hop.
    Tensor none = ops::full(scope, {before - count}, int64_t{0}, TENON_DTYPE_I64, row->device);
    auto again = ops::reindex_graph(scope, known, drawn.neighbors,
                                    ops::concat(scope, {none, drawn.counts}, 0));
    sources.push_back(again.source);
    targets.push_back(again.target);
    edges.push_back(drawn.edges);
    known = again.old_nodes;
    if (!scope.ok()) return scope.status();
    frontier = ops::narrow(scope, known, 0, before, known->numel - before);
  }
  const auto joined = [&](std::vector<Tensor>& parts) {
    if (parts.empty())
      parts.push_back(ops::full(scope, {0}, int64_t{0}, TENON_DTYPE_I64, row->device));
    return ops::concat(scope, parts, 0);
  };
  return finish(scope, outs, joined(sources), joined(targets), known, joined(edges));
}

TENON_DECOMPOSE(sample_subgraph) {
  const char* op = "sample_subgraph";
  Scope scope(err);
  Tensor row = operand(scope, args[0]), start = operand(scope, args[1]),
         nodes = operand(scope, args[2]), weights = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_indices(op, "row", row, -1, err));
  TENON_TRY(expect_indices(op, "start", start, -1, err));
  TENON_TRY(expect_indices(op, "nodes", nodes, -1, err));
  if (start->shape[0] == 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a start of one number more than there are nodes, got none");
  for (const int64_t size : ints_of(args[3]))
    if (size < -1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected sizes of at least 0, or -1 for all neighbours, got %lld",
                          ll(size));
  if (weights && (weights->ndim != 1 || weights->shape[0] != row->shape[0]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a weight for each of %lld edges, got shape %s", ll(row->shape[0]),
                        shape_text(*weights.get()).c_str());
  if (weights) weights = ops::cast(scope, ops::stop_gradient(scope, weights), TENON_DTYPE_F32);
  Tensor seed = ops::randint(scope, 0, std::numeric_limits<int64_t>::max(), {1}, TENON_DTYPE_I64,
                             row->device);
  auto found = ops::sample_edges(scope, as_int64(scope, row), as_int64(scope, start), nodes, seed,
                                 list_of(ints_of(args[3])), weights);
  return finish(scope, outs, found.source, found.target, found.old_nodes, found.edges);
}

}  // namespace tenon::standard_ops
