// SPDX-License-Identifier: Apache-2.0
// `rows`: the axes along which an operator works, so that what lies beside each other along the others is independent.
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Sets op.rows to `axis`, the parameter that names the axes, or to `last(count)`, with a parameter or a number that counts them
// from the end; leaves it empty where nothing is known. Reductions have it by their `axis`.
void read_rows(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen
