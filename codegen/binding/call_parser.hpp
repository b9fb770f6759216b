// SPDX-License-Identifier: Apache-2.0
// `aclnnAdd(Tensor x, Tensor y, Scalar 1, Tensor out)`: the vendor's function and its parameters.
#pragma once

#include <string_view>

#include "binding/binding.hpp"

namespace tenon::codegen {

// Fills function and parameters of `binding`, whose operator is known. `methods` are the kinds that the plugin
// adds. Adds the positions of the operator's parameters that the call uses to `used`.
void parse_call(std::string_view text, const Location& where,
                const std::vector<std::string>& methods, Binding& binding, std::set<int>& used);

}  // namespace tenon::codegen
