// SPDX-License-Identifier: Apache-2.0
// `shard`: how an operator acts on tensors of which every rank has a part (tenon/sharding_rule.hpp).
#pragma once

#include "load/yaml_entry.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// Sets op.shard to the lines of the entry, or to what its expression, reduction or rows say.
void read_shard(const YamlEntry& entry, Operator& op);

}  // namespace tenon::codegen
