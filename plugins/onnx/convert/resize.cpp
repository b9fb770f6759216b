// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample: along each axis weighted sums of a few elements, whose indices and weights are known.
#include <algorithm>
#include <cmath>

#include "convert/converters.hpp"

namespace tenon::onnx {
namespace {

constexpr int64_t kMaxWeights = int64_t{1} << 24;  // of one axis

struct Method {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside = false, is_antialiased = false;
  double extrapolation = 0;
};

struct Axis {
  int64_t size, result;  // elements before and after
  double scale;
  double start = 0, end = 1;  // part of the axis that is resized
};

// Where element `x` of the result is in the input.
double coordinate(const Method& method, const Axis& axis, double x) {
  // The length before it is rounded down.
  const auto size = static_cast<double>(axis.size), length = axis.scale * size;
  if (method.coordinates == "asymmetric") return x / axis.scale;
  if (method.coordinates == "half_pixel") return (x + 0.5) / axis.scale - 0.5;
  if (method.coordinates == "pytorch_half_pixel")
    return axis.result > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
  if (method.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (method.coordinates == "align_corners") return length == 1 ? 0 : x * (size - 1) / (length - 1);
  if (method.coordinates == "half_pixel_symmetric")
    return size / 2 * (1 - static_cast<double>(axis.result) / length) + (x + 0.5) / axis.scale -
           0.5;
  // tf_crop_and_resize
  if (length == 1) return 0.5 * (axis.start + axis.end) * (size - 1);
  return axis.start * (size - 1) + x * (axis.end - axis.start) * (size - 1) / (length - 1);
}

double nearest(const std::string& mode, double x) {
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return mode == "floor" ? std::floor(x) : std::ceil(x);
}

// Of an element at distance `t` (Keys, 1981, "Cubic convolution interpolation for digital image processing").
double filter(const Method& method, double t) {
  t = std::abs(t);
  if (method.mode != "cubic") return std::max(0.0, 1 - t);
  const double a = method.cubic;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((t - 5) * t + 8) * t * a - 4 * a : 0;
}

struct Weights {
  int64_t taps = 0;
  Ints index;     // [result, taps]
  Floats weight;  // likewise
  std::vector<bool> is_outside;
};

Weights weights_of(const Method& method, const Axis& axis) {
  Weights weights;
  const bool is_nearest = method.mode == "nearest";
  const double stretch = method.is_antialiased ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = (method.mode == "cubic" ? 2 : 1) / stretch;
  weights.taps = is_nearest ? 1 : 2 * static_cast<int64_t>(std::ceil(reach));
  if (axis.result > kMaxWeights / weights.taps)
    throw Error(TENON_UNSUPPORTED, "expected at most 2^24 weights for an axis, got more");
  for (int64_t i = 0; i < axis.result; ++i) {
    const double x = coordinate(method, axis, static_cast<double>(i));
    weights.is_outside.push_back(x < 0 || x > static_cast<double>(axis.size - 1));
    const auto inside = [&](double place) {
      return static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(axis.size - 1)));
    };
    if (is_nearest) {
      weights.index.push_back(inside(nearest(method.nearest, x)));
      weights.weight.push_back(1);
      continue;
    }
    const double first = std::floor(x) - static_cast<double>(weights.taps / 2 - 1);
    double total = 0;
    for (int64_t k = 0; k < weights.taps; ++k) {
      const double place = first + static_cast<double>(k);
      const bool is_left_out =
          method.excludes_outside && (place < 0 || place > static_cast<double>(axis.size - 1));
      const double weight = is_left_out ? 0 : filter(method, (place - x) * stretch);
      weights.index.push_back(inside(place));
      weights.weight.push_back(weight);
      total += weight;
    }
    if (method.excludes_outside || method.is_antialiased)
      for (int64_t k = 0; k < weights.taps; ++k)
        weights.weight[weights.weight.size() - 1 - static_cast<size_t>(k)] /= total;
  }
  return weights;
}

Tensor resize_axis(Conversion& c, const Tensor& x, int64_t axis, const Weights& weights,
                   bool is_nearest) {
  if (is_nearest) return c.call("index_select", {x, known_ints(weights.index), axis});
  const auto result = static_cast<int64_t>(weights.is_outside.size());
  const bool is_wide = x->dtype == TENON_DTYPE_F64;
  Tensor weight = make_known(TENON_DTYPE_F64, {result, weights.taps});
  std::copy(weights.weight.begin(), weights.weight.end(), static_cast<double*>(weight->data));
  weight = c.cast(weight, is_wide ? TENON_DTYPE_F64 : TENON_DTYPE_F32);
  const Tensor index = c.call("reshape", {known_ints(weights.index), Ints{result, weights.taps}});
  return c.call("resample", {x, index, weight, axis});
}

// `axes`: of x, in the order of `sizes`.
Tensor resize_all(Conversion& c, Tensor x, const Method& method, const Ints& axes,
                  const std::vector<Axis>& sizes) {
  static constexpr const char* kCoordinates[] = {
      "asymmetric",    "half_pixel",           "pytorch_half_pixel", "tf_half_pixel_for_nn",
      "align_corners", "half_pixel_symmetric", "tf_crop_and_resize"};
  static constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                             "ceil"};
  const bool is_nearest = method.mode == "nearest";
  if (std::find(std::begin(kCoordinates), std::end(kCoordinates), method.coordinates) ==
      std::end(kCoordinates))
    c.refuse("coordinate_transformation_mode \"" + method.coordinates + "\"");
  if (is_nearest &&
      std::find(std::begin(kNearest), std::end(kNearest), method.nearest) == std::end(kNearest))
    c.refuse("nearest_mode \"" + method.nearest + "\"");
  if (!is_nearest && method.mode != "linear" && method.mode != "cubic")
    c.refuse("mode \"" + method.mode + "\"");
  if (!is_nearest && (x->dtype < TENON_DTYPE_F16 || x->dtype > TENON_DTYPE_F64))
    c.refuse("mode \"" + method.mode + "\" of " + host->dtype_name(x->dtype) +
             "; expected floating numbers");
  const bool crops = method.coordinates == "tf_crop_and_resize";
  Tensor outside;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = sizes[i];
    if (axis.size < 1 || axis.result < 0 || !(axis.scale > 0) || !std::isfinite(axis.scale))
      c.fail("expected sizes of at least 1 and positive scales");
    if (axis.size == axis.result && axis.scale == 1 && !crops) continue;
    const Weights weights = weights_of(method, axis);
    x = resize_axis(c, x, axes[i], weights, is_nearest);
    if (!crops) continue;
    Ints shape(static_cast<size_t>(x->ndim), 1);
    shape[static_cast<size_t>(axes[i])] = axis.result;
    Tensor mask = make_known(TENON_DTYPE_BOOL, shape);
    for (size_t k = 0; k < weights.is_outside.size(); ++k)
      static_cast<bool*>(mask->data)[k] = weights.is_outside[k];
    outside = outside ? c.call("logical_or", {outside, mask}) : mask;
  }
  return outside ? c.call("where", {outside, c.call("full_like", {x, method.extrapolation}), x})
                 : x;
}

