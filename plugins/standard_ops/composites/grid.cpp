// SPDX-License-Identifier: Apache-2.0
// Images sampled at points: from coordinates to elements and weights, which are gathered and added.
#include "composites/neighbours.hpp"

#include <limits>

namespace tenon::standard_ops {
namespace {

// The centres of `extent` elements from -1 to 1, or with `corners` the first one's to the last's.
std::vector<double> centres(int64_t extent, bool corners) {
  std::vector<double> points;
  for (int64_t i = 0; i < extent; ++i) {
    const double whole = corners ? static_cast<double>(extent - 1) : static_cast<double>(extent);
    const double at = static_cast<double>(corners ? 2 * i : 2 * i + 1);
    points.push_back(whole > 0 ? at / whole - 1 : 0);
  }
  return points;
}

}  // namespace

TENON_DECOMPOSE(affine_grid) {
  const char* op = "affine_grid";
  Scope scope(err);
  Tensor theta = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const Ints size = ints_of(args[1]);
  const int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  if (!is_real_floating(theta->dtype))
    return shapes::fail(err, TENON_TYPE_MISMATCH, op, "expected a floating theta, got %s",
                        host->dtype_name(theta->dtype));
  if (spatial < 2 || spatial > 3)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected size [N, C, H, W] or [N, C, D, H, W], got %s",
                        list_text(size).c_str());
  const int64_t wanted[] = {size[0], spatial, spatial + 1};
  if (!std::ranges::equal(shape_of(*theta.get()), wanted))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected theta of shape %s for size %s, got %s", list_text(wanted).c_str(),
                        list_text(size).c_str(), shape_text(*theta.get()).c_str());
  const Ints extents = size.subspan(2);
  for (int64_t extent : extents)
    if (extent < 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected extents of at least 1, got %s",
                          list_text(size).c_str());
  // The result first: one too large for memory fails before the loops over its extents.
  Shape shape = {size[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(spatial);
  ops::empty(scope, shape, theta->dtype, theta->device);
  std::vector<Tensor> coordinates;
  for (int64_t i = spatial - 1; i >= 0 && scope.ok(); --i) {
    Shape beside(extents.size(), 1);
    beside[static_cast<size_t>(i)] = extents[static_cast<size_t>(i)];
    Tensor line = float_tensor(scope, centres(extents[static_cast<size_t>(i)], bool_of(args[2])),
                               theta->dtype, theta->device);
    coordinates.push_back(ops::expand(scope, ops::reshape(scope, line, beside), list_of(extents)));
  }
  if (!scope.ok()) return scope.status();
  coordinates.push_back(full_with(scope, theta, extents, 1));
  Tensor points = ops::reshape(scope, ops::stack(scope, coordinates, -1), {-1, spatial + 1});
  Tensor moved = ops::matmul(scope, points, ops::transpose(scope, theta));
  return finish(scope, outs, ops::reshape(scope, moved, shape));
}

namespace {

enum class Padding { kZeros, kBorder, kReflection };

// One spatial axis of the image, and the points' positions along it, in elements.
struct Axis {
  int64_t extent;
  bool corners;
  Padding padding;

  // Coordinates from -1 to 1 become positions from 0 to extent - 1, or to the edges of elements.
  Tensor position(Scope& scope, Tensor at) const {
    const double n = static_cast<double>(extent);
    at = ops::where(scope, ops::isnan(scope, at), -1, at);
    if (padding == Padding::kReflection) at = ops::where(scope, ops::isinf(scope, at), -1, at);
    if (corners) return ops::multiply(scope, ops::add(scope, at, 1), (n - 1) / 2);
    return ops::divide(scope,
                       ops::subtract(scope, ops::multiply(scope, ops::add(scope, at, 1), n), 1), 2);
  }

  // The position inside the image that stands for one outside. Zeros begin one element beyond.
  Tensor padded(Scope& scope, Tensor at) const {
    const double last = static_cast<double>(extent - 1);
    if (padding == Padding::kZeros) return ops::clip(scope, at, -2.0, last + 2);
    if (padding == Padding::kReflection) at = reflected(scope, at);
    return ops::clip(scope, at, 0.0, last);
  }

  Tensor reflected(Scope& scope, const Tensor& at) const {
    const double low = corners ? 0 : -0.5;
    const double span = corners ? static_cast<double>(extent - 1) : static_cast<double>(extent);
    if (span <= 0) return ops::multiply(scope, at, 0);
    Tensor distance = ops::abs(scope, ops::subtract(scope, at, low));
    Tensor turns = ops::floor(scope, ops::divide(scope, distance, span));
    Tensor rest = ops::subtract(scope, distance, ops::multiply(scope, turns, span));
    Tensor is_odd = ops::not_equal(scope, ops::remainder(scope, turns, 2), 0);
    rest = ops::where(scope, is_odd, ops::subtract(scope, span, rest), rest);
    return ops::add(scope, rest, low);
  }
};

// Cubic convolution (Keys, 1981) with a = -0.75, at a distance from 0 to 1 (near) or from 1 to 2.
Tensor cubic_weight(Scope& scope, const Tensor& distance, bool is_near) {
  const auto times = [&](const Tensor& x) { return ops::multiply(scope, x, distance); };
  constexpr double a = -0.75;
  if (is_near) {
    Tensor sum = ops::subtract(scope, ops::multiply(scope, distance, a + 2), a + 3);
    return ops::add(scope, times(times(sum)), 1);
  }
  Tensor sum = ops::subtract(scope, ops::multiply(scope, distance, a), 5 * a);
  return ops::subtract(scope, times(ops::add(scope, times(sum), 8 * a)), 4 * a);
}

std::vector<Neighbour> neighbours(Scope& scope, const Axis& axis, const Tensor& coordinate,
                                  std::string_view mode) {
  Tensor at = axis.position(scope, coordinate);
  const bool is_bounded = axis.padding == Padding::kZeros;
  if (mode == "bicubic") {
    // Far outside there are zeros; a finite distance keeps the weights finite.
    if (axis.padding != Padding::kReflection)
      at = ops::clip(scope, at, -3.0, static_cast<double>(axis.extent) + 2);
    Tensor base = ops::floor(scope, at), rest = ops::subtract(scope, at, base);
    std::vector<Neighbour> four;
    for (int k = -1; k <= 2; ++k) {
      Tensor place = ops::add(scope, base, k);
      if (axis.padding == Padding::kReflection) place = axis.padded(scope, place);
      Tensor distance = k <= 0 ? ops::subtract(scope, rest, k) : ops::subtract(scope, k, rest);
      four.push_back(neighbour(scope, axis.extent, is_bounded, place,
                               cubic_weight(scope, distance, k == 0 || k == 1)));
    }
    return four;
  }
  at = axis.padded(scope, at);
  if (mode == "nearest")
    return {neighbour(scope, axis.extent, is_bounded, ops::round(scope, at), {})};
  return linear_neighbours(scope, axis.extent, is_bounded, at);
}

tenon_status check_sample(const Tensor& x, const Tensor& grid, std::string_view mode,
                          tenon_err* err) {
  const char* op = "grid_sample";
  if (x->ndim < 4 || x->ndim > 5 || grid->ndim < 2 || grid->shape[0] != x->shape[0] ||
      grid->shape[grid->ndim - 1] != x->ndim - 2)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x [N, C, H, W] and grid [N, ..., 2], or x [N, C, D, H, W] and "
                        "grid [N, ..., 3], got shapes %s and %s",
                        shape_text(*x.get()).c_str(), shape_text(*grid.get()).c_str());
  if (!is_real_floating(x->dtype) || x->dtype != grid->dtype)
    return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                        "expected x and grid of one floating dtype, got %s and %s; convert with "
                        ".to(dtype)",
                        host->dtype_name(x->dtype), host->dtype_name(grid->dtype));
  for (int axis = 2; axis < x->ndim; ++axis)
    if (x->shape[axis] < 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected an image with elements, got shape %s",
                          shape_text(*x.get()).c_str());
  const bool known = mode == "bilinear" || mode == "nearest" || (mode == "bicubic" && x->ndim == 4);
  if (known) return TENON_OK;
  return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                      "expected mode 'bilinear', 'nearest' or, for images [N, C, H, W], 'bicubic', "
                      "got '%.*s' for shape %s",
                      static_cast<int>(mode.size()), mode.data(), shape_text(*x.get()).c_str());
}

}  // namespace

