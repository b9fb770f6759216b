// SPDX-License-Identifier: Apache-2.0
// The keys `reference` and `samples` of an operator.
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Reads the text alone; check/samples.hpp compares the calls with the signature.
void read_samples(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen
