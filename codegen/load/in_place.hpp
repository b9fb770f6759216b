// SPDX-License-Identifier: Apache-2.0
// `in_place`: the argument that the result may be written over, where kind and shape do not say it.
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Sets op.in_place to the name of the first parameter, whose tensor kernels and the decomposition may write over, or to
// `by_copy`: the operator has an in-place form, whose result is computed first and copied. Empty where nothing is said.
void read_in_place(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen
