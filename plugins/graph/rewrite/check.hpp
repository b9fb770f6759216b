// SPDX-License-Identifier: Apache-2.0
// A rewrite is tried before it is believed.
#pragma once

#include "rewrite/rule.hpp"

namespace tenon::graph {

// Runs both sides on arguments that are drawn: dtypes, shapes that broadcast, ordinary and special numbers. The
// same seed draws the same. Throws Error with a counterexample if they differ by more than the rule
// allows, and if no arguments were found that both sides take.
void check_rule(const Rule& rule, uint64_t seed);

}  // namespace tenon::graph
