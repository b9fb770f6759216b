// SPDX-License-Identifier: Apache-2.0
// Regions of images: samples and maxima in the bins of boxes, as gathers of rows.
#include "shapes/regions.hpp"
#include "composites/compose.hpp"
#include "composites/data_reads.hpp"

namespace tenon::standard_ops {
namespace {

// The most samples along one side of a bin; boxes whose bins need more are refused.
constexpr int64_t kMaxSamples = 4096;

// Sample `i` of every bin along one axis of the image: two elements and their weights, [K, bins].
struct Samples {
  Tensor low, high, low_weight, high_weight;
};

// One axis of the bins of all boxes.
struct Bins {
  Tensor begin, size;  // of the first bin of each box, [K, 1]
  Tensor grid;         // how many samples a bin has, [K, 1], as floats
  int64_t count, extent;

  Samples sample(Scope& scope, int64_t i) const {
    Tensor bin = numbers_to(scope, count, begin);
    Tensor inside = ops::divide(scope, static_cast<double>(i) + 0.5, grid);
    Tensor at = ops::add(
        scope, begin,
        ops::multiply(scope, ops::add(scope, inside, ops::cast(scope, bin, begin->dtype)), size));
    const double last = static_cast<double>(extent - 1);
    Tensor counts = ops::logical_and(scope, ops::greater_equal(scope, at, -1),
                                     ops::logical_and(scope, ops::less_equal(scope, at, last + 1),
                                                      ops::greater(scope, grid, i)));
    at = ops::where(scope, counts, ops::clip(scope, at, 0.0, last), 0);
    Tensor low = ops::floor(scope, at), rest = ops::subtract(scope, at, low);
    Samples result;
    result.low = ops::cast(scope, low, TENON_DTYPE_I64);
    result.high = ops::clip(scope, ops::add(scope, result.low, 1), nullptr, extent - 1);
    result.low_weight = ops::where(scope, counts, ops::subtract(scope, 1, rest), 0);
    result.high_weight = ops::where(scope, counts, rest, 0);
    return result;
  }
};

struct Regions {
  Bins down, across;
  Tensor image;      // [K, 1, 1], the number of the image times its elements
  Tensor divisor;    // samples in a bin, [K, 1]
  int64_t steps[2];  // how many samples the largest bin has along each side
  int64_t pixels;
};

Tensor box_column(Scope& scope, const Tensor& boxes, int64_t k) {
  return ops::unsqueeze(scope, ops::select(scope, boxes, 1, k), {1});
}

Bins bins_of(Scope& scope, const Tensor& boxes, int side, const RoiAlign& geometry) {
  const double offset = geometry.aligned ? 0.5 : 0;
  const auto scaled = [&](int64_t k) {
    return ops::subtract(scope, ops::multiply(scope, box_column(scope, boxes, k), geometry.scale),
                         offset);
  };
  Tensor begin = scaled(1 - side), extent = ops::subtract(scope, scaled(3 - side), begin);
  if (!geometry.aligned) extent = ops::clip(scope, extent, 1.0, nullptr);
  const double bins = static_cast<double>(geometry.bins[side]);
  Tensor size = ops::divide(scope, extent, bins);
  if (!scope.ok()) return {};
  Tensor grid = geometry.ratio > 0 ? full_with(scope, size, shape_of(*size.get()), geometry.ratio)
                                   : ops::ceil(scope, size);
  // A box that is not finite has no samples.
  grid = ops::where(scope, ops::isfinite(scope, grid), grid, 0);
  return {begin, size, grid, geometry.bins[side], geometry.image[2 + side]};
}

tenon_status read_regions(Scope& scope, const char* op, const Tensor& boxes, const Tensor& index,
                          const RoiAlign& geometry, Regions* out, tenon_err* err) {
  Regions& regions = *out;
  Tensor plain = ops::stop_gradient(scope, boxes);
  regions.down = bins_of(scope, plain, 0, geometry);
  regions.across = bins_of(scope, plain, 1, geometry);
  regions.pixels = geometry.image[2] * geometry.image[3];
  if (!scope.ok()) return scope.status();
  const int64_t images = geometry.image[0];
  Tensor image = as_int64(scope, index);
  image = ops::where(scope, ops::less(scope, image, 0), ops::add(scope, image, images), image);
  regions.image = ops::multiply(scope, ops::unsqueeze(scope, image, {1, 2}), regions.pixels);
  Tensor samples = ops::multiply(scope, regions.down.grid, regions.across.grid);
  regions.divisor = ops::clip(scope, samples, 1.0, nullptr);
  for (int side = 0; side < 2 && scope.ok(); ++side) {
    const Tensor& grid = side == 0 ? regions.down.grid : regions.across.grid;
    regions.steps[side] = geometry.ratio;
    if (geometry.ratio > 0 || grid->numel == 0) continue;
    // Converted there: the device may have no float64.
    Tensor most = ops::cast(
        scope, ops::to_device(scope, ops::max(scope, grid), host->device_host()), TENON_DTYPE_F64);
    if (!has_elements(scope, most)) return scope.status();
    const double number = *static_cast<const double*>(most->data);
    if (number > static_cast<double>(kMaxSamples))
      return shapes::fail(err, TENON_UNSUPPORTED, op,
                          "expected bins of at most %lld elements, got %g; pass sampling_ratio",
                          ll(kMaxSamples), number);
    regions.steps[side] = static_cast<int64_t>(number);
  }
  return scope.status();
}

// Calls f(index, weight), both [K * bins], for each sample and each of its four elements; index
// counts through all images' elements.
template <class F>
void for_samples(Scope& scope, const Regions& regions, F&& f) {
  for (int64_t i = 0; i < regions.steps[0] && scope.ok(); ++i) {
    const Samples down = regions.down.sample(scope, i);
    for (int64_t j = 0; j < regions.steps[1] && scope.ok(); ++j) {
      const Samples across = regions.across.sample(scope, j);
      for (int corner = 0; corner < 4; ++corner) {
        const Tensor& row = corner < 2 ? down.low : down.high;
        const Tensor& place = corner % 2 == 0 ? across.low : across.high;
        Tensor index = ops::add(
            scope, ops::multiply(scope, ops::unsqueeze(scope, row, {2}), regions.across.extent),
            ops::unsqueeze(scope, place, {1}));
        index = ops::add(scope, index, regions.image);
        Tensor weight = ops::multiply(
            scope, ops::unsqueeze(scope, corner < 2 ? down.low_weight : down.high_weight, {2}),
            ops::unsqueeze(scope, corner % 2 == 0 ? across.low_weight : across.high_weight, {1}));
        weight = ops::divide(scope, weight, ops::unsqueeze(scope, regions.divisor, {2}));
        f(ops::reshape(scope, index, {-1}), ops::reshape(scope, weight, {-1, 1}));
      }
    }
  }
}

Tensor weighted(Scope& scope, const Tensor& x, const Tensor& weight) {
  return ops::where(scope, ops::equal(scope, weight, 0), 0, ops::multiply(scope, x, weight));
}

}  // namespace

TENON_DECOMPOSE(roi_align) {
  const char* op = "roi_align";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), boxes = operand(scope, args[1]),
         index = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const Shape image = sizes_of(x);
  RoiAlign geometry;
  TENON_TRY(read_roi_align(op, args + 3, image, &geometry, err));
  const int64_t count = boxes->shape[0], height = geometry.bins[0], width = geometry.bins[1];
  Tensor total = full_with(scope, x, Shape{count * height * width, image[1]}, 0);
  if (total && total->numel > 0) {
    Regions regions;
    TENON_TRY(read_regions(scope, op, boxes, index, geometry, &regions, err));
    Tensor rows = ops::reshape(scope, ops::permute(scope, x, {0, 2, 3, 1}), {-1, image[1]});
    for_samples(scope, regions, [&](const Tensor& at, const Tensor& weight) {
      total =
          ops::add(scope, total, weighted(scope, ops::index_select(scope, rows, at, 0), weight));
    });
  }
  total = ops::reshape(scope, total, {count, height, width, image[1]});
  return finish(scope, outs, ops::contiguous(scope, ops::permute(scope, total, {0, 3, 1, 2})));
}

