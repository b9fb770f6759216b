// SPDX-License-Identifier: Apache-2.0
// Plain tensors beside sharded ones count as whole and equal on all ranks, which nothing shows. With the variable
// TENON_CHECK_REPLICAS=1 ranks compare them.
#pragma once

#include "candidates.hpp"

namespace tenon::sharding {

// Read once: all ranks of a job have to agree on it.
bool checks_replicas();

// Every rank of the mesh calls it; fails on all of them where plain operands differ in dtype, shape or an element.
void check_replicas(Scope& scope, const Call& call);

}  // namespace tenon::sharding
