// SPDX-License-Identifier: Apache-2.0
// Lowerings from scalar expressions: `expr` and `reduce` as programs over the primitives
// (tenon/ops/lowering.hpp), for devices that have no kernel of the operator's own.
#pragma once

#include <string>

#include "model/operator.hpp"

namespace tenon::codegen {

// Does the operator get its decomposition from its expression? Not if it has one, or if the
// expression reads text or uses a function that no primitive gives.
bool has_derived_lowering(const Operator& op);

// Its programs and its `decompose_<op>`.
std::string derived_lowering(const Operator& op);

}  // namespace tenon::codegen
