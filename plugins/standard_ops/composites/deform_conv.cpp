// SPDX-License-Identifier: Apache-2.0
// Convolution of windows whose elements are moved: samples as columns, and a matrix product.
#include "composites/neighbours.hpp"
#include "shapes/window.hpp"

namespace tenon::standard_ops {
namespace {

struct Deformed {
  Window window;
  int64_t counts[2];      // windows down and across
  int64_t groups, parts;  // of the weight, and of the offsets
  int64_t taps() const { return window.size[0] * window.size[1]; }
  int64_t windows() const { return counts[0] * counts[1]; }
};

tenon_status read_deformed(const char* op, const Tensor& x, const Tensor& offset,
                           const Tensor& weight, const Tensor& mask, const tenon_value* geometry,
                           Deformed* out, tenon_err* err) {
  TENON_TRY(expect_ndim(op, "x", *x.get(), 4, "[batch, channels, height, width]", err));
  TENON_TRY(expect_ndim(op, "weight", *weight.get(), 4, "[filters, channels, height, width]", err));
  Window& window = out->window;
  std::copy_n(weight->shape + 2, 2, window.size);
  TENON_TRY(read_pair(op, "stride", ints_of(geometry[0]), 1, window.stride, err));
  TENON_TRY(read_pair(op, "padding", ints_of(geometry[1]), 0, window.padding, err));
  TENON_TRY(read_pair(op, "dilation", ints_of(geometry[2]), 1, window.dilation, err));
  TENON_TRY(count_windows(op, window, shape_of(*x.get()), out->counts, err));
  const int64_t channels = x->shape[1], taps = out->taps();
  const int64_t own = weight->shape[1], filters = weight->shape[0];
  const bool groups_fit =
      channels > 0 && own > 0 && taps > 0 && channels % own == 0 && filters % (channels / own) == 0;
  if (!groups_fit)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected a weight [filters, channels / groups, height, width] for x of "
                        "shape %s, got %s",
                        shape_text(*x.get()).c_str(), shape_text(*weight.get()).c_str());
  out->groups = channels / own;
  const auto fits = [&](const Tensor& moved, int64_t of_tap) {
    return moved->ndim == 4 && moved->shape[0] == x->shape[0] &&
           moved->shape[1] == out->parts * of_tap * taps && moved->shape[2] == out->counts[0] &&
           moved->shape[3] == out->counts[1];
  };
  out->parts = offset->ndim == 4 ? offset->shape[1] / (2 * taps) : 0;
  if (out->parts < 1 || channels % out->parts != 0 || !fits(offset, 2) || (mask && !fits(mask, 1)))
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected offset [N, 2 * parts * %lld, %lld, %lld], with a number of parts "
                        "that divides %lld "
                        "channels, and a mask of half as many if any, got offset of shape %s",
                        ll(taps), ll(out->counts[0]), ll(out->counts[1]), ll(channels),
                        shape_text(*offset.get()).c_str());
  return TENON_OK;
}

// Where the elements of all windows are along one axis before they are moved, [taps, windows].
Tensor coordinates(Scope& scope, const Deformed& call, int side, const Tensor& like) {
  std::vector<double> numbers;
  for (int64_t tap = 0; tap < call.taps(); ++tap) {
    const int64_t inside = side == 0 ? tap / call.window.size[1] : tap % call.window.size[1];
    for (int64_t i = 0; i < call.windows(); ++i) {
      const int64_t window = side == 0 ? i / call.counts[1] : i % call.counts[1];
      numbers.push_back(static_cast<double>(window * call.window.stride[side] -
                                            call.window.padding[side] +
                                            inside * call.window.dilation[side]));
    }
  }
  return ops::reshape(scope, float_tensor(scope, numbers, like->dtype, like->device),
                      {call.taps(), call.windows()});
}

}  // namespace

TENON_DECOMPOSE(deform_conv2d) {
  const char* op = "deform_conv2d";
  Scope scope(err);
  Tensor x = operand(scope, args[0]), offset = operand(scope, args[1]),
         weight = operand(scope, args[2]), bias = operand(scope, args[3]),
         mask = operand(scope, args[4]);
  if (!scope.ok()) return scope.status();
  for (const Tensor* each : {&x, &offset, &weight})
    if (!is_real_floating((*each)->dtype) || (*each)->dtype != x->dtype)
      return shapes::fail(err, TENON_TYPE_MISMATCH, op,
                          "expected x, offset and weight of one floating dtype, got %s, %s and %s",
                          host->dtype_name(x->dtype), host->dtype_name(offset->dtype),
                          host->dtype_name(weight->dtype));
  Deformed call{};
  TENON_TRY(read_deformed(op, x, offset, weight, mask, args + 5, &call, err));
  const int64_t images = x->shape[0], channels = x->shape[1], filters = weight->shape[0];
  const int64_t taps = call.taps(), windows = call.windows(), parts = call.parts;
  const int64_t elements = x->shape[2] * x->shape[3], own = channels / parts;
  // Positions of samples, [images * parts * taps * windows].
  Tensor moves = ops::reshape(scope, offset, {images * parts, taps, 2, windows});
  std::vector<std::vector<Neighbour>> axes;
  for (int side = 0; side < 2 && scope.ok(); ++side) {
    const int64_t extent = x->shape[2 + side];
    Tensor at =
        ops::add(scope, ops::select(scope, moves, 2, side), coordinates(scope, call, side, x));
    // Zeros begin one element beyond the image; a finite position keeps weights finite.
    at = ops::clip(scope, ops::where(scope, ops::isnan(scope, at), -2, at), -2.0,
                   static_cast<double>(extent) + 1);
    axes.push_back(linear_neighbours(scope, extent, true, ops::reshape(scope, at, {-1})));
  }
  // Channels of a part last, so that an index stands for all of them.
  Tensor rows =
      ops::transpose(scope, ops::reshape(scope, x, {images * parts, own, elements}), 1, 2);
  rows = ops::reshape(scope, rows, {images * parts * elements, own});
  Tensor first = ops::multiply(scope, numbers_to(scope, images * parts, x), elements);
  first = ops::expand(scope, ops::unsqueeze(scope, first, {1}), {images * parts, taps * windows});
  const int64_t extents[] = {x->shape[2], x->shape[3]};
  Tensor samples = add_neighbours(scope, rows, ops::reshape(scope, first, {-1}), axes, extents);
  samples = ops::reshape(scope, samples, {images, parts, taps, windows, own});
  if (mask)
    samples =
        ops::multiply(scope, samples, ops::reshape(scope, mask, {images, parts, taps, windows, 1}));
  // Columns in the order of the weight: channels, then elements of the window.
  Tensor columns = ops::permute(scope, samples, {0, 1, 4, 2, 3});
  const int64_t depth = channels / call.groups * taps;
  columns = ops::reshape(scope, columns, {images, call.groups, depth, windows});
  Tensor matrices = ops::reshape(scope, weight, {call.groups, filters / call.groups, depth});
  Tensor out = ops::reshape(scope, ops::matmul(scope, matrices, columns),
                            {images, filters, call.counts[0], call.counts[1]});
  if (bias) out = ops::add(scope, out, ops::channel_view(scope, bias, 4));
  return finish(scope, outs, out);
}

}  // namespace tenon::standard_ops
