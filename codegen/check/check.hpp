// SPDX-License-Identifier: Apache-2.0
// What an entry must satisfy as a whole, and against the other operators.
#pragma once

#include <string>
#include <vector>

#include "model/operator.hpp"

namespace tenon::codegen {

// One message per mistake goes to `errors`. Marks operators that can never be differentiated.
void check_package(Package& package, std::vector<std::string>& errors);

}  // namespace tenon::codegen
