// SPDX-License-Identifier: Apache-2.0
// A compiler of sub-graphs that the user has chosen by name (services/graph.h, tenon_graph_claimer_api).
#pragma once

#include <unistd.h>

#include <tenon/services/graph.h>

#include <memory>
#include <string>

namespace tenon::graph {

class Claimer {
 public:
  // For programs of these numerics (TENON_GRAPH_EXACT, ...). Throws Error: there is none of this name, its results are
  // not exact and have to be, or it refuses the options.
  Claimer(std::string name, const std::string& options, int32_t numerics);
  ~Claimer();
  Claimer(const Claimer&) = delete;

  const std::string& name() const { return name_; }
  const tenon_subgraph_api* subgraphs() const { return service_->subgraphs; }
  tenon_device handle() const { return handle_; }

 private:
  std::string name_;
  const tenon_graph_claimer_api* service_;
  tenon_device handle_ = nullptr;
  const pid_t process_ = ::getpid();
};
using ClaimerPtr = std::shared_ptr<const Claimer>;

}  // namespace tenon::graph
