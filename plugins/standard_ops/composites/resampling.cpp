// SPDX-License-Identifier: Apache-2.0
// Resizing: each axis by a table that lists, for every new element, the old elements that it is the
// weighted sum of. The host makes the tables, in float64.
#include <tenon/ops/host_values.hpp>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// How the elements of one axis lie on those of another.
struct Grid {
  int64_t extent, count;  // elements before and after
  double factor;          // new elements per old one, if the caller said so; else 0
  bool align_corners;

  // Old elements per new one; none where one new element lies on the first corner.
  double step() const {
    if (align_corners)
      return count > 1 ? static_cast<double>(extent - 1) / static_cast<double>(count - 1) : 0;
    return factor > 0 ? 1 / factor : static_cast<double>(extent) / static_cast<double>(count);
  }
  // Where element `i` lies among the old ones. Multiplied before the division: where the grids
  // coincide, no rounding is left as a weight.
  double position(int64_t i) const {
    const double at = static_cast<double>(i);
    if (align_corners)
      return at * static_cast<double>(extent - 1) /
             static_cast<double>(std::max<int64_t>(count - 1, 1));
    if (factor > 0) return (at + 0.5) / factor - 0.5;
    return (at + 0.5) * static_cast<double>(extent) / static_cast<double>(count) - 0.5;
  }
  int64_t clamp(double at) const {
    return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(extent - 1)));
  }
  // The old element that covers the start of a new one, or its centre.
  int64_t nearest(int64_t i, double offset) const {
    const double at = static_cast<double>(i) + offset;
    return clamp(std::floor(
        factor > 0 ? at / factor : at * static_cast<double>(extent) / static_cast<double>(count)));
  }
};

// `taps` old elements and their weights for every new element.
struct Table {
  int64_t taps;
  std::vector<int64_t> index;
  std::vector<double> weight;

  void add(int64_t i, double w) {
    index.push_back(i);
    weight.push_back(w);
  }
  // Fills a row up to `taps` with elements that do not count.
  void fill(int64_t row) {
    while (static_cast<int64_t>(index.size()) < (row + 1) * taps) add(index.back(), 0);
  }
};

Table linear_table(const Grid& grid) {
  Table table = {2, {}, {}};
  for (int64_t i = 0; i < grid.count; ++i) {
    const double at = std::clamp(grid.position(i), 0.0, static_cast<double>(grid.extent - 1));
    const double low = std::floor(at);
    table.add(grid.clamp(low), 1 - (at - low));
    table.add(grid.clamp(low + 1), at - low);
  }
  return table;
}

// The kernel of cubic convolution (Keys, 1981).
double cubic(double distance, double a) {
  const double s = std::abs(distance);
  if (s <= 1) return ((a + 2) * s - (a + 3)) * s * s + 1;
  return s < 2 ? ((a * s - 5 * a) * s + 8 * a) * s - 4 * a : 0;
}

Table cubic_table(const Grid& grid) {
  Table table = {4, {}, {}};
  for (int64_t i = 0; i < grid.count; ++i) {
    const double at = grid.position(i), base = std::floor(at);
    for (int k = -1; k <= 2; ++k) table.add(grid.clamp(base + k), cubic(at - base - k, -0.75));
  }
  return table;
}

// A triangle or a cubic kernel, as wide as a new element where that is larger than an old one.
Table antialias_table(const Grid& grid, bool is_cubic) {
  const double step = grid.step(), width = std::max(step, 1.0);
  const double radius = (is_cubic ? 2 : 1) * width;
  Table table = {std::min(static_cast<int64_t>(2 * std::ceil(radius)) + 1, grid.extent), {}, {}};
  for (int64_t i = 0; i < grid.count; ++i) {
    const double center = step * (static_cast<double>(i) + 0.5);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - radius + 0.5), 0);
    const int64_t last = std::min(static_cast<int64_t>(center + radius + 0.5), grid.extent);
    const size_t row = table.weight.size();
    double total = 0;
    for (int64_t k = first; k < last; ++k) {
      const double distance = (static_cast<double>(k) - center + 0.5) / width;
      const double weight =
          is_cubic ? cubic(distance, -0.5) : std::max(1 - std::abs(distance), 0.0);
      table.add(k, weight);
      total += weight;
    }
    if (total != 0)
      for (size_t k = row; k < table.weight.size(); ++k) table.weight[k] /= total;
    if (first >= last) table.add(grid.extent - 1, 1);
    table.fill(i);
  }
  return table;
}