TENON_DECOMPOSE(grid_sample) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), grid = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  const std::string_view mode = text_of(args[2]), padding_mode = text_of(args[3]);
  TENON_TRY(check_sample(x, grid, mode, err));
  if (padding_mode != "zeros" && padding_mode != "border" && padding_mode != "reflection")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "grid_sample",
                        "expected padding_mode 'zeros', 'border' or 'reflection', got '%.*s'",
                        static_cast<int>(padding_mode.size()), padding_mode.data());
  const Padding padding = padding_mode == "zeros"    ? Padding::kZeros
                          : padding_mode == "border" ? Padding::kBorder
                                                     : Padding::kReflection;
  const Shape shape = sizes_of(x);
  const size_t spatial = shape.size() - 2;
  const Ints extents = Ints(shape).subspan(2);
  Shape result = {shape[0], shape[1]};
  result.insert(result.end(), grid->shape + 1, grid->shape + grid->ndim - 1);
  const int64_t points = product(Ints(result).subspan(2)), elements = product(extents);
  Tensor flat_grid = ops::reshape(scope, grid, {shape[0] * points, static_cast<int64_t>(spatial)});
  std::vector<std::vector<Neighbour>> axes;
  for (size_t k = 0; k < spatial && scope.ok(); ++k) {
    const Axis axis = {extents[k], bool_of(args[4]), padding};
    Tensor coordinate = ops::select(scope, flat_grid, 1, static_cast<int64_t>(spatial - 1 - k));
    axes.push_back(neighbours(scope, axis, coordinate, mode));
  }
  if (!scope.ok()) return scope.status();
  // Channels last: an index then stands for all channels of an element.
  Tensor rows = ops::transpose(scope, ops::reshape(scope, x, {shape[0], shape[1], elements}), 1, 2);
  rows = ops::reshape(scope, rows, {shape[0] * elements, shape[1]});
  Tensor image = numbers_to(scope, shape[0], x);
  Tensor first = ops::multiply(scope, ops::unsqueeze(scope, image, {1}), elements);
  first = ops::reshape(scope, ops::expand(scope, first, {shape[0], points}), {shape[0] * points});
  Tensor sampled = add_neighbours(scope, rows, first, axes, extents);
  // Nowhere is no element: its value is NaN, and not that of the element that stood in for it.
  Tensor nowhere = ops::isnan(scope, flat_grid);
  if (padding == Padding::kReflection)
    nowhere = ops::logical_or(scope, nowhere, ops::isinf(scope, flat_grid));
  sampled = ops::where(scope, ops::any(scope, nowhere, {1}, true),
                       std::numeric_limits<double>::quiet_NaN(), sampled);
  sampled = ops::reshape(scope, sampled, {shape[0], points, shape[1]});
  sampled = ops::contiguous(scope, ops::transpose(scope, sampled, 1, 2));
  return finish(scope, outs, ops::reshape(scope, sampled, result));
}

}  // namespace tenon::standard_ops
