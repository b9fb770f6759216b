// SPDX-License-Identifier: Apache-2.0
// What writes the nodes for a step.
#pragma once

#include <span>
#include <string_view>

#include "model_writer.hpp"
#include "step.hpp"

namespace tenon::onnxruntime {

// Gives the names of the step's results, "" for one that ONNX has not. Throws Refusal.
using Convert = Names (*)(ModelWriter& model, const Step& step);
struct Converter {
  std::string_view op;  // "tenon::conv2d"
  Convert convert;
};

// By family, one file each.
std::span<const Converter> elementwise_converters();
std::span<const Converter> layer_converters();
std::span<const Converter> layout_converters();
std::span<const Converter> reduction_converters();

// Steps whose operator has a line of the key `onnx` (opdefs/README.md) that is a call with inputs and attributes, read in
// the other direction. Throws Refusal: it has none.
Names convert_by_line(ModelWriter& model, const Step& step);

// Writes a step, whose results get names. Throws Refusal: ONNX Runtime does not compute it, or not as Tenon does.
void convert(ModelWriter& model, const Step& step);

}  // namespace tenon::onnxruntime
