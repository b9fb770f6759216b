// SPDX-License-Identifier: Apache-2.0
// YAML files to the typed model. What can be refused by looking at one entry is refused here; what
// needs the other operators is left to check/.
#pragma once

#include <string>
#include <vector>

#include "model/operator.hpp"

namespace tenon::codegen {

// Read `path` into `package`. One message per refused entry goes to `errors`; the others are kept.
// `emit` is false for imported files, which are only looked up.
void load_file(const std::string& path, bool emit, Package& package,
               std::vector<std::string>& errors);

}  // namespace tenon::codegen
