// SPDX-License-Identifier: Apache-2.0
// Functions on what is known when a model is imported: `len(axes)`, `dtype(to)`.
#pragma once

#include <string>

#include "conversion.hpp"

namespace tenon::onnx {

using HostFunction = Value (*)(const Values& arguments, Conversion& conversion,
                               const std::string& what);

// nullptr: there is none, and the name is an operator's. `takes_tensors`: of a name that is both, the operator is meant.
HostFunction find_host_function(const std::string& name, bool takes_tensors);

// `+`, `<` and so on of host values; `+` of two lists joins them.
Value host_arithmetic(const std::string& sign, const Value& left, const Value& right,
                      const std::string& what);

}  // namespace tenon::onnx