// Means of the windows of adaptive_avg_pool2d.
Table area_table(const Grid& grid) {
  const auto begin = [&](int64_t i) { return i * grid.extent / grid.count; };
  const auto end = [&](int64_t i) { return (i * grid.extent + grid.count - 1) / grid.count; };
  Table table = {0, {}, {}};
  for (int64_t i = 0; i < grid.count; ++i) table.taps = std::max(table.taps, end(i + 1) - begin(i));
  for (int64_t i = 0; i < grid.count; ++i) {
    const int64_t length = end(i + 1) - begin(i);
    for (int64_t k = 0; k < length; ++k) table.add(begin(i) + k, 1 / static_cast<double>(length));
    table.fill(i);
  }
  return table;
}

Tensor resize_by(Scope& scope, const Tensor& x, int axis, const Grid& grid, const Table& table) {
  if (!scope.ok()) return {};
  const Shape shape = {grid.count, table.taps};
  const int32_t dtype = x->dtype == TENON_DTYPE_F64 ? TENON_DTYPE_F64 : TENON_DTYPE_F32;
  Tensor index = ops::reshape(scope, int_tensor(scope, table.index, x->device), shape);
  Tensor weight = ops::reshape(scope, float_tensor(scope, table.weight, dtype, x->device), shape);
  return ops::resample(scope, x, index, weight, axis);
}

Tensor resize_nearest(Scope& scope, const Tensor& x, int axis, const Grid& grid, double offset) {
  if (!scope.ok()) return {};
  std::vector<int64_t> index;
  for (int64_t i = 0; i < grid.count; ++i) index.push_back(grid.nearest(i, offset));
  return ops::index_select(scope, x, int_tensor(scope, index, x->device), axis);
}

Tensor resize_axis(Scope& scope, const Tensor& x, int axis, const Grid& grid, std::string_view mode,
                   bool antialias) {
  if (mode == "nearest") return resize_nearest(scope, x, axis, grid, 0);
  if (mode == "nearest-exact") return resize_nearest(scope, x, axis, grid, 0.5);
  const bool is_cubic = mode == "bicubic";
  return resize_by(scope, x, axis, grid,
                   mode == "area" ? area_table(grid)
                   : antialias    ? antialias_table(grid, is_cubic)
                   : is_cubic     ? cubic_table(grid)
                                  : linear_table(grid));
}

tenon_status expect_dtype_of_mode(const char* op, const Tensor& x, std::string_view mode,
                                  tenon_err* err) {
  if (mode.starts_with("nearest") || x->dtype > TENON_DTYPE_I64) return TENON_OK;
  return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                      "expected a floating x for mode '%.*s', got %s; convert it with "
                      ".to(float32), or use mode 'nearest'",
                      static_cast<int>(mode.size()), mode.data(), host->dtype_name(x->dtype));
}

tenon_status expect_elements(const char* op, const Tensor& x, tenon_err* err) {
  for (int axis = 2; axis < x->ndim; ++axis)
    if (x->shape[axis] < 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected an image with elements, got shape %s",
                          shape_text(*x.get()).c_str());
  return TENON_OK;
}

// The host makes tables of the length of the result. A result that is larger than its input is
// allocated first, so that one too large for memory fails before that.
bool image_fits(Scope& scope, const Tensor& x, const Shape& size) {
  Shape shape = {x->shape[0], x->shape[1]};
  shape.insert(shape.end(), size.begin(), size.end());
  bool grows = false;
  for (int axis = 2; axis < x->ndim; ++axis)
    grows |= shape[static_cast<size_t>(axis)] > x->shape[axis];
  if (grows) ops::empty(scope, shape, x->dtype, x->device);
  return scope.ok();
}

