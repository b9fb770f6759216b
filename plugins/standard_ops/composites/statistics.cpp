// SPDX-License-Identifier: Apache-2.0
// Order statistics, made of sorting and picking.
#include "composites/domain.hpp"

namespace tenon::standard_ops {
namespace {

// What an order statistic looks at: `x` or its flat elements, and the axis that is reduced.
struct Slices {
  Tensor x;
  int32_t axis = 0;
  int64_t length = 0;
  Shape kept;  // the shape of the result, with the axis as one of length 1 where it is kept
};

tenon_status read_slices(Scope& scope, const char* op, const tenon_value& value,
                         const tenon_value& axis, bool keepdim, Slices* slices, tenon_err* err) {
  Tensor x = operand(scope, value);
  if (!scope.ok()) return scope.status();
  if (is_none(axis)) {
    slices->kept.assign(keepdim ? static_cast<size_t>(x->ndim) : 0, 1);
    x = ops::reshape(scope, x, {-1});
  } else {
    TENON_TRY(resolve_axis_along(op, int_of(axis), x->ndim, &slices->axis, err));
    if (x->ndim > 0) {
      slices->kept = sizes_of(x);
      if (keepdim)
        slices->kept[static_cast<size_t>(slices->axis)] = 1;
      else
        slices->kept.erase(slices->kept.begin() + slices->axis);
    } else {
      x = ops::reshape(scope, x, {1});
    }
  }
  if (!scope.ok()) return scope.status();
  slices->length = x->shape[slices->axis];
  slices->x = std::move(x);
  return TENON_OK;
}

tenon_status expect_elements(const char* op, const Slices& slices, tenon_err* err) {
  if (slices.length > 0) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected at least one element along axis %d, got shape %s", slices.axis,
                      shape_text(*slices.x.get()).c_str());
}

// The elements at `indices`, which have the shape of slices.x with 1 along the axis.
Tensor picked(Scope& scope, const Slices& slices, const Tensor& from, const Tensor& indices) {
  return ops::reshape(scope, ops::gather(scope, from, indices, slices.axis), slices.kept);
}

enum class Between { Linear, Lower, Higher, Nearest, Midpoint };

tenon_status read_method(const char* op, std::string_view text, Between* method, tenon_err* err) {
  static constexpr std::string_view names[] = {"linear", "lower", "higher", "nearest", "midpoint"};
  const auto* found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected method 'linear', 'lower', 'higher', 'nearest' or 'midpoint', got "
                        "'%.*s'",
                        static_cast<int>(text.size()), text.data());
  *method = static_cast<Between>(found - std::begin(names));
  return TENON_OK;
}

// (1 - part) * low + part * high. Equal neighbours may be infinite, and so have no difference.
Tensor mixed(Scope& scope, const Tensor& low, const Tensor& high, const TensorArg& part,
             const TensorArg& rest) {
  Tensor sum = ops::add(scope, ops::multiply(scope, low, rest), ops::multiply(scope, high, part));
  return ops::where(scope, ops::equal(scope, low, high), low, sum);
}

// The elements of the rows `sorted` at `position`, counted from the start, or mixtures of their
// neighbours. `position` differs from row to row.
Tensor between(Scope& scope, const Tensor& sorted, const Tensor& position, Between method) {
  const auto at = [&](const Tensor& whole) {
    return ops::gather(scope, sorted, ops::cast(scope, whole, TENON_DTYPE_I64), -1);
  };
  if (method == Between::Nearest) return at(ops::round(scope, position));
  Tensor below = ops::floor(scope, position), above = ops::ceil(scope, position);
  if (method == Between::Lower) return at(below);
  if (method == Between::Higher) return at(above);
  Tensor low = at(below), high = at(above);
  if (method == Between::Midpoint) return mixed(scope, low, high, 0.5, 0.5);
  Tensor part = ops::subtract(scope, position, below);
  return mixed(scope, low, high, part, ops::subtract(scope, 1.0, part));
}

// The same at one position, which is exact however long the rows are.
Tensor between(Scope& scope, const Tensor& sorted, double position, Between method) {
  const auto at = [&](double whole) {
    return ops::narrow(scope, sorted, 1, static_cast<int64_t>(whole), 1);
  };
  const double below = std::floor(position), above = std::ceil(position);
  if (method == Between::Nearest) return at(std::nearbyint(position));
  if (method == Between::Lower || below == above) return at(below);
  if (method == Between::Higher) return at(above);
  const double part = method == Between::Midpoint ? 0.5 : position - below;
  return mixed(scope, at(below), at(above), part, 1 - part);
}

