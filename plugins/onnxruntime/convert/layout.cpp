// SPDX-License-Identifier: Apache-2.0
// Operators that move, cut and join tensors, and that read by index. All sizes are known.
#include <tenon/dtypes.h>

#include <algorithm>
#include <string>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

const std::string& input(const ModelWriter& model, const Step& step) {
  return model.name(&step.tensor("x"));
}

// The result's shape says it all.
Names reshape(ModelWriter& model, const Step& step) {
  const std::vector<int64_t> shape = shape_of(step.result());
  return {model.node("Reshape", {input(model, step), model.integers(shape)})};
}

Names expand(ModelWriter& model, const Step& step) {
  const std::vector<int64_t> shape = shape_of(step.result());
  return {model.node("Expand", {input(model, step), model.integers(shape)})};
}

Names turned(ModelWriter& model, const Step& step, std::vector<int64_t> axes) {
  if (axes.empty()) return {model.node("Identity", {input(model, step)})};
  return {model.node("Transpose", {input(model, step)}, {{"perm", std::move(axes)}})};
}

Names transpose(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.ndim; ++i) axes.push_back(i);
  if (!axes.empty())
    std::swap(axes[static_cast<size_t>(step.axis("axis0", x))],
              axes[static_cast<size_t>(step.axis("axis1", x))]);
  return turned(model, step, std::move(axes));
}

Names permute(ModelWriter& model, const Step& step) {
  std::vector<int64_t> axes = step.axes("axes", step.tensor("x"));
  if (!step.has("axes")) std::reverse(axes.begin(), axes.end());
  return turned(model, step, std::move(axes));
}

Names movedim(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  const std::vector<int64_t> source = step.axes("source", x),
                             destination = step.axes("destination", x);
  std::vector<int64_t> axes(static_cast<size_t>(x.ndim), -1);
  for (size_t i = 0; i < source.size(); ++i) axes[static_cast<size_t>(destination[i])] = source[i];
  int64_t next = 0;
  for (int64_t& axis : axes) {
    if (axis >= 0) continue;
    while (std::find(source.begin(), source.end(), next) != source.end()) ++next;
    axis = next++;
  }
  return turned(model, step, std::move(axes));
}

std::string sliced(ModelWriter& model, const std::string& x, std::span<const int64_t> starts,
                   std::span<const int64_t> stops, std::span<const int64_t> axes,
                   std::span<const int64_t> steps) {
  return model.node("Slice", {x, model.integers(starts), model.integers(stops),
                              model.integers(axes), model.integers(steps)});
}

Names narrow(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  const int64_t axis[] = {step.axis("axis", x)}, by[] = {1};
  int64_t start[] = {step.integer("start")};
  if (start[0] < 0) start[0] += x.shape[axis[0]];
  const int64_t stop[] = {start[0] + step.integer("length")};
  return {sliced(model, input(model, step), start, stop, axis, by)};
}

Names slice(ModelWriter& model, const Step& step) {
  const std::vector<int64_t> axes = step.axes("axes", step.tensor("x"));
  std::vector<int64_t> by(axes.size(), 1);
  if (step.has("steps")) by = step.integers("steps");
  if (std::any_of(by.begin(), by.end(), [](int64_t each) { return each < 1; }))
    throw Refusal("with steps backwards");
  return {
      sliced(model, input(model, step), step.integers("starts"), step.integers("stops"), axes, by)};
}

Names select(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  const std::string index =
      model.number(static_cast<double>(step.integer("index")), TENON_DTYPE_I64);
  return {model.node("Gather", {input(model, step), index}, {{"axis", step.axis("axis", x)}})};
}

Names joined(ModelWriter& model, const Step& step, bool is_new_axis) {
  const tenon_tensor& made = step.result();
  const int64_t axis = step.axis("axis", made);
  Names parts;
  for (const tenon_tensor* each : step.tensors("tensors")) {
    std::string part = cast(model, model.name(each), each->dtype, made.dtype);
    const int64_t axes[] = {axis};
    if (is_new_axis) part = model.node("Unsqueeze", {part, model.integers(axes)});
    parts.push_back(std::move(part));
  }
  return {model.node("Concat", parts, {{"axis", axis}})};
}
Names concat(ModelWriter& model, const Step& step) { return joined(model, step, false); }
Names stack(ModelWriter& model, const Step& step) { return joined(model, step, true); }

// An index beyond the end is an error here and in ONNX Runtime, with texts of their own.
std::string index(ModelWriter& model, const Step& step, std::string_view parameter) {
  const tenon_tensor& index = step.tensor(parameter);
  if (index.dtype != TENON_DTYPE_I64 && index.dtype != TENON_DTYPE_I32)
    throw Refusal("by indices that are no integers of 32 or 64 bits");
  return model.name(&index);
}

Names embedding(ModelWriter& model, const Step& step) {
  return {model.node("Gather", {model.name(&step.tensor("weight")), index(model, step, "indices")},
                     {{"axis", int64_t{0}}})};
}

Names index_select(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  if (x.ndim == 0) throw Refusal("of a tensor without axes");
  return {model.node("Gather", {input(model, step), index(model, step, "index")},
                     {{"axis", step.axis("axis", x)}})};
}

constexpr Converter kConverters[] = {
    {"tenon::view", reshape},         {"tenon::reshape", reshape},
    {"tenon::flatten", reshape},      {"tenon::unflatten", reshape},
    {"tenon::channel_view", reshape}, {"tenon::squeeze", reshape},
    {"tenon::unsqueeze", reshape},    {"tenon::expand", expand},
    {"tenon::transpose", transpose},  {"tenon::permute", permute},
    {"tenon::movedim", movedim},      {"tenon::narrow", narrow},
    {"tenon::slice", slice},          {"tenon::select", select},
    {"tenon::concat", concat},        {"tenon::stack", stack},
    {"tenon::embedding", embedding},  {"tenon::index_select", index_select},
};

}  // namespace

std::span<const Converter> layout_converters() { return kConverters; }

}  // namespace tenon::onnxruntime
