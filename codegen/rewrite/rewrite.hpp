// SPDX-License-Identifier: Apache-2.0
// Rewrite files: which expressions of operators may stand for which others (docs/rewrites.md).
//
//   rewrites:
//     - rewrite: silu
//       from: x * sigmoid(x)
//       to: silu(x)
//       also: ["x / (1 + exp(-x))"]      other ways to write it; each is a rewrite, silu.2
//       numerics: ulp 8
//       dtypes: floating
//
// The texts are carried into plugins/graph as they are, where operators are known and rules are tried.
#pragma once

#include <string>
#include <vector>

#include "emit/emit.hpp"
#include "support/location.hpp"

namespace tenon::codegen {

struct Rewrite {
  std::string name, from, to;  // steps of an expression stand on lines of their own
  std::string numerics;        // "TENON_GRAPH_ULP"
  double units = 0;
  uint64_t dtypes = 0;
  Location where;
};

void load_rewrites(const std::string& path, std::vector<Rewrite>& rewrites,
                   std::vector<std::string>& errors);

// "rewrites.hpp": a table of tenon_graph_rewrite, kRewrites.
OutputFile emit_rewrites(const std::vector<Rewrite>& rewrites);

}  // namespace tenon::codegen