TENON_DECOMPOSE(roi_align_grad) {
  const char* op = "roi_align_grad";
  Scope scope(err);
  Tensor grad_out = operand(scope, args[0]), boxes = operand(scope, args[1]),
         index = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  const Shape image = to_vector(ints_of(args[3]));
  RoiAlign geometry;
  TENON_TRY(read_roi_align_grad(op, args, image, &geometry, err));
  Tensor total = full_with(scope, grad_out, Shape{image[0] * image[2] * image[3], image[1]}, 0);
  if (total && total->numel > 0 && grad_out->numel > 0) {
    Regions regions;
    TENON_TRY(read_regions(scope, op, boxes, index, geometry, &regions, err));
    Tensor rows = ops::reshape(scope, ops::permute(scope, grad_out, {0, 2, 3, 1}), {-1, image[1]});
    for_samples(scope, regions, [&](const Tensor& at, const Tensor& weight) {
      total = ops::index_add(scope, total, at, weighted(scope, rows, weight), 0);
    });
  }
  total = ops::reshape(scope, total, {image[0], image[2], image[3], image[1]});
  return finish(scope, outs, ops::contiguous(scope, ops::permute(scope, total, {0, 3, 1, 2})));
}

TENON_DECOMPOSE(roi_pool) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), index = operand(scope, args[2]);
  if (!scope.ok()) return scope.status();
  Tensor place = ops::roi_argmax(scope, ops::stop_gradient(scope, x), args[1], index,
                                 list_of(ints_of(args[3])), float_of(args[4]));
  if (!scope.ok()) return scope.status();
  const Shape shape = sizes_of(place);
  if (place->numel == 0 || x->numel == 0) return finish(scope, outs, full_with(scope, x, shape, 0));
  const int64_t channels = x->shape[1], pixels = x->shape[2] * x->shape[3];
  Tensor image = as_int64(scope, index);
  image = ops::where(scope, ops::less(scope, image, 0), ops::add(scope, image, x->shape[0]), image);
  Tensor channel = numbers_to(scope, channels, x);
  Tensor plane =
      ops::add(scope, ops::multiply(scope, ops::unsqueeze(scope, image, {1}), channels), channel);
  Tensor flat = ops::add(scope, ops::multiply(scope, ops::unsqueeze(scope, plane, {2, 3}), pixels),
                         ops::clip(scope, place, int64_t{0}, nullptr));
  Tensor values = ops::index_select(scope, ops::reshape(scope, x, {-1}), flat, 0);
  return finish(scope, outs, ops::where(scope, ops::less(scope, place, 0), 0, values));
}

