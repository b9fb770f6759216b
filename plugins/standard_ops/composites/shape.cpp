// SPDX-License-Identifier: Apache-2.0
// Joining, repeating and padding.
#include "composites/compose.hpp"

#include <tenon/ops/host_values.hpp>

namespace tenon::standard_ops {

TENON_DECOMPOSE(concat) {
  Scope scope(err);
  auto tensors = tensors_of(args[0]);
  int32_t axis, dtype = tensors[0]->dtype;
  TENON_TRY(resolve_axis("concat", int_of(args[1]), tensors[0]->ndim, &axis, err));
  Shape shape = to_vector(shape_of(*tensors[0]));
  for (const tenon_tensor* tensor : tensors.subspan(1)) {
    shape[static_cast<size_t>(axis)] += tensor->shape[axis];
    dtype = host->dtype_promote(dtype, tensor->dtype);
  }
  Tensor result = ops::empty(scope, shape, dtype, tensors[0]->device);
  int64_t start = 0;
  for (tenon_tensor* tensor : tensors) {
    int64_t length = tensor->shape[axis];
    ops::clone_out(scope, ops::narrow(scope, result, axis, start, length), tensor);
    start += length;
  }
  return finish(scope, outs, result);
}

TENON_DECOMPOSE(stack) {
  Scope scope(err);
  auto tensors = tensors_of(args[0]);
  if (tensors.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "stack",
                        "expected at least one tensor, got none");
  int32_t axis;
  TENON_TRY(resolve_axis("stack", int_of(args[1]), tensors[0]->ndim + 1, &axis, err));
  Ints shape = shape_of(*tensors[0]);
  for (const tenon_tensor* tensor : tensors)
    if (!std::ranges::equal(shape_of(*tensor), shape))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "stack",
                          "expected tensors of one shape, got %s and %s",
                          shape_text(*tensors[0]).c_str(), shape_text(*tensor).c_str());
  // What is joined along the axis in front of which the new one comes needs no view of each tensor.
  if (static_cast<size_t>(axis) < shape.size()) {
    Shape stacked = to_vector(shape);
    stacked.insert(stacked.begin() + axis, static_cast<int64_t>(tensors.size()));
    Tensor joined = ops::concat(scope, TensorList(tensors.data(), tensors.size()), axis);
    return finish(scope, outs, ops::reshape(scope, joined, stacked));
  }
  std::vector<Tensor> rows;
  for (tenon_tensor* tensor : tensors) rows.push_back(ops::unsqueeze(scope, tensor, {axis}));
  return finish(scope, outs, ops::concat(scope, rows, axis));
}

TENON_DECOMPOSE(broadcast_tensors) {
  Scope scope(err);
  auto tensors = tensors_of(args[0]);
  tenon_meta joint;
  joint.ndim = 0;
  for (const tenon_tensor* tensor : tensors)
    TENON_TRY(shapes::broadcast_with("broadcast_tensors", tensor, joint, err));
  std::vector<Tensor> results;
  for (tenon_tensor* tensor : tensors)
    results.push_back(
        ops::expand(scope, tensor, IntList(joint.shape, static_cast<uint64_t>(joint.ndim))));
  return finish_list(scope, outs, std::move(results));
}

TENON_DECOMPOSE(meshgrid) {
  Scope scope(err);
  auto tensors = tensors_of(args[0]);
  std::string_view indexing = text_of(args[1]);
  if (indexing != "ij" && indexing != "xy")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "meshgrid",
                        "expected indexing 'ij' or 'xy', got '%.*s'",
                        static_cast<int>(indexing.size()), indexing.data());
  Shape shape;
  for (const tenon_tensor* tensor : tensors) {
    TENON_TRY(expect_ndim("meshgrid", "every tensor", *tensor, 1, "coordinates", err));
    shape.push_back(tensor->shape[0]);
  }
  TENON_TRY(shapes::check_ndim("meshgrid", static_cast<int64_t>(shape.size()), err));
  bool exchanged = indexing == "xy" && shape.size() > 1;
  if (exchanged) std::swap(shape[0], shape[1]);
  std::vector<Tensor> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape along(shape.size(), 1);
    along[exchanged && i < 2 ? 1 - i : i] = tensors[i]->shape[0];
    grids.push_back(ops::expand(scope, ops::reshape(scope, tensors[i], along), shape));
  }
  return finish_list(scope, outs, std::move(grids));
}