bool is_mode_for(std::string_view mode, int spatial) {
  if (mode == "nearest" || mode == "nearest-exact" || mode == "area") return true;
  return spatial == 1   ? mode == "linear"
         : spatial == 2 ? mode == "bilinear" || mode == "bicubic"
                        : mode == "trilinear";
}

constexpr const char* kModes[] = {"'linear'", "'bilinear', 'bicubic'", "'trilinear'"};

// The extents that `scale_factor` leads to, and the factor of each axis.
tenon_status read_factors(const Tensor& x, const tenon_value& given, Shape* size,
                          std::vector<double>* factors, tenon_err* err) {
  const char* op = "interpolate";
  const size_t spatial = static_cast<size_t>(x->ndim - 2);
  std::vector<double> list;
  if (given.tag == TENON_VALUE_INTS)
    list.assign(ints_of(given).begin(), ints_of(given).end());
  else if (given.tag == TENON_VALUE_INT)
    list = {static_cast<double>(int_of(given))};
  else
    list.assign(tenon_arg_floats(&given), tenon_arg_floats(&given) + tenon_arg_count(&given));
  if (list.size() != 1 && list.size() != spatial)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected scale_factor to be one number or %zu, got %zu", spatial,
                        list.size());
  for (size_t i = 0; i < spatial; ++i) {
    const double factor = list.size() == 1 ? list.front() : list[i];
    const double count = std::floor(static_cast<double>(x->shape[i + 2]) * factor);
    if (!(count >= 1 && count < 0x1p62))
      return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                          "expected scale factors that leave at least one element of %lld, got %g",
                          ll(x->shape[i + 2]), factor);
    factors->push_back(factor);
    size->push_back(static_cast<int64_t>(count));
  }
  return TENON_OK;
}

tenon_status read_size(const Tensor& x, Ints given, Shape* size, tenon_err* err) {
  const size_t spatial = static_cast<size_t>(x->ndim - 2);
  if (given.size() != 1 && given.size() != spatial)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "interpolate",
                        "expected size to be one number or %zu, got %zu", spatial, given.size());
  for (size_t i = 0; i < spatial; ++i) size->push_back(given.size() == 1 ? given[0] : given[i]);
  for (int64_t count : *size)
    if (count < 1)
      return shapes::fail(err, TENON_INVALID_ARGUMENT, "interpolate",
                          "expected size of at least 1, got %s", list_text(given).c_str());
  return TENON_OK;
}

}  // namespace

TENON_DECOMPOSE(interpolate) {
  const char* op = "interpolate";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  if (x->ndim < 3 || x->ndim > 5)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected x to have 3 to 5 axes, [batch, channels, ...], got shape %s; add "
                        "or drop axes with reshape",
                        shape_text(*x.get()).c_str());
  const std::string_view mode = text_of(args[3]);
  const int spatial = x->ndim - 2;
  if (!is_mode_for(mode, spatial))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected mode 'nearest', 'nearest-exact', 'area' or %s for an x of %d "
                        "axes, got '%.*s'",
                        kModes[spatial - 1], x->ndim, static_cast<int>(mode.size()), mode.data());
  const bool align_corners = bool_of(args[4]), antialias = bool_of(args[5]);
  if (antialias && mode != "bilinear" && mode != "bicubic")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected mode 'bilinear' or 'bicubic' for antialias, got '%.*s'",
                        static_cast<int>(mode.size()), mode.data());
  if (is_none(args[1]) == is_none(args[2]))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected one of size and scale_factor, got %s",
                        is_none(args[1]) ? "neither" : "both");
  TENON_TRY(expect_elements(op, x, err));
  TENON_TRY(expect_dtype_of_mode(op, x, mode, err));
  Shape size;
  std::vector<double> factors;
  if (is_none(args[1])) {
    TENON_TRY(read_factors(x, args[2], &size, &factors, err));
  } else {
    TENON_TRY(read_size(x, ints_of(args[1]), &size, err));
    factors.assign(size.size(), 0);
  }
  if (!image_fits(scope, x, size)) return scope.status();
  // The windows of 'area' follow from the extents alone.
  for (size_t i = 0; i < size.size() && scope.ok(); ++i) {
    const int axis = 2 + static_cast<int>(i);
    const Grid grid = {x->shape[axis], size[i], factors[i], align_corners};
    x = resize_axis(scope, x, axis, grid, mode, antialias);
  }
  return finish(scope, outs, x);
}

