// SPDX-License-Identifier: Apache-2.0
// GatherND, ScatterND, ScatterElements, OneHot, TensorScatter.
#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

// What scatter_reduce calls a reduction; empty: it writes.
std::string reduce_of(Conversion& c) {
  const std::string reduction = c.text("reduction");
  if (reduction.empty() || reduction == "none") return "";
  if (reduction == "add") return "sum";
  if (reduction == "mul") return "prod";
  if (reduction == "max") return "amax";
  if (reduction == "min") return "amin";
  c.fail("attribute `reduction`: expected none, add, mul, max or min, got `" + reduction + "`");
}

// Indices counted from the front, of an axis of this size.
Tensor from_front(Conversion& c, const Tensor& indices, int64_t size) {
  const Tensor wide = c.cast(indices, TENON_DTYPE_I64);
  return c.call("where", {c.call("less", {wide, 0}), c.call("add", {wide, size}), wide});
}

int64_t product(const Ints& list, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i)
    if (__builtin_mul_overflow(result, list[i], &result))
      throw Error(TENON_INVALID_ARGUMENT, "the number of elements does not fit into 63 bits");
  return result;
}

// Coordinates along the last axis of `indices` of the first axes of `shape`, as positions in these axes flattened.
Tensor flat_positions(Conversion& c, const Tensor& indices, const Ints& shape, size_t first) {
  const int64_t depth = indices->shape[indices->ndim - 1];
  Tensor flat;
  for (int64_t i = 0; i < depth; ++i) {
    const size_t axis = first + static_cast<size_t>(i);
    const Tensor one = from_front(c, c.call("select", {indices, -1, i}), shape.at(axis));
    flat = flat ? c.call("add", {c.call("multiply", {flat, shape[axis]}), one}) : one;
  }
  return flat;
}

}  // namespace

Values convert_gather_nd(Conversion& c) {
  const Tensor &data = c.tensor("data"), &indices = c.tensor("indices");
  const auto batch = static_cast<size_t>(c.integer("batch_dims"));
  const Ints shape = shape_of(data), coordinates = shape_of(indices);
  if (coordinates.empty() || batch >= coordinates.size() || batch >= shape.size() ||
      static_cast<size_t>(coordinates.back()) + batch > shape.size() || coordinates.back() < 1)
    c.fail("expected coordinates of 1 to " +
           std::to_string(shape.size() - std::min(batch, shape.size())) + " axes, got " +
           describe(*indices.get()));
  const size_t depth = static_cast<size_t>(coordinates.back());
  // One axis of batches and one of positions, one of what is taken at each.
  const int64_t batches = product(shape, 0, batch), inner = product(shape, batch, batch + depth);
  Ints tail(shape.begin() + static_cast<ptrdiff_t>(batch + depth), shape.end());
  Ints rows{batches * inner};
  rows.insert(rows.end(), tail.begin(), tail.end());
  Tensor flat = flat_positions(c, indices, shape, batch);
  if (batch > 0) {
    Ints batch_shape(coordinates.begin(), coordinates.begin() + static_cast<ptrdiff_t>(batch));
    batch_shape.resize(coordinates.size() - 1, 1);
    const Tensor starts =
        c.call("reshape",
               {c.call("arange", {0, batches * inner, std::max<int64_t>(inner, 1)}), batch_shape});
    flat = c.call("add", {flat, starts});
  }
  return {c.call("index_select", {c.call("reshape", {data, rows}), flat, 0})};
}

Values convert_scatter_nd(Conversion& c) {
  const Tensor &data = c.tensor("data"), &indices = c.tensor("indices"),
               &updates = c.tensor("updates");
  const Ints shape = shape_of(data), coordinates = shape_of(indices);
  if (coordinates.empty() || coordinates.back() < 1 ||
      static_cast<size_t>(coordinates.back()) > shape.size())
    c.fail("expected coordinates of 1 to " + std::to_string(shape.size()) + " axes, got " +
           describe(*indices.get()));
  const auto depth = static_cast<size_t>(coordinates.back());
  const int64_t rows = product(shape, 0, depth), width = product(shape, depth, shape.size());
  const Tensor flat = c.call("reshape", {flat_positions(c, indices, shape, 0), Ints{-1, 1}});
  const int64_t count = flat->shape[0];
  const Tensor wide = c.call("expand", {flat, Ints{count, width}}),
               table = c.call("reshape", {data, Ints{rows, width}}),
               source = c.call("reshape", {updates, Ints{count, width}});
  const std::string reduce = reduce_of(c);
  const Tensor written =
      reduce.empty() ? c.call("scatter", {table, wide, source, 0})
                     : c.call("scatter_reduce", {table, wide, source, 0, {"reduce", reduce}});
  return {c.call("reshape", {written, shape})};
}

Values convert_scatter_elements(Conversion& c) {
  const Tensor &data = c.tensor("data"), &updates = c.tensor("updates");
  const int64_t axis = normal_axis(c.integer("axis"), data->ndim, "axis");
  const Tensor indices = from_front(c, c.tensor("indices"), data->shape[axis]);
  const std::string reduce = reduce_of(c);
  if (reduce.empty()) return {c.call("scatter", {data, indices, updates, axis})};
  return {c.call("scatter_reduce", {data, indices, updates, axis, {"reduce", reduce}})};
}

Values convert_one_hot(Conversion& c) {
  const Tensor &indices = c.tensor("indices"), &values = c.tensor("values");
  const auto depth = static_cast<int64_t>(float_of(c.input("depth"), "depth"));
  const int64_t ndim = indices->ndim + 1, axis = normal_axis(c.integer("axis"), ndim, "axis");
  // Compared with 0, 1, ... along the new axis: what is outside is off everywhere.
  Ints numbers(static_cast<size_t>(ndim), 1);
  numbers[static_cast<size_t>(axis)] = depth;
  const Tensor positions = c.call("reshape", {c.call("arange", {0, depth}), numbers}),
               at = c.call("unsqueeze", {from_front(c, indices, depth), Ints{axis}});
  const Tensor is_on = c.call("equal", {at, positions});
  return {
      c.call("where", {is_on, c.call("select", {values, 0, 1}), c.call("select", {values, 0, 0})})};
}

// `update` is written to each row of the cache from its own place on.
Values convert_tensor_scatter(Conversion& c) {
  const Tensor &cache = c.tensor("past_cache"), &update = c.tensor("update");
  const int64_t axis = normal_axis(c.integer("axis", -2), cache->ndim, "axis");
  if (axis == 0) c.fail("axis: expected one behind the batches, got 0");
  const int64_t length = cache->shape[axis], count = update->shape[axis];
  Ints along(static_cast<size_t>(cache->ndim), 1), batches(static_cast<size_t>(cache->ndim), 1);
  along[static_cast<size_t>(axis)] = count;
  batches[0] = cache->shape[0];
  Tensor positions = c.call("reshape", {c.call("arange", {0, count}), along});
  if (c.has("write_indices"))
    positions = c.call(
        "add", {positions,
                c.call("reshape", {c.cast(c.tensor("write_indices"), TENON_DTYPE_I64), batches})});
  if (c.text("mode") == "circular") positions = c.call("remainder", {positions, length});
  const Tensor wide = c.call("expand", {positions, shape_of(update)});
  return {c.call("scatter", {cache, wide, update, axis})};
}

}  // namespace tenon::onnx