// [a, b] becomes [r, a, s, b] by broadcasting, and that [r * a, s * b].
TENON_DECOMPOSE(tile) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Shape repeats = to_vector(ints_of(args[1])), sizes = sizes_of(x);
  for (int64_t count : repeats)
    if (count < 0)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "tile",
                          "expected repeats of at least 0, got %s", list_text(repeats).c_str());
  size_t ndim = std::max(repeats.size(), sizes.size());
  repeats.insert(repeats.begin(), ndim - repeats.size(), 1);
  sizes.insert(sizes.begin(), ndim - sizes.size(), 1);
  Shape apart, expanded, joined;
  for (size_t axis = 0; axis < ndim; ++axis) {
    apart.insert(apart.end(), {1, sizes[axis]});
    expanded.insert(expanded.end(), {repeats[axis], sizes[axis]});
    joined.push_back(expression::times(repeats[axis], sizes[axis]));
  }
  Tensor copies = ops::expand(scope, ops::reshape(scope, x, apart), expanded);
  return finish(scope, outs, ops::reshape(scope, copies, joined));
}

TENON_DECOMPOSE(repeat) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  int64_t repeats = int_of(args[1]);
  if (is_none(args[2])) x = ops::reshape(scope, x, {-1});
  if (!scope.ok()) return scope.status();
  if (repeats < 0)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "repeat",
                        "expected repeats of at least 0, got %lld", ll(repeats));
  int32_t axis = 0;
  if (!is_none(args[2])) TENON_TRY(resolve_axis("repeat", int_of(args[2]), x->ndim, &axis, err));
  Shape expanded = sizes_of(x), joined = expanded;
  expanded.insert(expanded.begin() + axis + 1, repeats);
  int64_t& extent = joined[static_cast<size_t>(axis)];
  extent = expression::times(extent, repeats);
  Tensor copies = ops::expand(scope, ops::unsqueeze(scope, x, {axis + 1}), expanded);
  return finish(scope, outs, ops::reshape(scope, copies, joined));
}

TENON_DECOMPOSE(roll) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  Ints shifts = ints_of(args[1]), axes = ints_of(args[2]);
  Shape shape = sizes_of(x);
  const int64_t flat_axis = 0;
  bool flat = is_none(args[2]);
  if (flat) {
    axes = {&flat_axis, 1};
    x = ops::reshape(scope, x, {-1});
  }
  if (shifts.size() != axes.size())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "roll",
                        "expected as many shifts as axes, got %s for %s", list_text(shifts).c_str(),
                        list_text(axes).c_str());
  for (size_t i = 0; i < axes.size() && scope.ok(); ++i) {
    int32_t axis;
    TENON_TRY(resolve_axis("roll", axes[i], x->ndim, &axis, err));
    int64_t extent = x->shape[axis];
    int64_t shift = extent ? ((shifts[i] % extent) + extent) % extent : 0;
    if (shift == 0) continue;
    Tensor tail = ops::narrow(scope, x, axis, extent - shift, shift);
    Tensor head = ops::narrow(scope, x, axis, 0, extent - shift);
    x = ops::concat(scope, {tail, head}, axis);
  }
  if (flat) x = ops::reshape(scope, x, shape);
  return finish(scope, outs, x);
}

namespace {

// Where element `i` of a padded axis comes from.
int64_t source_position(std::string_view mode, int64_t i, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, extent - 1);
  if (mode == "wrap") return ((i % extent) + extent) % extent;
  int64_t period = std::max<int64_t>(2 * (extent - 1), 1);
  int64_t place = ((i % period) + period) % period;
  return place < extent ? place : period - place;
}

}  // namespace

