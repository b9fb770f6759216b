// SPDX-License-Identifier: Apache-2.0
// Decompositions written as expressions, as C++ functions.
#pragma once

#include <string>

#include "model/operator.hpp"

namespace tenon::codegen {

// One file: decompose_<op> of every operator of `file` whose `decompose` is an expression.
std::string decompose_file(const Package& package, const std::string& file,
                           const std::string& cpp_namespace);

}  // namespace tenon::codegen
