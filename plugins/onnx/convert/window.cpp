// SPDX-License-Identifier: Apache-2.0
#include "convert/window.hpp"

#include <algorithm>

namespace tenon::onnx {
namespace {

Ints list_of(Conversion& c, const char* name, size_t count, int64_t otherwise) {
  const Ints list = c.integers(name, Ints(count, otherwise));
  if (list.size() != count)
    c.fail(std::string("attribute `") + name + "`: expected " + std::to_string(count) +
           " numbers, got " + std::to_string(list.size()));
  for (int64_t number : list)
    if (number < otherwise || number > INT32_MAX)
      c.fail(std::string("attribute `") + name + "`: expected numbers of at least " +
             std::to_string(otherwise) + ", got " + std::to_string(number));
  return list;
}

}  // namespace

Window window_of(Conversion& c, const Tensor& x, const Ints& kernel) {
  if (x->ndim < 3) c.fail("expected a tensor [N, C, ...], got " + describe(*x.get()));
  const auto axes = static_cast<size_t>(x->ndim) - 2;
  if (kernel.size() != axes)
    c.fail("expected a kernel of " + std::to_string(axes) + " axes, got " +
           std::to_string(kernel.size()));
  Window window;
  window.kernel = kernel;
  window.strides = list_of(c, "strides", axes, 1);
  window.dilations = list_of(c, "dilations", axes, 1);
  const Ints pads = c.integers("pads", Ints(2 * axes, 0));
  if (pads.size() != 2 * axes)
    c.fail("attribute `pads`: expected " + std::to_string(2 * axes) + " numbers, got " +
           std::to_string(pads.size()));
  const std::string automatic = c.text("auto_pad");
  const bool rounds_up = c.integer("ceil_mode") != 0;
  for (size_t i = 0; i < axes; ++i) {
    if (kernel[i] < 1 || kernel[i] > INT32_MAX)
      c.fail("expected a kernel of at least 1 element, got " + std::to_string(kernel[i]));
    const int64_t size = x->shape[2 + i], stride = window.strides[i], span = window.span(i);
    int64_t before = pads[i], after = pads[axes + i];
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const int64_t count = (size + stride - 1) / stride;
      const int64_t margin = std::max<int64_t>((count - 1) * stride + span - size, 0);
      before = automatic == "SAME_UPPER" ? margin / 2 : margin - margin / 2;
      after = margin - before;
    } else if (automatic == "VALID") {
      before = after = 0;
    }
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX)
      c.fail("attribute `pads`: expected numbers of at least 0");
    const int64_t room = size + before + after - span;
    if (room < 0)
      c.fail("expected windows of " + std::to_string(span) + " elements within " +
             std::to_string(size + before + after) + " of axis " + std::to_string(2 + i));
    int64_t count = (rounds_up ? (room + stride - 1) / stride : room / stride) + 1;
    // A window that begins in the margin behind is none.
    if (rounds_up && (count - 1) * stride >= size + before) --count;
    window.before.push_back(before);
    window.after.push_back(std::max(after, (count - 1) * stride + span - size - before));
    window.counts.push_back(count);
  }
  return window;
}

Tensor with_margins(Conversion& c, const Tensor& x, const Window& window, const Value& value) {
  Ints padding(2 * static_cast<size_t>(x->ndim), 0);
  bool is_padded = false;
  const size_t first = static_cast<size_t>(x->ndim) - window.axes();
  for (size_t i = 0; i < window.axes(); ++i) {
    padding[2 * (first + i)] = window.before[i];
    padding[2 * (first + i) + 1] = window.after[i];
    is_padded = is_padded || window.before[i] > 0 || window.after[i] > 0;
  }
  return is_padded ? c.call("pad_constant", {x, padding, value}) : x;
}

Tensor windows_of(Conversion& c, const Tensor& x, const Window& window, int64_t first_axis) {
  Tensor result = x;
  for (size_t i = 0; i < window.axes(); ++i)
    result = c.call("sliding_window", {result, first_axis + static_cast<int64_t>(i),
                                       window.kernel[i], window.strides[i], window.dilations[i]});
  return result;
}

namespace {

Tensor add_bias(Conversion& c, const Tensor& x, const Value& bias) {
  if (bias.is_none()) return x;
  Ints shape(static_cast<size_t>(x->ndim) - 1, 1);
  shape[0] = x->shape[1];
  return c.call("add", {x, c.call("reshape", {bias.tensor("B"), shape})});
}

// Three axes and more: what each window holds, summed with the weights.
Tensor correlate_windows(Conversion& c, const Tensor& x, const Tensor& weight, const Window& window,
                         int64_t groups) {
  static constexpr const char* kAxes[] = {"", "d", "dh", "dhw", "dhwv"};
  static constexpr const char* kTaps[] = {"", "i", "ij", "ijk", "ijkl"};
  if (window.axes() > 4) c.refuse("expected at most 4 axes behind the channels");
  const Tensor padded = with_margins(c, x, window, 0);
  Ints split = shape_of(padded), filters = shape_of(weight);
  split[1] /= groups;
  split.insert(split.begin() + 1, groups);
  filters[0] /= groups;
  filters.insert(filters.begin(), groups);
  const std::string axes = kAxes[window.axes()], taps = kTaps[window.axes()];
  const Tensor windows = windows_of(c, c.call("reshape", {padded, split}), window, 3);
  const Tensor sums = c.call("einsum", {"ngc" + axes + taps + ",gmc" + taps + "->ngm" + axes,
                                        Values{windows, c.call("reshape", {weight, filters})}});
  Ints joined = shape_of(sums);
  joined.erase(joined.begin() + 1);
  joined[1] = weight->shape[0];
  return c.call("reshape", {sums, joined});
}

}  // namespace

Tensor correlate(Conversion& c, const Tensor& x, const Tensor& weight, const Value& bias,
                 const Window& window, int64_t groups) {
  if (groups < 1 || x->shape[1] % groups != 0 || weight->shape[0] % groups != 0 ||
      weight->ndim != x->ndim || weight->shape[1] != x->shape[1] / groups)
    c.fail("expected W of " + std::to_string(x->shape[1]) + " channels / group " +
           std::to_string(groups) + ", got " + describe(*weight.get()));
  if (window.axes() > 2) return add_bias(c, correlate_windows(c, x, weight, window, groups), bias);
  Tensor image = window.is_symmetric() ? x : with_margins(c, x, window, 0);
  const Ints margins = window.is_symmetric() ? window.before : Ints(window.axes(), 0);
  if (window.axes() == 2)
    return c.call("conv2d",
                  {image, weight, bias, window.strides, margins, window.dilations, groups});
  return c.call("conv1d",
                {image, weight, bias, window.strides[0], margins[0], window.dilations[0], groups});
}

}  // namespace tenon::onnx
