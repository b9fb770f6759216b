// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "groups/group.hpp"

namespace tenon::graph {

// All groups of the program, in the order of their steps. A delegated group comes first, the groups of its own steps behind
// it, for runs in which it declines; other groups do not share steps.
std::vector<GroupPtr> find_groups(const GroupContext& context);

}  // namespace tenon::graph