int64_t rounded_down(double size) {
  if (!(size >= 0 && size < 9e15)) throw Error(TENON_INVALID_ARGUMENT, "a size is out of range");
  return static_cast<int64_t>(std::floor(size));
}

}  // namespace

Values convert_resize(Conversion& c) {
  const Tensor& x = c.tensor("X");
  Method method;
  method.mode = c.text("mode");
  if (method.mode == "bilinear") method.mode = "linear";
  const bool is_first = c.schema.since == 10;
  method.coordinates = is_first ? "asymmetric" : c.text("coordinate_transformation_mode");
  method.nearest = is_first ? "floor" : c.text("nearest_mode");
  method.cubic = c.number("cubic_coeff_a", -0.75);
  method.excludes_outside = c.integer("exclude_outside") != 0;
  method.is_antialiased = c.integer("antialias") != 0;
  method.extrapolation = c.number("extrapolation_value");
  if (method.is_antialiased && method.mode == "nearest") c.refuse("antialias of mode \"nearest\"");
  Ints axes = c.integers("axes");
  if (!c.has_attribute("axes"))
    for (int32_t i = 0; i < x->ndim; ++i) axes.push_back(i);
  for (int64_t& axis : axes) axis = normal_axis(axis, x->ndim, "axes");
  std::vector<Axis> sizes;
  Floats scales;
  if (c.has("scales")) scales = floats_of(c.input("scales"), "scales");
  if (!scales.empty()) {
    if (scales.size() != axes.size()) c.fail("scales: expected " + std::to_string(axes.size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t size = x->shape[axes[i]];
      sizes.push_back({size, rounded_down(static_cast<double>(size) * scales[i]), scales[i]});
      // The first version did not say which neighbour is meant.
      const double step = 1 / scales[i];
      if (is_first && method.mode == "nearest" && scales[i] < 1 && step != std::floor(step))
        c.refuse(
            "scales of opset 10 that are below 1 and no fraction 1 / n: which element is the "
            "nearest was not defined");
    }
  } else {
    const Ints wanted = ints_of(c.input("sizes"), "sizes");
    if (wanted.size() != axes.size()) c.fail("sizes: expected " + std::to_string(axes.size()));
    const std::string policy = c.text("keep_aspect_ratio_policy");
    double common = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t size = x->shape[axes[i]];
      const double scale = static_cast<double>(wanted[i]) / static_cast<double>(size);
      sizes.push_back({size, wanted[i], scale});
      if (i == 0) common = scale;
      common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
    }
    if (policy == "not_larger" || policy == "not_smaller")
      for (Axis& axis : sizes) {
        axis.scale = common;
        axis.result = rounded_down(common * static_cast<double>(axis.size) + 0.5);
      }
  }
  if (method.coordinates == "tf_crop_and_resize") {
    const Floats roi = floats_of(c.input("roi"), "roi");
    if (roi.size() != 2 * axes.size()) c.fail("roi: expected two numbers for each axis");
    for (size_t i = 0; i < axes.size(); ++i) {
      sizes[i].start = roi[i];
      sizes[i].end = roi[axes.size() + i];
    }
  }
  return {resize_all(c, x, method, axes, sizes)};
}

Values convert_upsample(Conversion& c) {
  const Tensor& x = c.tensor("X");
  Floats scales;
  if (c.schema.since == 1)
    scales = {1, 1, c.number("height_scale"), c.number("width_scale")};
  else
    scales = c.schema.since < 9 ? floats_of(c.attribute("scales"), "scales")
                                : floats_of(c.input("scales"), "scales");
  if (scales.size() != static_cast<size_t>(x->ndim)) c.fail("scales: expected one for each axis");
  Method method;
  method.mode = c.text("mode") == "nearest" ? "nearest" : "linear";
  method.coordinates = "asymmetric";
  method.nearest = "floor";
  Ints axes;
  std::vector<Axis> sizes;
  for (int32_t i = 0; i < x->ndim; ++i) {
    const double scale = scales[static_cast<size_t>(i)];
    if (scale < 1) c.fail("expected scales of at least 1, got " + std::to_string(scale));
    axes.push_back(i);
    sizes.push_back({x->shape[i], rounded_down(static_cast<double>(x->shape[i]) * scale), scale});
  }
  return {resize_all(c, x, method, axes, sizes)};
}

}  // namespace tenon::onnx
