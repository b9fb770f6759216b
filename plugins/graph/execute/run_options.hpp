// SPDX-License-Identifier: Apache-2.0
// What the caller of a run may ask for beside the results (tenon_graph_run_options).
#pragma once

#include <tenon/services/graph.h>

namespace tenon::graph {

using RunOptions = tenon_graph_run_options;

// Of a region: `before` alone is asked, and its results are the step's own.
inline RunOptions options_in_region(const RunOptions& options) {
  RunOptions inside = {};
  inside.struct_size = sizeof inside;
  inside.flags = options.flags;
  inside.user = options.user;
  inside.before = options.before;
  return inside;
}

}  // namespace tenon::graph