TENON_DECOMPOSE(interpolate2d) {
  const char* op = "interpolate2d";
  Scope scope(err);
  Tensor x = operand(scope, args[0]);
  if (!scope.ok()) return scope.status();
  const std::string_view mode = text_of(args[2]);
  int64_t size[2];
  TENON_TRY(expect_ndim(op, "x", *x.get(), 4, "[batch, channels, height, width]", err));
  TENON_TRY(read_pair(op, "output_size", ints_of(args[1]), 1, size, err));
  TENON_TRY(expect_elements(op, x, err));
  if (!image_fits(scope, x, {size[0], size[1]})) return scope.status();
  if (mode != "nearest" && mode != "bilinear")
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected mode 'nearest' or 'bilinear', got '%.*s'",
                        static_cast<int>(mode.size()), mode.data());
  TENON_TRY(expect_dtype_of_mode(op, x, mode, err));
  for (int side = 0; side < 2 && scope.ok(); ++side) {
    const Grid grid = {x->shape[2 + side], size[side], 0, bool_of(args[3])};
    x = resize_axis(scope, x, 2 + side, grid, mode, false);
  }
  return finish(scope, outs, x);
}

namespace {

// Column k of a [count, taps] table, its weights as they broadcast beside axis `axis`.
struct Tap {
  Tensor index, weight;
  Tap(Scope& scope, const Tensor& indices, const Tensor& weights, int64_t k, int32_t ndim,
      int32_t axis)
      : index(ops::select(scope, indices, 1, k)) {
    if (!scope.ok()) return;
    Shape beside(static_cast<size_t>(ndim), 1);
    beside[static_cast<size_t>(axis)] = indices->shape[0];
    weight = ops::reshape(scope, ops::select(scope, weights, 1, k), beside);
  }
  Tensor weighted(Scope& scope, const Tensor& x) const {
    return ops::where(scope, ops::equal(scope, weight, 0), 0, ops::multiply(scope, x, weight));
  }
};

}  // namespace

TENON_DECOMPOSE(resample) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("resample", int_of(args[3]), x->ndim, &axis, err));
  Shape shape = sizes_of(x);
  shape[static_cast<size_t>(axis)] = index->shape[0];
  Tensor total = full_with(scope, x, shape, 0);
  for (int64_t k = 0; k < index->shape[1] && scope.ok(); ++k) {
    const Tap tap(scope, index, weight, k, x->ndim, axis);
    Tensor part = tap.weighted(scope, ops::index_select(scope, x, tap.index, axis));
    total = k == 0 ? part : ops::add(scope, total, part);
  }
  return finish(scope, outs, total);
}

TENON_DECOMPOSE(resample_grad) {
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), index = operand(scope, args[1]),
         weight = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  int32_t axis;
  TENON_TRY(resolve_axis("resample_grad", int_of(args[4]), grad_out->ndim, &axis, err));
  Shape shape = sizes_of(grad_out);
  shape[static_cast<size_t>(axis)] = int_of(args[3]);
  Tensor total = full_with(scope, grad_out, shape, 0);
  for (int64_t k = 0; k < index->shape[1] && scope.ok(); ++k) {
    const Tap tap(scope, index, weight, k, grad_out->ndim, axis);
    total = ops::index_add(scope, total, tap.index, tap.weighted(scope, grad_out), axis);
  }
  return finish(scope, outs, total);
}

}  // namespace tenon::standard_ops
