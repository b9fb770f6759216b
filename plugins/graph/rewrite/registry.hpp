// SPDX-License-Identifier: Apache-2.0
// Rewrites that the process knows: those of opdefs/rewrites, and those that plugins and programs add.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "rewrite/rule.hpp"

namespace tenon::graph {

using Rules = std::vector<std::shared_ptr<const Rule>>;

// Tries the rule (check.hpp) and keeps it. Throws Error if it does not hold, or the name is taken.
void add_rule(const tenon_graph_rewrite& text);
// Throws Error if there is none of that name.
void remove_rule(std::string_view name);
// Throws Error if there is none of that name.
std::shared_ptr<const Rule> rule_named(std::string_view name);
// In the order in which they were added, those of opdefs/rewrites first.
Rules all_rules();
// "", "=ulp", "=fast!silu!gelu": rules that promise as much as the level or more, without those named.
struct RuleChoice {
  Rules rules;
  int32_t numerics;  // the level
};
RuleChoice choose_rules(std::string_view choice);

}  // namespace tenon::graph
