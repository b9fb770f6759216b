// SPDX-License-Identifier: Apache-2.0
// The pass "rewrites".
#pragma once

#include <memory>

#include "rewrite/rule.hpp"

namespace tenon::graph {

// Applies rules until none fits, in their order at each step. `spares_recorded`: operators that gradients may
// pass through stay, as those would be rounded in another order. A line for each application goes to
// `changes`: "silu: 2 steps became tenon::silu at train.py:12".
void apply_rewrites(const std::vector<std::shared_ptr<const Rule>>& rules, Graph& graph,
                    bool spares_recorded, std::vector<std::string>& changes);

}  // namespace tenon::graph
