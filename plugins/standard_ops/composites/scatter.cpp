// SPDX-License-Identifier: Apache-2.0
// Elements picked and placed by coordinates, and placed with a reduction.
#include <limits>

#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// The coordinates along the last axis of `index`, as one tensor of indices for each axis of x.
tenon_status read_coordinates(Scope& scope, const char* op, const Tensor& x, const Tensor& index,
                              std::vector<Tensor>* coordinates, tenon_err* err) {
  const int64_t count = index->ndim > 0 ? index->shape[index->ndim - 1] : 0;
  if (count < 1 || count > x->ndim)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected an index whose last axis holds 1 to %d coordinates, got shape %s",
                        x->ndim, shape_text(*index.get()).c_str());
  *coordinates = ops::unbind(scope, index, -1);
  return scope.status();
}

enum class Merge { Sum, Prod, Mean, Amax, Amin };

// `others`: what else the operator takes.
tenon_status read_merge(const char* op, const char* others, std::string_view text, Merge* merge,
                        tenon_err* err) {
  static constexpr std::string_view names[] = {"sum", "prod", "mean", "amax", "amin"};
  const auto* found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected reduce %s'sum', 'prod', 'mean', 'amax' or 'amin', got '%.*s'",
                        others, static_cast<int>(text.size()), text.data());
  *merge = static_cast<Merge>(found - std::begin(names));
  return TENON_OK;
}

// 0, 1, ... along one axis of `shape`, which may have other axes.
Tensor numbers_along(Scope& scope, const Shape& shape, size_t axis, tenon_device_id device) {
  Shape along(shape.size(), 1);
  along[axis] = shape[axis];
  return ops::reshape(
      scope, ops::arange(scope, shape[axis], std::nullopt, 1, TENON_DTYPE_I64, device), along);
}

// For each of `index`, the flat index of the element of x that gather would read.
Tensor flat_targets(Scope& scope, const Tensor& x, const Tensor& index, int64_t axis) {
  Tensor at = ops::cast(scope, index, TENON_DTYPE_I64), flat;
  if (!scope.ok()) return {};
  const int64_t length = x->ndim > 0 ? x->shape[axis] : 1;
  at = ops::where(scope, ops::less(scope, at, 0), ops::add(scope, at, length), at);
  const Shape shape = sizes_of(index);
  for (size_t i = 0; i < static_cast<size_t>(x->ndim) && scope.ok(); ++i) {
    Tensor along = static_cast<int64_t>(i) == axis ? at : numbers_along(scope, shape, i, x->device);
    flat = flat ? ops::add(scope, ops::multiply(scope, flat, x->shape[i]), along) : along;
  }
  return ops::reshape(scope, ops::expand(scope, flat ? flat : at, shape), {-1});
}

// x with `source` merged into the elements at `index`: sorted by target, the elements for one target
// are neighbours, and steps over 1, 2, 4, ... of them merge them all into the last one.
// `combine_if(same, later, earlier)` is `later` where `same` is false.
template <class Combine, class CombineIf>
Tensor merged_by_sorting(Scope& scope, const Tensor& x, const Tensor& index, const Tensor& source,
                         int64_t axis, Combine combine, CombineIf combine_if) {
  Tensor targets = flat_targets(scope, x, index, axis);
  if (!scope.ok() || targets->numel == 0) return ops::clone(scope, x);
  auto sorted = ops::sort_with_indices(scope, targets, 0);
  targets = sorted.values;
  Tensor values = ops::index_select(scope, ops::reshape(scope, source, {-1}), sorted.indices, 0);
  if (!scope.ok()) return {};
  const int64_t n = targets->numel;
  for (int64_t d = 1; d < n && scope.ok(); d *= 2) {
    Tensor same = ops::equal(scope, ops::narrow(scope, targets, 0, d, n - d),
                             ops::narrow(scope, targets, 0, 0, n - d));
    Tensor later = combine_if(same, ops::narrow(scope, values, 0, d, n - d),
                              ops::narrow(scope, values, 0, 0, n - d));
    values = ops::concat(scope, {ops::narrow(scope, values, 0, 0, d), later}, 0);
  }
  // Those that are not the last for their element go to a 1 behind all others, whose gradient of
  // zero stays zero when it is multiplied.
  Tensor ends = ops::not_equal(scope, ops::narrow(scope, targets, 0, 0, n - 1),
                               ops::narrow(scope, targets, 0, 1, n - 1));
  Tensor last = ops::ones(scope, {1}, TENON_DTYPE_BOOL, x->device);
  targets = ops::where(scope, ops::concat(scope, {ends, last}, 0), targets, x->numel);
  Tensor one = ops::full(scope, {1}, 1, x->dtype, x->device);
  Tensor all = ops::concat(scope, {ops::reshape(scope, x, {-1}), one}, 0);
  all = ops::index_put(scope, all, {targets},
                       combine(ops::index_select(scope, all, targets, 0), values));
  return ops::reshape(scope, ops::narrow(scope, all, 0, 0, x->numel), sizes_of(x));
}