TENON_DECOMPOSE(pad) {
  Scope scope(err);
  std::string_view mode = text_of(args[2]);
  Tensor x = operand(scope, args[0]);
  Ints padding = ints_of(args[1]);
  if (mode == "constant")
    return finish(scope, outs, ops::pad_constant(scope, x, list_of(padding), ScalarArg(args[3])));
  if (mode != "edge" && mode != "reflect" && mode != "wrap")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "pad",
                        "expected mode 'constant', 'edge', 'reflect' or 'wrap', got '%.*s'",
                        static_cast<int>(mode.size()), mode.data());
  if (!scope.ok()) return scope.status();
  if (padding.size() != 2 * static_cast<size_t>(x->ndim))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "pad",
                        "expected two numbers for each of %d axes, got %s", x->ndim,
                        list_text(padding).c_str());
  for (int32_t axis = 0; scope.ok() && axis < x->ndim; ++axis) {
    int64_t before = padding[2 * static_cast<size_t>(axis)],
            after = padding[2 * static_cast<size_t>(axis) + 1];
    int64_t extent = x->shape[axis];
    if (before == 0 && after == 0) continue;
    if (before < 0 || after < 0 || extent == 0)
      return shapes::fail(
          err, TENON_INVALID_ARGUMENT, "pad",
          "expected margins of at least 0 around elements to repeat, got %lld and %lld for "
          "axis %d of length %lld",
          ll(before), ll(after), axis, ll(extent));
    std::vector<int64_t> positions;
    for (int64_t i = -before; i < extent + after; ++i)
      positions.push_back(source_position(mode, i, extent));
    x = ops::index_select(scope, x, int_tensor(scope, positions, x->device), axis);
  }
  return finish(scope, outs, x);
}

TENON_DECOMPOSE(pad_constant) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  Ints padding = ints_of(args[1]);
  if (!scope.ok()) return scope.status();
  Shape shape = sizes_of(x), axes, from, from_stop, to, to_stop;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t before = padding[2 * axis], after = padding[2 * axis + 1], extent = shape[axis];
    shape[axis] += before + after;
    axes.push_back(static_cast<int64_t>(axis));
    from.push_back(std::max<int64_t>(-before, 0));
    from_stop.push_back(extent - std::max<int64_t>(-after, 0));
    to.push_back(std::max<int64_t>(before, 0));
    to_stop.push_back(shape[axis] - std::max<int64_t>(after, 0));
  }
  Tensor result = full_with(scope, x, shape, ScalarArg(args[2]));
  Tensor inside = ops::slice(scope, result, axes, to, to_stop);
  ops::clone_out(scope, inside, ops::slice(scope, x, axes, from, from_stop));
  return finish(scope, outs, result);
}

TENON_DECOMPOSE(pad_constant_grad) {
  Scope scope(err);
  Shape negated = to_vector(ints_of(args[1]));
  for (int64_t& margin : negated) margin = -margin;
  return finish(scope, outs, ops::pad_constant(scope, args[0], negated));
}

namespace {

// The same columns of several matrices of one shape.
tenon_status columns_of(Scope& scope, const char* op, const tenon_value* args,
                        std::vector<Tensor>& parts, tenon_err* err) {
  const auto tensors = tensors_of(args[0]);
  if (tensors.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected at least one tensor, got none");
  const tenon_tensor& first = *tensors[0];
  for (const tenon_tensor* each : tensors)
    if (each->ndim != 2 || !std::ranges::equal(shape_of(*each), shape_of(first)))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected matrices of one shape, got shapes %s and %s",
                          shape_text(first).c_str(), shape_text(*each).c_str());
  const int64_t columns = first.shape[1];
  const int64_t start = int_of(args[1]) + (int_of(args[1]) < 0 ? columns : 0);
  const int64_t length = int_of(args[2]) == -1 ? columns - start : int_of(args[2]);
  if (start < 0 || length < 0 || start + length > columns)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected columns within the %lld of the matrices, got start %lld and "
                        "length %lld",
                        ll(columns), ll(int_of(args[1])), ll(int_of(args[2])));
  for (tenon_tensor* each : tensors)
    parts.push_back(ops::narrow(scope, Tensor::borrow(each), 1, start, length));
  return scope.status();
}

}  // namespace

TENON_DECOMPOSE(partial_concat) {
  Scope scope(err);
  std::vector<Tensor> parts;
  TENON_TRY(columns_of(scope, "partial_concat", args, parts, err));
  return finish(scope, outs, ops::concat(scope, parts, 1));
}

TENON_DECOMPOSE(partial_sum) {
  Scope scope(err);
  std::vector<Tensor> parts;
  TENON_TRY(columns_of(scope, "partial_sum", args, parts, err));
  Tensor sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = ops::add(scope, sum, parts[i]);
  return finish(scope, outs, parts.size() > 1 ? sum : ops::clone(scope, sum));
}

}  // namespace tenon::standard_ops