tenon_status quantiles(const char* op, const tenon_value* args, bool skips_nan, tenon_value* outs,
                       tenon_err* err) {
  Scope scope(err);
  Between method = Between::Linear;
  TENON_TRY(read_method(op, text_of(args[4]), &method, err));
  Slices slices;
  TENON_TRY(read_slices(scope, op, args[0], args[2], bool_of(args[3]), &slices, err));
  const bool is_number = args[1].tag != TENON_VALUE_TENSOR;
  const double number = is_number ? float_of(args[1]) : 0;
  if (!(number >= 0 && number <= 1))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected q from 0 to 1, got %.10g",
                        number);
  Tensor q = is_number ? Tensor() : operand(scope, args[1]);
  if (q) TENON_TRY(expect_between(TENON_INVALID_ARGUMENT, op, "q", q, 0, 1, err));
  const int32_t dtype = shapes::promoted_dtype(args, {0, 1});
  if (host->dtype_promote(dtype, TENON_DTYPE_F64) != TENON_DTYPE_F64)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected real numbers, got %s",
                        host->dtype_name(dtype));
  Tensor x = ops::cast(scope, slices.x, shapes::float_dtype(dtype));
  if (!scope.ok()) return scope.status();

  Shape shape = q ? sizes_of(q) : Shape();
  shape.insert(shape.end(), slices.kept.begin(), slices.kept.end());
  if (slices.length == 0) return finish(scope, outs, full_with(scope, x, shape, std::nan("")));

  // [slices, length], then [slices, quantiles].
  x = ops::reshape(scope, ops::movedim(scope, x, {slices.axis}, {-1}),
                   {x->numel / slices.length, slices.length});
  Tensor sorted = ops::sort(scope, x, -1);
  Tensor result;
  if (is_number && !skips_nan) {
    result = between(scope, sorted, number * static_cast<double>(slices.length - 1), method);
  } else {
    Tensor position;  // of the largest element, then of the quantiles, [slices, quantiles]
    if (skips_nan) {
      Tensor count = ops::sum(scope, ops::logical_not(scope, ops::isnan(scope, x)), {-1}, true);
      position = ops::cast(scope, ops::maximum(scope, ops::subtract(scope, count, 1), 0), x->dtype);
    } else {
      position = ops::full(scope, {x->shape[0], 1}, static_cast<double>(slices.length - 1),
                           x->dtype, x->device);
    }
    if (q) {
      q = ops::reshape(scope, ops::cast(scope, q, x->dtype), {-1});
      position = ops::multiply(scope, position, q);
    } else {
      position = ops::multiply(scope, position, number);
    }
    result = between(scope, sorted, position, method);
  }
  if (!skips_nan) {
    Tensor largest = ops::narrow(scope, sorted, 1, slices.length - 1, 1);
    result = ops::where(scope, ops::isnan(scope, largest), largest, result);
  }
  return finish(scope, outs, ops::reshape(scope, ops::permute(scope, result, {1, 0}), shape));
}

}  // namespace

TENON_DECOMPOSE(quantile) { return quantiles("quantile", args, false, outs, err); }
TENON_DECOMPOSE(nanquantile) { return quantiles("nanquantile", args, true, outs, err); }

TENON_DECOMPOSE(kthvalue) {
  Scope scope(err);
  Slices slices;
  TENON_TRY(read_slices(scope, "kthvalue", args[0], args[2], bool_of(args[3]), &slices, err));
  const int64_t k = int_of(args[1]);
  if (k < 1 || k > slices.length)
    return shapes::fail(err, TENON_OUT_OF_RANGE, "kthvalue",
                        "expected k from 1 to %lld, the length of axis %d, got %lld",
                        ll(slices.length), slices.axis, ll(k));
  auto sorted = ops::sort_with_indices(scope, slices.x, slices.axis);
  const auto part = [&](const Tensor& from) {
    return ops::reshape(scope, ops::clone(scope, ops::narrow(scope, from, slices.axis, k - 1, 1)),
                        slices.kept);
  };
  return finish(scope, outs, part(sorted.values), part(sorted.indices));
}

// In sorted order the most frequent elements make the longest run, and the last of a run has its
// length; argmax finds the first of equal ones.
TENON_DECOMPOSE(mode) {
  Scope scope(err);
  Slices slices;
  TENON_TRY(read_slices(scope, "mode", args[0], args[1], bool_of(args[2]), &slices, err));
  TENON_TRY(expect_elements("mode", slices, err));
  const int64_t n = slices.length, axis = slices.axis;
  auto sorted = ops::sort_with_indices(scope, slices.x, axis);
  Tensor differs = ops::not_equal(scope, ops::narrow(scope, sorted.values, axis, 1, n - 1),
                                  ops::narrow(scope, sorted.values, axis, 0, n - 1));
  Tensor first =
      ops::ones_like(scope, ops::narrow(scope, sorted.values, axis, 0, 1), TENON_DTYPE_BOOL);
  if (!scope.ok()) return scope.status();
  Shape along(static_cast<size_t>(slices.x->ndim), 1);
  along[static_cast<size_t>(axis)] = n;
  Tensor numbers = ops::reshape(
      scope, ops::arange(scope, n, std::nullopt, 1, TENON_DTYPE_I64, slices.x->device), along);
  Tensor starts = ops::where(scope, ops::concat(scope, {first, differs}, axis), numbers, 0);
  Tensor length = ops::subtract(scope, numbers, ops::cummax(scope, starts, axis).values);
  Tensor best = ops::argmax(scope, length, axis, true);
  return finish(scope, outs, picked(scope, slices, sorted.values, best),
                picked(scope, slices, sorted.indices, best));
}

TENON_DECOMPOSE(reduce_as) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), target = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const int32_t added = x->ndim - target->ndim;
  std::vector<int64_t> axes;
  bool fits = added >= 0;
  for (int32_t axis = 0; fits && axis < x->ndim; ++axis) {
    const int64_t wanted = axis < added ? 1 : target->shape[axis - added];
    if (axis >= added && wanted == x->shape[axis]) continue;
    fits = wanted == 1;
    axes.push_back(axis);
  }
  if (!fits)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "reduce_as",
                        "expected a target whose shape broadcasts to %s, got %s",
                        shape_text(*x.get()).c_str(), shape_text(*target.get()).c_str());
  if (axes.empty()) return finish(scope, outs, ops::clone(scope, x));
  Tensor result = ops::sum(scope, x, list_of(axes));
  if (scope.ok() && result->dtype != x->dtype) result = ops::cast(scope, result, x->dtype);
  return finish(scope, outs, ops::reshape(scope, result, sizes_of(target)));
}

}  // namespace tenon::standard_ops
