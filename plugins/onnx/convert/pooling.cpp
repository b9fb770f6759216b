// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool, MaxUnpool, in any number of axes.
#include <limits>

#include "convert/converters.hpp"
#include "convert/window.hpp"

namespace tenon::onnx {
namespace {

// The new last axes that windows_of makes.
Ints last_axes(size_t count) {
  Ints axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(-1 - static_cast<int64_t>(i));
  return axes;
}

Tensor window_sums(Conversion& c, const Tensor& x, const Window& window) {
  const Tensor padded = with_margins(c, x, window, 0);
  return c.call("sum", {windows_of(c, padded, window), last_axes(window.axes())});
}

// What no window takes for its maximum.
Value lowest(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_U8:
    case TENON_DTYPE_BOOL:
      return 0;
    case TENON_DTYPE_I8:
      return -128;
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

bool fits_kernel(const Window& window) {
  if (window.axes() != 2 || !window.is_symmetric()) return false;
  return 2 * window.before[0] <= window.kernel[0] && 2 * window.before[1] <= window.kernel[1];
}

// Positions in the padded plane of each channel, as ONNX counts them: in the whole tensor, without margins.
Tensor global_positions(Conversion& c, const Tensor& x, const Tensor& positions, const Ints& padded,
                        const Window& window) {
  const int64_t height = x->shape[2], width = x->shape[3];
  const Tensor row = c.call("subtract",
                            {c.call("floor_divide", {positions, padded[1]}), window.before[0]}),
               column = c.call("subtract",
                               {c.call("remainder", {positions, padded[1]}), window.before[1]});
  const bool by_columns = c.integer("storage_order") == 1;
  const Tensor in_plane = by_columns ? c.call("add", {c.call("multiply", {column, height}), row})
                                     : c.call("add", {c.call("multiply", {row, width}), column});
  const int64_t planes = x->shape[0] * x->shape[1];
  const Tensor starts = c.call("multiply", {c.call("arange", {0, planes}), height * width});
  return c.call("add",
                {in_plane, c.call("reshape", {starts, Ints{x->shape[0], x->shape[1], 1, 1}})});
}

}  // namespace

Values convert_max_pool(Conversion& c) {
  const Tensor& x = c.tensor("X");
  Window window = window_of(c, x, c.integers("kernel_shape"));
  const bool wants_positions = c.wants(1);
  if (!wants_positions && !fits_kernel(window)) {
    const Tensor padded = with_margins(c, x, window, lowest(x->dtype));
    return {c.call("max", {windows_of(c, padded, window), last_axes(window.axes())})};
  }
  if (!wants_positions)
    return {
        c.call("max_pool2d", {x, window.kernel, window.strides, window.before, window.dilations})};
  if (window.axes() > 2)
    c.refuse("expected at most 2 axes behind the channels for result `Indices`");
  // One axis is a plane of one row.
  const bool is_line = window.axes() == 1;
  Tensor plane = is_line ? c.call("unsqueeze", {x, Ints{2}}) : x;
  if (is_line)
    for (Ints* list : {&window.kernel, &window.strides, &window.dilations})
      list->insert(list->begin(), 1);
  if (is_line)
    for (Ints* list : {&window.before, &window.after}) list->insert(list->begin(), 0);
  const Tensor padded = with_margins(c, plane, window, lowest(x->dtype));
  const Values pooled =
      c.call_all("max_pool2d_with_indices",
                 {padded, window.kernel, window.strides, Ints{0, 0}, window.dilations});
  Tensor values = pooled[0].tensor("values"),
         positions = global_positions(c, plane, pooled[1].tensor("indices"),
                                      {padded->shape[2], padded->shape[3]}, window);
  if (is_line) {
    values = c.call("squeeze", {values, Ints{2}});
    positions = c.call("squeeze", {positions, Ints{2}});
  }
  return {values, positions};
}

Values convert_average_pool(Conversion& c) {
  const Tensor& x = c.tensor("X");
  const Window window = window_of(c, x, c.integers("kernel_shape"));
  const bool counts_margins = c.integer("count_include_pad") != 0;
  const bool is_plain = c.integer("ceil_mode") == 0 && window.dilations == Ints(window.axes(), 1);
  if (is_plain && fits_kernel(window))
    return {c.call("avg_pool2d",
                   {x, window.kernel, window.strides, window.before, false, counts_margins})};
  // How many elements each window counts: those of the margins that were requested, not of what rounding up adds.
  Window given = window;
  const Ints pads = c.integers("pads", Ints(2 * window.axes(), 0));
  Ints inside{1, 1}, margins(2 * static_cast<size_t>(x->ndim), 0);
  for (size_t i = 0; i < window.axes(); ++i) {
    const bool is_automatic = c.text("auto_pad") != "NOTSET";
    const int64_t after = is_automatic ? window.after[i] : pads[window.axes() + i];
    inside.push_back(x->shape[2 + i] + (counts_margins ? window.before[i] + after : 0));
    given.before[i] = counts_margins ? 0 : window.before[i];
    given.after[i] = counts_margins ? window.after[i] - after : window.after[i];
  }
  const int32_t wide = wide_dtype(x);
  const Tensor ones = c.call("full", {inside, 1.0, {"dtype", Dtype{wide}}});
  const Tensor counts = window_sums(c, ones, given), sums = window_sums(c, c.cast(x, wide), window);
  return {c.cast(c.call("divide", {sums, counts}), x->dtype)};
}

Values convert_lp_pool(Conversion& c) {
  const Tensor& x = c.tensor("X");
  const double p = c.number("p", 2);
  const Window window = window_of(c, x, c.integers("kernel_shape"));
  const Tensor powers = c.call("pow", {c.call("abs", {x}), p});
  return {c.call("pow", {window_sums(c, powers, window), 1 / p})};
}

Values convert_max_unpool(Conversion& c) {
  const Tensor &x = c.tensor("X"), &positions = c.tensor("I");
  const Ints kernel = c.integers("kernel_shape");
  const size_t axes = kernel.size();
  const Ints strides = c.integers("strides", Ints(axes, 1)),
             pads = c.integers("pads", Ints(2 * axes, 0));
  if (static_cast<size_t>(x->ndim) != axes + 2 || strides.size() != axes || pads.size() != 2 * axes)
    c.fail("expected kernel_shape, strides and pads of " + std::to_string(x->ndim - 2) + " axes");
  Ints shape{x->shape[0], x->shape[1]};
  int64_t total = shape[0] * shape[1];
  for (size_t i = 0; i < axes; ++i) {
    shape.push_back((x->shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[axes + i]);
    if (shape.back() < 0 || __builtin_mul_overflow(total, shape.back(), &total))
      c.fail("the sizes of the result are negative or too large");
  }
  const Tensor zeros = c.call("full", {Ints{total}, 0, {"dtype", Dtype{x->dtype}}});
  const Tensor flat = c.call("scatter", {zeros, c.call("reshape", {positions, Ints{-1}}),
                                         c.call("reshape", {x, Ints{-1}}), 0});
  Tensor result = c.call("reshape", {flat, shape});
  if (!c.has("output_shape")) return {result};
  // Positions are those of the size that follows from the windows; the rest is zeros behind.
  const Ints wanted = ints_of(c.input("output_shape"), "output_shape");
  if (wanted.size() != shape.size()) c.fail("output_shape: expected as many sizes as X has axes");
  Ints padding;
  for (size_t i = 0; i < wanted.size(); ++i) {
    padding.push_back(0);
    padding.push_back(wanted[i] - shape[i]);
  }
  return {c.call("pad_constant", {result, padding})};
}

}  // namespace tenon::onnx
