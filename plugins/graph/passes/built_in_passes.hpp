// SPDX-License-Identifier: Apache-2.0
// The passes of this plugin by name. A new one is a file and a line in the table (built_in_passes.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace tenon::graph {

// What a pass is told, and what it tells.
struct PassContext {
  std::string_view argument;          // what stands behind its name, from "=" or "!" on
  bool passes_gradients;              // gradients may pass through the program
  std::vector<std::string>& changes;  // receives a line for each change that users ask for
  bool needs_disjoint_inputs =
      false;  // set where inputs may not lie in memory that the program writes
};

struct BuiltInPass {
  enum Argument : uint8_t { kNone, kOptional, kNeeded };
  std::string_view name;
  Argument argument;
  void (*run)(Graph& graph, PassContext& context);

  // Is it the one that "rewrites=ulp!silu" names?
  bool is_named_by(std::string_view text) const;
};

// In the order in which messages name them.
std::span<const BuiltInPass> built_in_passes();

}  // namespace tenon::graph
