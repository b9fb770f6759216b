// SPDX-License-Identifier: Apache-2.0
// Pieces of Python: literals, defaults, calls of examples.
#pragma once

#include <string>

#include "model/operator.hpp"

namespace tenon::codegen {

std::string python_string(std::string_view text);
// "[1, 1]", "None", "float32" of a parameter's default.
std::string python_default(const Param& param);

// A value of an example: "[1.0, nan]".
std::string python_value(const Node& node);
// A call of an example, in which lists become tensors where parameters are tensors.
std::string python_call(const Node& node, const Package& package, const std::string& name_space);

// An argument of a sample: "normal(3, 4)", "array([1.0, 2.0])", "'float32'".
std::string python_sample_argument(const Node& node, ParamKind kind);

}  // namespace tenon::codegen