// Divides by nothing, so that its gradients of any order are right at zeros.
Tensor product_by_sorting(Scope& scope, const Tensor& x, const Tensor& index, const Tensor& source,
                          int64_t axis) {
  const auto combine = [&](const Tensor& a, const Tensor& b) { return ops::multiply(scope, a, b); };
  return merged_by_sorting(scope, x, index, source, axis, combine,
                           [&](const Tensor& same, const Tensor& later, const Tensor& earlier) {
                             return combine(later, ops::where(scope, same, earlier, 1));
                           });
}

// `source` has the shape of `index`.
tenon_status merged(Scope& scope, const char* op, Tensor x, Tensor index, const Tensor& source,
                    int64_t along, Merge merge, bool include_self, Tensor* result, tenon_err* err) {
  int32_t axis;
  TENON_TRY(resolve_axis_along(op, along, x->ndim, &axis, err));
  const int64_t length = x->ndim > 0 ? x->shape[axis] : 1;
  TENON_TRY(expect_between(TENON_OUT_OF_RANGE, op, "index", index, static_cast<double>(-length),
                           static_cast<double>(length - 1), err));
  Tensor counts;
  if (merge == Merge::Mean) counts = ops::ones_like(scope, x);
  const auto cleared = [&](const Tensor& from, ScalarArg number) {
    return ops::scatter(scope, from, index, ops::full(scope, {}, number, from->dtype, from->device),
                        axis);
  };
  if (!include_self) {
    const bool is_extreme = merge == Merge::Amax || merge == Merge::Amin;
    // float8_e4m3 has no infinity.
    const double infinity =
        x->dtype == TENON_DTYPE_F8E4M3 ? 448.0 : std::numeric_limits<double>::infinity();
    if (is_extreme && x->dtype <= TENON_DTYPE_I64)  // one of the elements that are merged
      x = ops::scatter(scope, x, index, source, axis);
    else if (is_extreme)
      x = cleared(x, merge == Merge::Amax ? -infinity : infinity);
    else
      x = cleared(x, int64_t{merge == Merge::Prod ? 1 : 0});
    if (counts) counts = cleared(counts, int64_t{0});
  }
  if (!scope.ok()) return scope.status();
  switch (merge) {
    case Merge::Sum:
      *result = ops::scatter_add(scope, x, index, source, axis);
      break;
    case Merge::Mean: {
      Tensor total = ops::scatter_add(scope, x, index, source, axis);
      counts = ops::scatter_add(scope, counts, index, ops::ones_like(scope, source), axis);
      *result = x->dtype <= TENON_DTYPE_I64 ? ops::floor_divide(scope, total, counts)
                                            : ops::divide(scope, total, counts);
      break;
    }
    case Merge::Prod:
      *result = product_by_sorting(scope, x, index, source, axis);
      break;
    case Merge::Amax:
    case Merge::Amin:
      *result = ops::scatter_extreme(scope, x, index, source, axis, merge == Merge::Amax);
      break;
  }
  return scope.status();
}

// A tensor argument beside `x`, on its device and of its dtype if it is a number.
Tensor operand_like(Scope& scope, const tenon_value& value, const Tensor& x) {
  if (value.tag == TENON_VALUE_TENSOR || !scope.ok()) return operand(scope, value);
  return ops::full(scope, {}, ScalarArg(value), x->dtype, x->device);
}

}  // namespace

tenon_status put_flat(Scope& scope, const Tensor& x, const Tensor& index, const TensorArg& values,
                      bool accumulate, tenon_value* outs) {
  if (!scope.ok()) return scope.status();
  Tensor flat = ops::reshape(scope, x, {-1});
  const bool is_view = x->flags & TENON_TENSOR_CONTIGUOUS;  // so that x sees the write
  if (writes_over(outs) && is_view) {
    ops::index_put_(scope, flat, {index}, values, 0, accumulate);
    return scope.status();
  }
  flat = ops::index_put(scope, flat, {index}, values, 0, accumulate);
  return finish(scope, outs, ops::reshape(scope, flat, sizes_of(x)));
}

TENON_DECOMPOSE(put) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  return put_flat(scope, x, index, args[2], bool_of(args[3]), outs);
}

