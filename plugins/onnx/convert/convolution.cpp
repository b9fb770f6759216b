// SPDX-License-Identifier: Apache-2.0
// Conv and ConvTranspose.
#include <algorithm>

#include "convert/converters.hpp"
#include "convert/window.hpp"

namespace tenon::onnx {
namespace {

Ints kernel_of(Conversion& c, const Tensor& weight) {
  const Ints shape = shape_of(weight);
  if (shape.size() < 3) c.fail("expected W of [M, C / group, ...], got " + describe(*weight.get()));
  const Ints kernel(shape.begin() + 2, shape.end());
  if (c.integers("kernel_shape", kernel) != kernel)
    c.fail("attribute `kernel_shape`: expected the sizes of W, got others");
  return kernel;
}

// `stride - 1` zeros between the elements of an axis.
Tensor spread(Conversion& c, const Tensor& x, int64_t axis, int64_t stride) {
  if (stride == 1) return x;
  Ints padding(2 * static_cast<size_t>(x->ndim + 1), 0), shape = shape_of(x);
  padding[2 * static_cast<size_t>(axis + 1) + 1] = stride - 1;
  const int64_t length = shape[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(axis)] = length * stride;
  const Tensor apart = c.call("pad_constant", {c.call("unsqueeze", {x, Ints{axis + 1}}), padding});
  return c.call("narrow", {c.call("reshape", {apart, shape}), axis, 0,
                           std::max<int64_t>((length - 1) * stride + 1, 0)});
}

// The transposed convolution without margins: a correlation of what is spread out with the filters turned around.
Tensor transpose_windows(Conversion& c, Tensor x, const Tensor& weight, const Ints& strides,
                         const Ints& dilations, int64_t groups) {
  const Ints shape = shape_of(weight);
  const size_t axes = shape.size() - 2;
  Window window;
  window.kernel = Ints(shape.begin() + 2, shape.end());
  window.strides = Ints(axes, 1);
  window.dilations = dilations;
  Ints turned;
  for (size_t i = 0; i < axes; ++i) {
    x = spread(c, x, static_cast<int64_t>(2 + i), strides[i]);
    window.before.push_back(window.span(i) - 1);
    window.after.push_back(window.span(i) - 1);
    turned.push_back(static_cast<int64_t>(3 + i));
  }
  // [C, M / groups, ...] -> [M, C / groups, ...]
  Ints split = shape;
  split[0] /= groups;
  split.insert(split.begin(), groups);
  Tensor filters = c.call("transpose", {c.call("reshape", {weight, split}), 1, 2});
  Ints joined = shape;
  joined[0] = shape[1] * groups;
  joined[1] = shape[0] / groups;
  filters = c.call("reshape", {c.call("flip", {filters, turned}), joined});
  return correlate(c, x, filters, {}, window, groups);
}

}  // namespace

Values convert_conv(Conversion& c) {
  const Tensor &x = c.tensor("X"), &weight = c.tensor("W");
  const Window window = window_of(c, x, kernel_of(c, weight));
  return {correlate(c, x, weight, c.input("B"), window, c.integer("group", 1))};
}

Values convert_conv_transpose(Conversion& c) {
  const Tensor &x = c.tensor("X"), &weight = c.tensor("W");
  const Ints kernel = kernel_of(c, weight);
  const size_t axes = kernel.size();
  if (static_cast<size_t>(x->ndim) != axes + 2) c.fail("expected X and W of the same axes");
  const Ints strides = c.integers("strides", Ints(axes, 1)),
             dilations = c.integers("dilations", Ints(axes, 1)),
             more = c.integers("output_padding", Ints(axes, 0)),
             pads = c.integers("pads", Ints(2 * axes, 0));
  Ints wanted = c.integers("output_shape");
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (strides.size() != axes || dilations.size() != axes || more.size() != axes ||
      pads.size() != 2 * axes || (!wanted.empty() && wanted.size() != axes))
    c.fail("expected strides, dilations, pads, output_padding and output_shape of " +
           std::to_string(axes) + " axes");
  const int64_t groups = c.integer("group", 1);
  if (groups < 1 || weight->shape[0] % groups != 0 || weight->shape[0] != x->shape[1])
    c.fail("expected W of " + std::to_string(x->shape[1]) + " channels, which " +
           std::to_string(groups) + " groups divide, got " + describe(*weight.get()));
  const std::string automatic = c.text("auto_pad");
  Ints padding(2 * (axes + 2), 0);
  bool is_moved = false;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = x->shape[2 + i];
    if (strides[i] < 1 || dilations[i] < 1 || strides[i] > INT32_MAX || dilations[i] > INT32_MAX)
      c.fail("expected strides and dilations of at least 1");
    const int64_t full = (size - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1;
    int64_t before = pads[i], after = pads[axes + i];
    const bool is_same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!wanted.empty() || is_same) {
      const int64_t length = wanted.empty() ? size * strides[i] : wanted[i];
      // What the result has more than the windows reach lies behind.
      const int64_t excess = full + more[i] - length, total = std::max<int64_t>(excess, 0);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = excess - before;
    } else if (automatic == "VALID") {
      before = after = 0;
    }
    padding[2 * (2 + i)] = -before;
    padding[2 * (2 + i) + 1] = more[i] - after;
    is_moved = is_moved || before != 0 || more[i] != after;
  }
  Tensor full;
  if (axes == 2)
    full = c.call("conv_transpose2d",
                  {x, weight, Value(), strides, Ints{0, 0}, Ints{0, 0}, dilations, groups});
  else
    full = transpose_windows(c, x, weight, strides, dilations, groups);
  if (is_moved) full = c.call("pad_constant", {full, padding});
  if (!c.has("B")) return {full};
  Ints bias(axes + 1, 1);
  bias[0] = full->shape[1];
  return {c.call("add", {full, c.call("reshape", {c.tensor("B"), bias})})};
}

}  // namespace tenon::onnx
