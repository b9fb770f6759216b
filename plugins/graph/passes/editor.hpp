// SPDX-License-Identifier: Apache-2.0
// What a pass of a plugin sees of a program, and how it changes it.
#pragma once

#include <tenon/services/graph.h>

#include <optional>

#include "ir/alias_analysis.hpp"
#include "ir/graph.hpp"

struct tenon_graph_editor {
  explicit tenon_graph_editor(tenon::graph::Graph& edited) : graph(edited) {}

  // How often it is read, returned or assigned.
  uint32_t uses(tenon::graph::ValueId value) const;
  const tenon::graph::AliasAnalysis& memory() const;
  void changed() { aliases.reset(); }

  tenon::graph::Graph& graph;

 private:
  mutable std::optional<tenon::graph::AliasAnalysis> aliases;  // of the graph as it is
};

namespace tenon::graph {

extern const tenon_graph_editor_api kEditor;
// For reading: what would change the program fails.
extern const tenon_graph_editor_api kReader;

}  // namespace tenon::graph
