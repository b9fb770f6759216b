// SPDX-License-Identifier: Apache-2.0
// Expressions of the table (grammar: opdefs/README.md), evaluated for one node.
#pragma once

#include <string>

#include "conversion.hpp"

namespace tenon::onnx {

// `text`: an expression in the names of the node's inputs and attributes, lines `name = expression` before it.
// Results: of a list, its items; of anything else, that. `origin` begins messages about the text itself.
//
// A call of an operator whose arguments are host values or known tensors happens at once; others become steps. Beside operators
// there are the functions of host_functions.hpp.
Values evaluate(const std::string& text, const std::string& origin, Conversion& conversion);

}  // namespace tenon::onnx