TENON_DECOMPOSE(gather_nd) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  std::vector<Tensor> coordinates;
  TENON_TRY(read_coordinates(scope, "gather_nd", x, index, &coordinates, err));
  return finish(scope, outs, ops::index(scope, x, coordinates));
}

TENON_DECOMPOSE(scatter_nd_add) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  std::vector<Tensor> coordinates;
  TENON_TRY(read_coordinates(scope, "scatter_nd_add", x, index, &coordinates, err));
  if (writes_over(outs)) {
    ops::index_put_(scope, x, coordinates, args[2], 0, true);
    return scope.status();
  }
  return finish(scope, outs, ops::index_put(scope, x, coordinates, args[2], 0, true));
}

TENON_DECOMPOSE(scatter_extreme) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]),
         source = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const bool largest = bool_of(args[4]);
  int32_t axis;
  TENON_TRY(resolve_axis_along("scatter_extreme", int_of(args[3]), x->ndim, &axis, err));
  const auto combine = [&](const Tensor& a, const Tensor& b) {
    return largest ? ops::maximum(scope, a, b) : ops::minimum(scope, a, b);
  };
  return finish(
      scope, outs,
      merged_by_sorting(scope, x, index, source, axis, combine,
                        [&](const Tensor& same, const Tensor& later, const Tensor& earlier) {
                          return ops::where(scope, same, combine(later, earlier), later);
                        }));
}

TENON_DECOMPOSE(scatter_reduce) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  Tensor source = operand_like(scope, args[2], x), result;
  if (!scope.ok()) return scope.status();
  Merge merge;
  TENON_TRY(read_merge("scatter_reduce", "", text_of(args[4]), &merge, err));
  if (source->ndim == 0) source = ops::expand(scope, source, sizes_of(index));
  if (!scope.ok()) return scope.status();
  if (sizes_of(source) != sizes_of(index))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "scatter_reduce",
                        "expected source to be a single number or of index's shape %s, got %s",
                        shape_text(*index.get()).c_str(), shape_text(*source.get()).c_str());
  TENON_TRY(merged(scope, "scatter_reduce", x, index, source, int_of(args[3]), merge,
                   bool_of(args[5]), &result, err));
  return finish(scope, outs, result);
}

TENON_DECOMPOSE(put_along_axis) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]);
  Tensor source = operand_like(scope, args[2], x), result;
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis_along("put_along_axis", int_of(args[3]), x->ndim, &axis, err));
  if (index->ndim != x->ndim)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "put_along_axis",
                        "expected an index with the %d axes of x, got shape %s", x->ndim,
                        shape_text(*index.get()).c_str());
  Shape shape = sizes_of(index);
  for (int32_t i = 0; i < x->ndim; ++i)
    if (i != axis && shape[static_cast<size_t>(i)] == 1)
      shape[static_cast<size_t>(i)] = x->shape[i];
  index = ops::expand(scope, index, shape);
  source = ops::expand(scope, source, shape);
  if (!scope.ok()) return scope.status();
  if (text_of(args[4]) == "assign")
    return finish(scope, outs, ops::scatter(scope, x, index, source, axis));
  Merge merge;
  TENON_TRY(read_merge("put_along_axis", "'assign', ", text_of(args[4]), &merge, err));
  TENON_TRY(merged(scope, "put_along_axis", x, index, source, axis, merge, bool_of(args[5]),
                   &result, err));
  return finish(scope, outs, result);
}

TENON_DECOMPOSE(index_reduce) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[2]),
         source = operand(scope, args[3]), result;
  if (!scope.ok()) return scope.status();
  Merge merge;
  TENON_TRY(read_merge("index_reduce", "", text_of(args[4]), &merge, err));
  int32_t axis;
  TENON_TRY(resolve_axis("index_reduce", int_of(args[1]), x->ndim, &axis, err));
  TENON_TRY(expect_ndim("index_reduce", "index", *index.get(), 1, "one for each slice", err));
  Shape wanted = sizes_of(x);
  wanted[static_cast<size_t>(axis)] = index->numel;
  if (sizes_of(source) != wanted)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "index_reduce",
                        "expected a source of shape %s, got %s", list_text(wanted).c_str(),
                        shape_text(*source.get()).c_str());
  Shape along(wanted.size(), 1);
  along[static_cast<size_t>(axis)] = index->numel;
  index = ops::expand(scope, ops::reshape(scope, index, along), wanted);
  if (!scope.ok()) return scope.status();
  TENON_TRY(
      merged(scope, "index_reduce", x, index, source, axis, merge, bool_of(args[5]), &result, err));
  return finish(scope, outs, result);
}

}  // namespace tenon::standard_ops
