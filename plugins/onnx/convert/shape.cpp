// SPDX-License-Identifier: Apache-2.0
// Reshape, Pad, Split, CenterCropPad.
#include <algorithm>

#include "convert/converters.hpp"
#include "importer.hpp"

namespace tenon::onnx {

namespace {

// What reshape can view or has to copy at every size alike: an axis of one element makes a view of what other sizes copy, as where
// axes were exchanged, so that samples of several sizes would be other programs.
Tensor in_order(Conversion& c, const Tensor& data) {
  if (!c.importer.is_sample() || is_known(data)) return data;
  int64_t stride = 1;
  for (int32_t axis = data->ndim - 1; axis >= 0; --axis) {
    if (data->strides[axis] != stride) return c.call("clone", {data});
    stride *= data->shape[axis];
  }
  return data;
}

}  // namespace

Values convert_reshape(Conversion& c) {
  const Tensor& data = c.tensor("data");
  // Before opset 5 the shape is an attribute.
  Ints shape =
      c.schema.find_attribute("shape") ? c.integers("shape") : ints_of(c.input("shape"), "shape");
  const Ints from = shape_of(data);
  if (c.integer("allowzero") == 0)
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != 0) continue;
      if (i >= from.size())
        c.fail("shape: 0 at axis " + std::to_string(i) +
               " stands for the input's size, which has " + std::to_string(from.size()) + " axes");
      shape[i] = from[i];
    }
  return {c.call("reshape", {in_order(c, data), shape})};
}

Values convert_pad(Conversion& c) {
  const Tensor& data = c.tensor("data");
  const size_t ndim = shape_of(data).size();
  const Ints pads = c.schema.find_attribute("paddings") ? c.integers("paddings")
                    : c.schema.find_attribute("pads")   ? c.integers("pads")
                                                        : ints_of(c.input("pads"), "pads");
  Ints axes;
  if (c.schema.inputs.size() > 3 && c.has("axes"))
    axes = ints_of(c.input("axes"), "axes");
  else
    for (size_t i = 0; i < ndim; ++i) axes.push_back(static_cast<int64_t>(i));
  if (pads.size() != 2 * axes.size())
    c.fail("pads: expected " + std::to_string(2 * axes.size()) + " numbers, got " +
           std::to_string(pads.size()));
  Ints padding(2 * ndim, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normal_axis(axes[i], static_cast<int64_t>(ndim), "axes"));
    padding[2 * axis] = pads[i];
    padding[2 * axis + 1] = pads[axes.size() + i];
  }
  Value value = 0;
  if (c.schema.inputs.size() > 2 && c.has("constant_value"))
    value = c.input("constant_value");
  else if (c.schema.find_attribute("value"))
    value = c.attribute("value");
  return {c.call("pad", {data, padding, c.text("mode"), value})};
}

Values convert_split(Conversion& c) {
  const Tensor& data = c.inputs()[0].tensor("input");
  const int64_t axis = normal_axis(c.integer("axis"), data->ndim, "axis");
  const int64_t length = data->shape[axis];
  Ints sizes;
  const bool is_input = c.inputs().size() > 1 && !c.inputs()[1].is_none();
  if (is_input)
    sizes = ints_of(c.inputs()[1], "split");
  else if (c.has_attribute("split"))
    sizes = c.integers("split");
  if (sizes.empty() && length > 0) {
    const auto count = static_cast<int64_t>(c.node.outputs.size());
    if (c.integer("num_outputs", count) != count)
      c.fail("attribute `num_outputs`: expected the " + std::to_string(count) +
             " results of the node");
    const int64_t size = (length + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<int64_t>(length - i * size, 0, size));
    if (c.schema.since < 18 && length % count != 0)
      c.fail("expected a size that " + std::to_string(count) + " divides, got " +
             std::to_string(length));
  } else if (sizes.empty()) {
    sizes.assign(c.node.outputs.size(), 0);
  }
  // Not split(): a list of one size would mean that size for each.
  Values pieces;
  int64_t start = 0;
  for (int64_t size : sizes) {
    pieces.emplace_back(c.call("narrow", {data, axis, start, size}));
    start += size;
  }
  if (start != length)
    c.fail("split: expected sizes that add up to " + std::to_string(length) + ", got " +
           std::to_string(start));
  return pieces;
}

Values convert_center_crop_pad(Conversion& c) {
  const Tensor& data = c.tensor("input_data");
  const Ints shape = ints_of(c.input("shape"), "shape");
  Ints axes = c.integers("axes");
  if (!c.has_attribute("axes"))
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (axes.size() != shape.size())
    c.fail("shape: expected " + std::to_string(axes.size()) + " sizes, got " +
           std::to_string(shape.size()));
  Ints padding(2 * static_cast<size_t>(data->ndim), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(normal_axis(axes[i], data->ndim, "axes"));
    const int64_t more = shape[i] - data->shape[axis];
    // The margin before is the smaller one where the size grows; what is cropped before is, too.
    padding[2 * axis] = more >= 0 ? more / 2 : -(-more / 2);
    padding[2 * axis + 1] = more - padding[2 * axis];
  }
  return {c.call("pad_constant", {data, padding})};
}

}  // namespace tenon::onnx
