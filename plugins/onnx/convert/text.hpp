// SPDX-License-Identifier: Apache-2.0
// Tensors of text for operators that are of other tensors as well.
#pragma once

#include <functional>

#include "conversion.hpp"

namespace tenon::onnx {

Tensor cast_from_text(Conversion& c, const Text& text, int32_t dtype);
Text cast_to_text(Conversion& c, const Tensor& from);

// Whether the operator only moves or compares elements, so that numbers can stand for texts. `op` is its name in the table.
bool moves_text(const std::string& op);
// convert(inputs with numbers of one list instead of texts), and texts again where its results are such.
Values with_numbers(Conversion& c, const Values& inputs, const std::string& op,
                    const std::function<Values(Values)>& convert);

}  // namespace tenon::onnx
