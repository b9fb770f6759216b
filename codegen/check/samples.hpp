// SPDX-License-Identifier: Apache-2.0
// Samples against the signature of their operator.
#pragma once

#include "model/operator.hpp"

namespace tenon::codegen {

// Throws an Error unless the call gives every required parameter a value of its type.
void check_sample(const Operator& op, const Sample& sample);

}  // namespace tenon::codegen
