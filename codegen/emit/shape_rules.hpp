// SPDX-License-Identifier: Apache-2.0
// Shape functions of operators whose rule is named in YAML.
#pragma once

#include <string>

#include "model/operator.hpp"

namespace tenon::codegen {

// What tenon_op_def.infer holds: "nullptr", "infer_x" (hand-written) or "rule_x" (generated).
std::string infer_function_name(const Operator& op);
// Definition of rule_x, or "" if there is none.
std::string shape_rule_function(const Operator& op);

}  // namespace tenon::codegen
