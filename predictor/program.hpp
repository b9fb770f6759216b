// SPDX-License-Identifier: Apache-2.0
// A program of the graph service, owned.
#pragma once

#include <tenon/services/graph.h>

#include <memory>

namespace tenon::predictor {

struct ReleaseProgram {
  void operator()(tenon_graph_program* program) const;
};
using Program = std::unique_ptr<tenon_graph_program, ReleaseProgram>;

}  // namespace tenon::predictor
