// SPDX-License-Identifier: Apache-2.0
// Operators of single elements that have no line which can be inverted.
#include <tenon/dtypes.h>

#include <cmath>
#include <numbers>
#include <string>

#include "convert/converters.hpp"

namespace tenon::onnxruntime {
namespace {

// Arithmetic on names in float32, where numbers become constants.
class Elements {
 public:
  Elements(ModelWriter& model, const Step& step) : model_(model) {
    if (step.result().dtype != TENON_DTYPE_F32) throw Refusal("of integers");
  }
  std::string number(double value) { return model_.number(value, TENON_DTYPE_F32); }
  std::string node(const char* op, const Names& inputs) { return model_.node(op, inputs); }
  std::string times(const std::string& x, double y) { return node("Mul", {x, number(y)}); }
  std::string plus(const std::string& x, double y) { return node("Add", {x, number(y)}); }

 private:
  ModelWriter& model_;
};

std::string first(ModelWriter& model, const Step& step) {
  return operand(model, step.value(0), step.result().dtype);
}

Names silu(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  const std::string x = first(model, step);
  return {m.node("Mul", {x, m.node("Sigmoid", {x})})};
}

Names square(ModelWriter& model, const Step& step) {
  const std::string x = first(model, step);
  if (step.result().dtype == TENON_DTYPE_BOOL) throw Refusal("of truth values");
  return {model.node("Mul", {x, x})};
}

Names rsqrt(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  return {m.node("Reciprocal", {m.node("Sqrt", {first(model, step)})})};
}

Names divide(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  return {m.node("Div", {first(model, step), operand(model, step.value(1), TENON_DTYPE_F32)})};
}

Names power(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  return {m.node("Pow", {first(model, step), operand(model, step.value(1), TENON_DTYPE_F32)})};
}

Names gelu(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  const std::string x = first(model, step);
  std::string curve;
  if (step.flag("approximate")) {
    const std::string cubed = m.node("Mul", {m.node("Mul", {x, x}), x});
    const std::string inner = m.node("Add", {x, m.times(cubed, 0.044715)});
    curve = m.node("Tanh", {m.times(inner, std::sqrt(2 / std::numbers::pi))});
  } else {
    // In this order ONNX Runtime finds the function, for which it has one kernel.
    curve = m.node("Erf", {m.node("Div", {x, m.number(std::numbers::sqrt2)})});
  }
  return {m.times(m.node("Mul", {x, m.plus(curve, 1)}), 0.5)};
}

Names hardsigmoid(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  return {model.node("HardSigmoid", {first(model, step)}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}})};
}

Names softplus(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  const double beta = step.number("beta");
  const std::string x = first(model, step);
  if (beta == 1) return {m.node("Softplus", {x})};
  return {m.times(m.node("Softplus", {m.times(x, beta)}), 1 / beta)};
}

template <const char* op>
Names of_two(ModelWriter& model, const Step& step) {
  const int32_t dtype = step.result().dtype;
  if (dtype == TENON_DTYPE_BOOL) throw Refusal("of truth values");
  return {model.node(op, {first(model, step), operand(model, step.value(1), dtype)})};
}
constexpr char kMax[] = "Max", kMin[] = "Min";

Names clip_range(ModelWriter& model, const Step& step) {
  const int32_t dtype = step.result().dtype;
  const std::string above =
      model.node("Max", {first(model, step), operand(model, step.value(1), dtype)});
  return {model.node("Min", {above, operand(model, step.value(2), dtype)})};
}

Names hardtanh(ModelWriter& model, const Step& step) {
  Elements m(model, step);
  const std::string above = m.node("Max", {first(model, step), m.number(step.number("min"))});
  return {m.node("Min", {above, m.number(step.number("max"))})};
}

Names convert_dtype(ModelWriter& model, const Step& step) {
  const tenon_tensor& x = step.tensor("x");
  const int32_t to = step.result().dtype;
  if (x.dtype == TENON_DTYPE_F32 && (to == TENON_DTYPE_I32 || to == TENON_DTYPE_I64))
    throw Refusal("from floats to integers, for which libraries differ beyond the range");
  return {x.dtype == to ? model.node("Identity", {model.name(&x)})
                        : cast(model, model.name(&x), x.dtype, to)};
}

Names masked_fill(ModelWriter& model, const Step& step) {
  const int32_t dtype = step.result().dtype;
  if (dtype == TENON_DTYPE_BOOL) throw Refusal("of truth values");
  return {model.node("Where", {operand(model, step.value(1), TENON_DTYPE_BOOL),
                               operand(model, step.value(2), dtype), first(model, step)})};
}

Names same(ModelWriter& model, const Step& step) {
  return {model.node("Identity", {model.name(&step.tensor("x"))})};
}

constexpr Converter kConverters[] = {
    {"tenon::silu", silu},
    {"tenon::square", square},
    {"tenon::rsqrt", rsqrt},
    {"tenon::divide", divide},
    {"tenon::pow", power},
    {"tenon::gelu", gelu},
    {"tenon::hardsigmoid", hardsigmoid},
    {"tenon::softplus", softplus},
    {"tenon::maximum", of_two<kMax>},
    {"tenon::minimum", of_two<kMin>},
    {"tenon::clip_below", of_two<kMax>},
    {"tenon::clip_above", of_two<kMin>},
    {"tenon::clip_range", clip_range},
    {"tenon::hardtanh", hardtanh},
    {"tenon::cast", convert_dtype},
    {"tenon::masked_fill", masked_fill},
    {"tenon::clone", same},
    {"tenon::contiguous", same},
    {"tenon::stop_gradient", same},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kConverters; }

}  // namespace tenon::onnxruntime
