// SPDX-License-Identifier: Apache-2.0
// Differentiation of an author's operator by its gradient operator.
#pragma once

#include "api/definition.hpp"

namespace tenon::paddle {

// Register the rule of one definition; takes an earlier one of that name away. Throws if the
// gradient operator asks for what is neither an argument nor a result nor the gradient of one.
void register_gradient(const Definition& definition);

}  // namespace tenon::paddle
