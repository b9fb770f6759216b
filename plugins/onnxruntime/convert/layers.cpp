// SPDX-License-Identifier: Apache-2.0
// Products of matrices, convolutions, pools, normalisations and attention, of float32.
#include <tenon/dtypes.h>

#include <limits>
#include <numeric>
#include <string>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

// The name of a tensor of float32; "": the argument is absent.
std::string float_name(ModelWriter& model, const Step& step, std::string_view parameter) {
  if (!step.has(parameter)) return "";
  const tenon_tensor& tensor = step.tensor(parameter);
  if (tensor.dtype != TENON_DTYPE_F32) throw Refusal("of other dtypes than float32");
  return model.name(&tensor);
}

Names with(Names names, const std::string& optional) {
  if (!optional.empty()) names.push_back(optional);
  return names;
}

Names matmul(ModelWriter& model, const Step& step) {
  return {model.node("MatMul", {float_name(model, step, "x"), float_name(model, step, "y")})};
}

Names linear(ModelWriter& model, const Step& step) {
  const std::string x = float_name(model, step, "x"), weight = float_name(model, step, "weight"),
                    bias = float_name(model, step, "bias");
  if (step.tensor("x").ndim == 2)
    return {model.node("Gemm", with({x, weight}, bias), {{"transB", int64_t{1}}})};
  const std::string turned =
      model.node("Transpose", {weight}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string product = model.node("MatMul", {x, turned});
  return {bias.empty() ? product : model.node("Add", {product, bias})};
}

std::vector<int64_t> pair(const Step& step, std::string_view parameter) {
  std::vector<int64_t> numbers = step.integers(parameter);
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  return numbers;
}

// What is padded before and behind each axis.
std::vector<int64_t> pads(const Step& step) {
  std::vector<int64_t> padding = pair(step, "padding");
  padding.insert(padding.end(), {padding[0], padding[1]});
  return padding;
}

Names conv2d(ModelWriter& model, const Step& step) {
  const tenon_tensor& weight = step.tensor("weight");
  const std::vector<int64_t> shape = shape_of(weight);
  return {model.node("Conv",
                     with({float_name(model, step, "x"), float_name(model, step, "weight")},
                          float_name(model, step, "bias")),
                     {{"kernel_shape", std::vector<int64_t>{shape[2], shape[3]}},
                      {"strides", pair(step, "stride")},
                      {"pads", pads(step)},
                      {"dilations", pair(step, "dilation")},
                      {"group", step.integer("groups")}})};
}

std::vector<int64_t> strides_of_pool(const Step& step) {
  return pair(step, step.has("stride") ? "stride" : "kernel_size");
}

Attributes pool(const Step& step) {
  return {{"kernel_shape", pair(step, "kernel_size")},
          {"strides", strides_of_pool(step)},
          {"pads", pads(step)}};
}

// A last window that begins in the margin counts in ONNX Runtime, or does not, as its version goes.
void check_last_windows(const Step& step) {
  const std::vector<int64_t> kernel = pair(step, "kernel_size"), stride = strides_of_pool(step),
                             padding = pair(step, "padding"), dilation = pair(step, "dilation");
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t room = step.tensor("x").shape[2 + axis] + 2 * padding[axis] -
                         dilation[axis] * (kernel[axis] - 1) - 1;
    if ((room + stride[axis] - 1) / stride[axis] + 1 != step.result().shape[2 + axis])
      throw Refusal("with ceil_mode and a last window in the margin");
  }
}

Names max_pool2d(ModelWriter& model, const Step& step) {
  if (step.flag("ceil_mode")) check_last_windows(step);
  Attributes attributes = pool(step);
  attributes.emplace_back("dilations", pair(step, "dilation"));
  attributes.emplace_back("ceil_mode", step.integer("ceil_mode"));
  return {model.node("MaxPool", {float_name(model, step, "x")}, attributes)};
}

Names avg_pool2d(ModelWriter& model, const Step& step) {
  if (step.flag("ceil_mode"))
    throw Refusal("with ceil_mode, for which libraries count margins differently");
  Attributes attributes = pool(step);
  attributes.emplace_back("count_include_pad", step.integer("count_include_pad"));
  return {model.node("AveragePool", {float_name(model, step, "x")}, attributes)};
}

std::string filled(ModelWriter& model, double value, std::span<const int64_t> shape) {
  return model.node("Expand", {model.number(value, TENON_DTYPE_F32), model.integers(shape)});
}

