// SPDX-License-Identifier: Apache-2.0
// Sums and other reductions of float32, and softmax.
#include <tenon/dtypes.h>

#include <string>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

std::string input(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  if (x.dtype != TENON_DTYPE_F32 || step.result().dtype != TENON_DTYPE_F32)
    throw Refusal("of other dtypes than float32");
  return model.name(&x);
}

template <const char* op>
Names reduce(ModelWriter& model, const Step& step) {
  const std::string x = input(model, step);
  const std::vector<int64_t> axes = step.axes("axis", step.tensor("x"));
  if (axes.empty()) return {model.node("Identity", {x})};
  return {model.node(op, {x, model.integers(axes)}, {{"keepdims", step.integer("keepdim")}})};
}
constexpr char kSum[] = "ReduceSum", kMean[] = "ReduceMean", kMax[] = "ReduceMax",
               kMin[] = "ReduceMin", kProd[] = "ReduceProd";

template <const char* op>
Names along_axis(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  if (x.ndim == 0) throw Refusal("of a tensor without axes");
  return {model.node(op, {input(model, step)}, {{"axis", step.axis("axis", x)}})};
}
constexpr char kSoftmax[] = "Softmax", kLogSoftmax[] = "LogSoftmax";

constexpr Converter kConverters[] = {
    {"tenon::sum", reduce<kSum>},
    {"tenon::mean", reduce<kMean>},
    {"tenon::max", reduce<kMax>},
    {"tenon::min", reduce<kMin>},
    {"tenon::prod", reduce<kProd>},
    {"tenon::softmax", along_axis<kSoftmax>},
    {"tenon::log_softmax", along_axis<kLogSoftmax>},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kConverters; }

}  // namespace tenon::onnxruntime
