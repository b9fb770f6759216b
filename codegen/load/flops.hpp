// SPDX-License-Identifier: Apache-2.0
// `flops`: the arithmetic of one call, as an expression of sizes.
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Sets op.flops to the text, which was checked; leaves it empty where the entry has none.
void read_flops(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen
