// SPDX-License-Identifier: Apache-2.0
// Parts of tensors picked, replaced and filled.
#include <tenon/ops/host_values.hpp>

#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// int64 numbers start, start + step, ... on the device of `x`.
Tensor numbers(Scope& scope, const Tensor& x, int64_t start, int64_t count, int64_t step) {
  if (!scope.ok()) return {};
  Tensor indices = ops::arange(scope, count, std::nullopt, 1, TENON_DTYPE_I64, x->device);
  if (step != 1) indices = ops::multiply(scope, indices, step);
  return start == 0 ? indices : ops::add(scope, indices, start);
}

// x with the elements at `indices` along `axis` replaced by `source`, which broadcasts.
Tensor replaced(Scope& scope, const Tensor& x, const Tensor& indices, const tenon_value& source,
                int64_t axis) {
  if (source.tag != TENON_VALUE_TENSOR) return ops::index_put(scope, x, {indices}, source, axis);
  Tensor value = Tensor::borrow(&tensor_of(source));
  if (scope.ok() && value->dtype != x->dtype) value = ops::cast(scope, value, x->dtype);
  return ops::index_put(scope, x, {indices}, value, axis);
}

int64_t clamped(int64_t position, int64_t extent) {
  if (position < 0) position += extent;
  return std::clamp<int64_t>(position, 0, extent);
}

}  // namespace

TENON_DECOMPOSE(unflatten) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("unflatten", int_of(args[1]), x->ndim, &axis, err));
  const Ints sizes = ints_of(args[2]);
  Shape shape = sizes_of(x);
  const int64_t extent = shape[static_cast<size_t>(axis)];
  int64_t known = 1;
  const auto open = std::count(sizes.begin(), sizes.end(), -1);
  for (int64_t size : sizes)
    if (size != -1) known = expression::times(known, size);
  const bool fits = open == 0   ? known == extent
                    : open == 1 ? known > 0 && extent % known == 0
                                : false;
  if (!fits || sizes.empty())
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "unflatten",
                        "expected sizes whose product is %lld, the length of axis %d, with at most "
                        "one -1, got %s",
                        ll(extent), axis, list_text(sizes).c_str());
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, sizes.begin(), sizes.end());
  std::replace(shape.begin() + axis, shape.begin() + axis + static_cast<int64_t>(sizes.size()),
               int64_t{-1}, known > 0 ? extent / known : 0);
  return finish(scope, outs, ops::reshape(scope, x, shape));
}

TENON_DECOMPOSE(select_scatter) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("select_scatter", int_of(args[2]), x->ndim, &axis, err));
  const int64_t extent = x->shape[axis], index = int_of(args[3]);
  if (index < -extent || index >= extent)
    return shapes::fail(err, TENON_OUT_OF_RANGE, "select_scatter",
                        "expected an index from %lld to %lld, got %lld", ll(-extent),
                        ll(extent - 1), ll(index));
  Tensor place = ops::full(scope, IntList(), index, TENON_DTYPE_I64, x->device);
  return finish(scope, outs, replaced(scope, x, place, args[1], axis));
}

TENON_DECOMPOSE(slice_scatter) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("slice_scatter", int_of(args[2]), x->ndim, &axis, err));
  const int64_t extent = x->shape[axis], step = int_of(args[5]);
  if (step < 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "slice_scatter",
                        "expected a step of at least 1, got %lld", ll(step));
  const int64_t start = clamped(int_of(args[3]), extent), stop = clamped(int_of(args[4]), extent);
  const int64_t count = stop > start ? (stop - start - 1) / step + 1 : 0;
  return finish(scope, outs,
                replaced(scope, x, numbers(scope, x, start, count, step), args[1], axis));
}

TENON_DECOMPOSE(as_strided) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const Ints size = ints_of(args[1]), stride = ints_of(args[2]);
  int64_t low = int_of(args[3]), high = low;
  bool is_empty = false, fits = size.size() == stride.size();
  for (size_t i = 0; fits && i < size.size(); ++i) {
    fits = size[i] >= 0;
    is_empty = is_empty || size[i] == 0;
    const int64_t reach = expression::times(std::max<int64_t>(size[i] - 1, 0), stride[i]);
    (reach < 0 ? low : high) = expression::plus(reach < 0 ? low : high, reach);
  }
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "as_strided",
                        "expected lengths of at least 0 and a stride for each, got %s and %s",
                        list_text(size).c_str(), list_text(stride).c_str());
  if (is_empty) return finish(scope, outs, full_with(scope, x, size, 0));
  if (low < 0 || high >= x->numel)
    return shapes::fail(err, TENON_OUT_OF_RANGE, "as_strided",
                        "expected elements 0 to %lld of shape %s, got %lld to %lld",
                        ll(x->numel - 1), shape_text(*x.get()).c_str(), ll(low), ll(high));
  Tensor indices = ops::full(scope, IntList(), int_of(args[3]), TENON_DTYPE_I64, x->device);
  for (size_t i = 0; i < size.size(); ++i) {
    Shape along(size.size(), 1);
    along[i] = size[i];
    indices = ops::add(scope, indices,
                       ops::reshape(scope, numbers(scope, x, 0, size[i], stride[i]), along));
  }
  return finish(scope, outs, ops::index_select(scope, ops::reshape(scope, x, {-1}), indices, 0));
}