Names batch_norm(ModelWriter& model, const Step& step) {
  const std::vector<int64_t> channels = shape_of(step.tensor("mean"));
  const std::string scale = float_name(model, step, "weight"),
                    shift = float_name(model, step, "bias");
  return {
      model.node("BatchNormalization",
                 {float_name(model, step, "x"), scale.empty() ? filled(model, 1, channels) : scale,
                  shift.empty() ? filled(model, 0, channels) : shift,
                  float_name(model, step, "mean"), float_name(model, step, "var")},
                 {{"epsilon", static_cast<float>(step.number("eps"))}})};
}

Names layer_norm(ModelWriter& model, const Step& step) {
  const int64_t count = step.integer("normalized_ndim");
  const std::vector<int64_t> shape = shape_of(step.tensor("x"));
  const std::string weight = float_name(model, step, "weight");
  const std::span<const int64_t> sizes(shape.data() + (shape.size() - static_cast<size_t>(count)),
                                       static_cast<size_t>(count));
  return {model.node(
      "LayerNormalization",
      with({float_name(model, step, "x"), weight.empty() ? filled(model, 1, sizes) : weight},
           float_name(model, step, "bias")),
      {{"axis", -count}, {"epsilon", static_cast<float>(step.number("eps"))}})};
}

Names rms_norm(ModelWriter& model, const Step& step) {
  const std::string x = float_name(model, step, "x"), weight = float_name(model, step, "weight");
  const int64_t last[] = {-1};
  const std::string mean =
      model.node("ReduceMean", {model.node("Mul", {x, x}), model.integers(last)});
  const std::string eps = model.number(step.number("eps"), TENON_DTYPE_F32);
  const std::string size = model.node("Sqrt", {model.node("Add", {mean, eps})});
  const std::string normal = model.node("Div", {x, size});
  return {weight.empty() ? normal : model.node("Mul", {normal, weight})};
}

// Scores of keys behind the query's own position become minus infinity.
std::string without_later(ModelWriter& model, const Step& step, const std::string& scores,
                          const std::string& never) {
  const auto count = [&](const char* parameter) {
    const std::vector<int64_t> shape = shape_of(step.tensor(parameter));
    std::vector<int64_t> numbers(static_cast<size_t>(shape[shape.size() - 2]));
    std::iota(numbers.begin(), numbers.end(), 0);
    return model.integers(numbers);
  };
  const int64_t last[] = {1};
  const std::string rows = model.node("Unsqueeze", {count("query"), model.integers(last)});
  const std::string is_seen = model.node("GreaterOrEqual", {rows, count("key")});
  return model.node("Where", {is_seen, scores, never});
}

// Softmax of scores. A row that sees nothing gives zeros, as the operator does.
Names attention(ModelWriter& model, const Step& step) {
  const int64_t ndim = step.tensor("key").ndim;
  std::vector<int64_t> turned;
  for (int64_t i = 0; i < ndim; ++i) turned.push_back(i);
  std::swap(turned[static_cast<size_t>(ndim - 1)], turned[static_cast<size_t>(ndim - 2)]);
  const std::string scale = model.number(step.number("scale"), TENON_DTYPE_F32);
  const std::string scaled = model.node("Mul", {float_name(model, step, "query"), scale});
  const std::string key =
      model.node("Transpose", {float_name(model, step, "key")}, {{"perm", turned}});
  std::string scores = model.node("MatMul", {scaled, key});
  const std::string never = model.number(-std::numeric_limits<double>::infinity(), TENON_DTYPE_F32);
  if (step.flag("causal")) scores = without_later(model, step, scores, never);
  if (step.has("mask")) {
    const tenon_tensor& mask = step.tensor("mask");
    if (mask.dtype == TENON_DTYPE_BOOL) {
      scores = model.node("Where", {model.name(&mask), scores, never});
    } else {
      scores = model.node("Add", {scores, float_name(model, step, "mask")});
    }
  }
  std::string weights = model.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (step.has("mask"))
    weights = model.node(
        "Where", {model.node("IsNaN", {weights}), model.number(0, TENON_DTYPE_F32), weights});
  return {model.node("MatMul", {weights, float_name(model, step, "value")}), ""};
}

constexpr Converter kConverters[] = {
    {"tenon::matmul", matmul},         {"tenon::linear", linear},
    {"tenon::conv2d", conv2d},         {"tenon::max_pool2d", max_pool2d},
    {"tenon::avg_pool2d", avg_pool2d}, {"tenon::batch_norm_inference", batch_norm},
    {"tenon::layer_norm", layer_norm}, {"tenon::rms_norm", rms_norm},
    {"tenon::attention", attention},   {"tenon::max_pool2d_with_indices", max_pool2d},
};

}  // namespace

std::span<const Converter> layer_converters() { return kConverters; }

}  // namespace tenon::onnxruntime