namespace {

// Which elements along one axis of the image are in each bin: [K, bins, extent].
Tensor members(Scope& scope, const Tensor& boxes, int side, double scale, int64_t bins,
               int64_t extent) {
  const auto rounded = [&](int64_t k) {
    Tensor scaled = ops::multiply(scope, box_column(scope, boxes, k), scale);
    // Halves away from zero, as `round` of C.
    Tensor away = ops::floor(scope, ops::add(scope, ops::abs(scope, scaled), 0.5));
    return ops::copysign(scope, away, scaled);
  };
  Tensor begin = rounded(1 - side);
  Tensor length = ops::clip(
      scope, ops::add(scope, ops::subtract(scope, rounded(3 - side), begin), 1), 1.0, nullptr);
  Tensor size = ops::divide(scope, length, static_cast<double>(bins));
  Tensor bin = ops::cast(scope, numbers_to(scope, bins, boxes), boxes->dtype);
  Tensor first = ops::add(scope, ops::floor(scope, ops::multiply(scope, bin, size)), begin);
  Tensor last =
      ops::add(scope, ops::ceil(scope, ops::multiply(scope, ops::add(scope, bin, 1), size)), begin);
  Tensor at = ops::cast(scope, numbers_to(scope, extent, boxes), boxes->dtype);
  return ops::logical_and(scope, ops::greater_equal(scope, at, ops::unsqueeze(scope, first, {2})),
                          ops::less(scope, at, ops::unsqueeze(scope, last, {2})));
}

}  // namespace

// One bin of all boxes at a time: a bin's elements are those of its rows that are in its columns.
TENON_DECOMPOSE(roi_argmax) {
  Scope scope(err);
  Tensor x = operand(scope, args[0]), boxes = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  int64_t bins[2] = {};
  TENON_TRY(read_pair("roi_pool", "output_size", ints_of(args[3]), 1, bins, err));
  const int64_t count = boxes->shape[0], channels = x->shape[1], pixels = x->shape[2] * x->shape[3];
  const Shape shape = {count, channels, bins[0], bins[1]};
  if (count == 0 || x->numel == 0)
    return finish(scope, outs, ops::full(scope, shape, int64_t{-1}, TENON_DTYPE_I64, x->device));
  const double scale = float_of(args[4]);
  Tensor down = members(scope, boxes, 0, scale, bins[0], x->shape[2]);
  Tensor across = members(scope, boxes, 1, scale, bins[1], x->shape[3]);
  Tensor images =
      ops::index_select(scope, ops::reshape(scope, x, {x->shape[0], channels, pixels}), args[2], 0);
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  std::vector<Tensor> indices;
  for (int64_t bin = 0; bin < bins[0] * bins[1] && scope.ok(); ++bin) {
    Tensor rows = ops::unsqueeze(scope, ops::select(scope, down, 1, bin / bins[1]), {2});
    Tensor columns = ops::unsqueeze(scope, ops::select(scope, across, 1, bin % bins[1]), {1});
    Tensor mask = ops::reshape(scope, ops::logical_and(scope, rows, columns), {count, 1, pixels});
    Tensor inside = ops::where(scope, mask, images, kNothing);
    Tensor best = ops::argmax(scope, inside, 2);
    // Nothing exceeds -inf: among these, the first element of the bin.
    Tensor first = ops::argmax(scope, ops::cast(scope, mask, TENON_DTYPE_F32), 2);
    Tensor largest = ops::max(scope, inside, {2});
    best = ops::where(scope, ops::equal(scope, largest, kNothing), first, best);
    indices.push_back(ops::where(scope, ops::any(scope, mask, {2}), best, int64_t{-1}));
  }
  return finish(scope, outs, ops::reshape(scope, ops::stack(scope, indices, 2), shape));
}

}  // namespace tenon::standard_ops