TENON_DECOMPOSE(fill_diagonal) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const Shape shape = sizes_of(x);
  const int64_t offset = int_of(args[2]);
  const bool wrap = bool_of(args[3]);
  const bool equal =
      std::adjacent_find(shape.begin(), shape.end(), std::not_equal_to<>()) == shape.end();
  if (x->ndim < 2 || (x->ndim > 2 && (!equal || offset != 0 || wrap)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "fill_diagonal",
                        "expected a matrix, or more axes of one length with offset 0 and no wrap, "
                        "got shape %s, offset %lld and wrap %s",
                        shape_text(*x.get()).c_str(), ll(offset), wrap ? "true" : "false");
  // Elements of the diagonal are `step` apart in row-major order.
  int64_t step = 1, start = 0, count = shape[0];
  for (size_t i = 1; i < shape.size(); ++i) step = step * shape[i] + 1;
  if (x->ndim == 2) {
    const int64_t rows = shape[0], columns = shape[1];
    const int64_t down = std::clamp<int64_t>(-offset, 0, rows);
    const int64_t right = std::clamp<int64_t>(offset, 0, columns);
    start = down * columns + right;
    count = std::max<int64_t>(std::min(rows - down, columns - right), 0);
    if (wrap && count > 0) count = (rows * columns - 1 - start) / step + 1;
  }
  Tensor flat = ops::reshape(scope, x, {-1});
  return finish(
      scope, outs,
      ops::reshape(scope, replaced(scope, flat, numbers(scope, x, start, count, step), args[1], 0),
                   shape));
}

TENON_DECOMPOSE(crop) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const Ints wanted = ints_of(args[1]), offsets = ints_of(args[2]);
  const size_t ndim = static_cast<size_t>(x->ndim);
  if (wanted.size() != ndim || (!is_none(args[2]) && offsets.size() != ndim))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "crop",
                        "expected %zu extents and offsets for shape %s, got %s and %s", ndim,
                        shape_text(*x.get()).c_str(), list_text(wanted).c_str(),
                        list_text(offsets).c_str());
  Tensor result = x;
  for (size_t i = 0; i < ndim; ++i) {
    const int64_t start = is_none(args[2]) ? 0 : offsets[i], extent = x->shape[i];
    const int64_t length = wanted[i] == -1 ? extent - start : wanted[i];
    if (start < 0 || length < 0 || start > extent || length > extent - start)
      return shapes::fail(err, TENON_OUT_OF_RANGE, "crop",
                          "expected a part of axis %zu, which has length %lld, got %lld elements "
                          "from %lld on",
                          i, ll(extent), ll(length), ll(start));
    result = ops::narrow(scope, result, static_cast<int64_t>(i), start, length);
  }
  return finish(scope, outs, ops::clone(scope, result));
}

TENON_DECOMPOSE(multiplex) {
  Scope scope(err);
  std::vector<Tensor> tensors;
  for (tenon_tensor* tensor : tensors_of(args[0])) tensors.push_back(Tensor::borrow(tensor));
  Tensor index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  if (tensors.empty() || tensors[0]->ndim < 1 || index->numel != tensors[0]->shape[0])
    return shapes::fail(
        err, TENON_INVALID_ARGUMENT, "multiplex",
        "expected tensors with rows and an index for each row, got %zu tensors%s "
        "and an index of shape %s",
        tensors.size(),
        tensors.empty() ? "" : (" of shape " + shape_text(*tensors[0].get())).c_str(),
        shape_text(*index.get()).c_str());
  Tensor rows = numbers(scope, tensors[0], 0, index->numel, 1);
  Tensor all = ops::stack(scope, tensors);
  return finish(scope, outs, ops::index(scope, all, {ops::reshape(scope, index, {-1}), rows}));
}

TENON_DECOMPOSE(shard_index) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (!is_integer_dtype(x->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, "shard_index",
                        "expected integers, got %s; convert with .to(dtype)",
                        host->dtype_name(x->dtype));
  const int64_t count = int_of(args[1]), shards = int_of(args[2]), shard = int_of(args[3]);
  if (count < 1 || shards < 1 || shard < 0 || shard >= shards)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "shard_index",
                        "expected a count and shards of at least 1 and a shard below shards, got "
                        "%lld, %lld and %lld",
                        ll(count), ll(shards), ll(shard));
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, "shard_index", "indices", x, 0,
                           static_cast<double>(count - 1), err));
  const int64_t size = (count - 1) / shards + 1;
  Tensor here = ops::equal(scope, ops::floor_divide(scope, x, size), shard);
  return finish(scope, outs,
                ops::where(scope, here, ops::remainder(scope, x, size), int_of(args[4])));
}

// Powers in float64 round once to the dtype.
TENON_DECOMPOSE(logspace) {
  Scope scope(err);
  int32_t device = -1;
  if (!is_none(args[6])) device = static_cast<int32_t>(int_of(args[6]));
  const int32_t dtype =
      is_none(args[5]) ? int32_t{TENON_DTYPE_F32} : static_cast<int32_t>(int_of(args[5]));
  const bool is_wide =
      dtype == TENON_DTYPE_F64 || dtype == TENON_DTYPE_C128 || dtype <= TENON_DTYPE_I64;
  const int32_t work = is_wide ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  // Integers take float64, which the device may not have: the host makes the numbers, as it makes any list of them.
  const int32_t there =
      dtype <= TENON_DTYPE_I64 && device >= 0 ? static_cast<int32_t>(host->device_host()) : device;
  Tensor exponents = ops::linspace(scope, float_of(args[0]), float_of(args[1]), int_of(args[2]),
                                   bool_of(args[4]), work, there);
  Tensor powers = ops::pow(scope, float_of(args[3]), exponents);
  if (scope.ok() && powers->dtype != dtype) powers = ops::cast(scope, powers, dtype);
  if (there != device) powers = ops::to_device(scope, powers, device);
  return finish(scope, outs, powers);
}

}  // namespace tenon::standard_ops
