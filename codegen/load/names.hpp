// SPDX-License-Identifier: Apache-2.0
// What other libraries call things of ours: `names` of an operator, and the file of names, which says
// it of what is no operator, and of parameters.
#pragma once

#include <string>
#include <vector>

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// {torch: ["neg(input, *, out=None)", negative], numpy: negative}
Names read_names(const YAML::Node& node, const std::string& file, const std::string& what);

// The file of names, into `package`. One message per refused entry goes to `errors`.
void load_names(const std::string& path, Package& package, std::vector<std::string>& errors);

}  // namespace tenon::codegen
